defmodule Caisson.ConformanceTest do
  use ExUnit.Case, async: true

  alias Caisson.Story

  for file <- Story.files() do
    test "the story of #{Path.basename(file, ".json")}" do
      assert Story.tell(unquote(file)) == []
    end
  end

  test "there are stories" do
    assert length(Story.files()) >= 6
  end

  test "comparing can fail" do
    for {expected, found} <- [
          {"a", "b"},
          {%{"base64" => "//4="}, <<255>>},
          {%{"contains" => "x"}, "abc"},
          {%{"length" => 2}, "abc"},
          {%{"at_least" => 2, "at_most" => 3}, 4},
          {[], [1]},
          {[%{"a" => 1}], [%{"a" => 2}]},
          {%{"a" => nil}, %{"a" => 0}},
          {nil, false},
          {0, false}
        ] do
      assert Story.different(expected, found, "here")
    end
  end
end
