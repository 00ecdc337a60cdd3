for name <- [Cantrip, Caisson] do
  defmodule name do
    @moduledoc false
    # Children are the parent's: it makes them and runs them, and tells what came of it.

    alias Caisson.Evaluator.Requests

    def new(options), do: Requests.api("new", [options])
    def cast(child, intent), do: Requests.api("cast", [child, intent])
    def cast(child, intent, options), do: Requests.api("cast", [child, intent, options])
    def cast_batch(items), do: Requests.api("cast_batch", [items])
    def cast_batch(items, options), do: Requests.api("cast_batch", [items, options])
  end
end
