defmodule Caisson.Sandbox.Process do
  @moduledoc """
  The process wall: namespaces, a root tree of its own, Landlock, system call filters, limits.

  Options are those of `Caisson.Sandbox.Wall`; the workspace is read-only unless `mode: :rw` or
  `:cow`.
  """
  @behaviour Caisson.Sandbox
  use Caisson.Sandbox.Wall

  @impl true
  def init(opts), do: Wall.init(Keyword.put_new(opts, :backend, "process"))

  @impl true
  defdelegate mount(state, host_path, path), to: Wall
  defdelegate mount(state, host_path, path, opts), to: Wall
end
