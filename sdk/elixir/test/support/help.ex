defmodule Caisson.Help do
  @moduledoc false
  # Folders that go with their test, and what runs on this machine.

  import ExUnit.Callbacks, only: [on_exit: 1]

  alias Caisson.Sandbox

  def folder do
    name = "caisson-elixir-#{System.pid()}-#{System.unique_integer([:positive])}"
    path = Path.join(System.tmp_dir!(), name)
    File.mkdir_p!(Path.join(path, "ws"))
    # Sandboxes end when their owner has: what they still write goes too.
    on_exit(fn -> true = eventually(fn -> match?({:ok, _}, File.rm_rf(path)) end) end)
    path
  end

  @doc "A sandbox in a fresh workspace: `{sandbox, workspace}`."
  def sandbox(opts \\ [], module \\ Sandbox.Process) do
    folder = folder()
    workspace = Path.join(folder, "ws")
    opts = Keyword.merge([cwd: workspace, mode: :rw, record: false], opts)
    {:ok, sb} = Sandbox.new(module, policy_file(opts, folder))
    {sb, workspace}
  end

  @doc "`policy: {:text, yaml}` becomes a file."
  def policy_file(opts, folder) do
    case opts[:policy] do
      {:text, text} ->
        path = Path.join(folder, "policy.yaml")
        File.write!(path, text)
        Keyword.put(opts, :policy, path)

      _ ->
        opts
    end
  end

  @doc "The process ids whose command line contains `text`, without zombies."
  def running(text) do
    for pid <- File.ls!("/proc"),
        pid =~ ~r/^\d+$/,
        {:ok, line} <- [File.read("/proc/#{pid}/cmdline")],
        String.contains?(line, text),
        pid != System.pid(),
        do: pid
  end

  def eventually(check, ms \\ 5000) do
    cond do
      result = check.() -> result
      ms <= 0 -> false
      true -> Process.sleep(20) && eventually(check, ms - 20)
    end
  end

  @doc "A number of seconds that no other test sleeps: by it a command is found in /proc."
  def odd_sleep, do: "6#{System.pid()}.#{System.unique_integer([:positive])}"
end
