# A session of an agent's tools: the tests fail, a file is edited, they pass, and what changed is kept. The workspace is a
# copy: nothing of the project changes before commit.
#
#     elixir examples/session.exs FOLDER [process | local]
#
# Mix.install fetches nothing here: the package is a folder and has no dependencies.

Mix.install([{:caisson, path: Path.expand("../sdk/elixir", __DIR__)}])

defmodule Session do
  alias Caisson.Sandbox

  @walls %{"process" => {Sandbox.Process, mode: :cow}, "local" => {Sandbox.Local, mode: :rw}}

  def main([folder | rest]) do
    {module, opts} = Map.fetch!(@walls, List.first(rest) || "process")
    {:ok, sb} = Sandbox.new(module, [cwd: folder] ++ opts)

    try do
      false = tests(sb)
      :ok = edit(sb, "sum.py", "a - b", "a + b")
      true = tests(sb)
      keep(sb, opts[:mode])
    after
      Sandbox.shutdown(sb)
    end
  end

  # A status other than 0 is a result, and so is a timeout; an error means that nothing can be told of the command.
  defp tests(sb) do
    sb
    |> Sandbox.stream("python3 -B test_sum.py", timeout: 30_000)
    |> Enum.reduce(false, fn
      {:exit, done}, _ ->
        for violation <- done.violations, do: IO.puts("! #{violation.say}")
        done.exit_code == 0

      {_stream, bytes}, passed ->
        # It may hold anything: nothing of it reaches the terminal raw.
        IO.puts(inspect(bytes))
        passed
    end)
  end

  defp edit(sb, path, old, new) do
    with {:ok, %{occurrences: 1}} <- Sandbox.edit(sb, path, old, new), do: :ok
  end

  defp keep(sb, :cow) do
    {:ok, %{text: text}} = Sandbox.diff(sb)
    IO.puts(text)
    {:ok, %{applied: applied}} = Sandbox.commit(sb)
    IO.puts("kept: " <> Enum.map_join(applied, ", ", & &1.path))
  end

  defp keep(_sb, :rw), do: IO.puts("written in place")
end

Session.main(System.argv())
