defmodule Caisson.Sandbox.Local do
  @moduledoc """
  No wall: commands and files of this machine, rooted at `:cwd`. For development, and the default.

  Options are those of `Caisson.Sandbox.Wall`. Without `:policy` there are no limits, and HOME, USER
  and the like are passed on; the calls, their results and the record are those of any wall.
  """
  @behaviour Caisson.Sandbox
  use Caisson.Sandbox.Wall

  @impl true
  def init(opts) do
    {is_chosen, opts} = Keyword.pop(opts, :chosen, true)
    opts = if opts[:policy] || opts[:attach], do: opts, else: unlimited(opts)
    # Who chose nothing lets CAISSON_BACKEND choose.
    opts =
      if is_chosen and !opts[:attach], do: Keyword.put_new(opts, :backend, "local"), else: opts

    Wall.init(if opts[:attach], do: opts, else: Keyword.put_new(opts, :at, "host"))
  end

  # What a policy would pass on, a call may not add to: these go with each call instead.
  defp unlimited(opts) do
    names = ~w(HOME USER LOGNAME SHELL)
    call_env = for name <- names, value = System.get_env(name), into: %{}, do: {name, value}
    policy = Application.app_dir(:caisson, "priv/local.yaml")
    Keyword.merge(opts, policy: policy, call_env: call_env)
  end
end
