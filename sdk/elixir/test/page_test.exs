defmodule Caisson.PageTest do
  # docs/elixir.md promises what its snippets match.
  use ExUnit.Case, async: true

  import Caisson.Help

  @page Path.expand("../../../docs/elixir.md", __DIR__)

  test "the page's snippets run, in its order" do
    project = Path.join(folder(), "ws")
    File.write!(Path.join(project, "mix.exs"), "# a project\n")
    {:ok, caisson} = Caisson.Program.find([])
    snippets = Regex.scan(~r/```elixir\n(.*?)```/s, File.read!(@page), capture: :all_but_first)
    assert length(snippets) >= 8
    code = Enum.join(snippets, "\n")
    bindings = [project: project, caisson: caisson]
    {_, _} = Code.eval_string(code, bindings, file: @page)
  end
end
