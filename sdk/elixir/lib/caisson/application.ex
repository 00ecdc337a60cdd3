defmodule Caisson.Application do
  @moduledoc false
  use Application

  @impl true
  def start(_type, _args) do
    # A sandbox that is gone is never started again: nobody could know what was lost with it.
    children = [{DynamicSupervisor, name: Caisson.Supervisor, strategy: :one_for_one}]
    Supervisor.start_link(children, strategy: :one_for_one)
  end
end
