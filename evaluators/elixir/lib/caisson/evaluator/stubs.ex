defmodule Caisson.Evaluator.Stubs do
  @moduledoc false
  # A map that says it is a `File.Stream` reads a file when it is enumerated, and no table of functions
  # sees that call: it is the protocol's. In the restricted evaluator these implementations are others.

  @modules [
    Enumerable.File.Stream,
    Collectable.File.Stream,
    Enumerable.IO.Stream,
    Collectable.IO.Stream,
    Enumerable.GenEvent.Stream,
    Collectable.Mix.Shell
  ]

  @code (for module <- @modules do
           say =
             {:bin, 1, [{:bin_element, 1, {:string, 1, ~c"this stream is restricted"}, :default, :default}]}

           raised = {:call, 1, {:remote, 1, {:atom, 1, ArgumentError}, {:atom, 1, :exception}}, [say]}
           body = {:call, 1, {:remote, 1, {:atom, 1, :erlang}, {:atom, 1, :error}}, [raised]}
           names = [count: 1, member?: 2, reduce: 3, slice: 1, into: 1]

           functions =
             for {name, arity} <- names do
               args = for at <- 1..arity, do: {:var, 1, :"_#{at}"}
               {:function, 1, name, arity, [{:clause, 1, args, [], [body]}]}
             end

           forms = [{:attribute, 1, :module, module}, {:attribute, 1, :export, names ++ [__impl__: 1]}]
           target = {:function, 1, :__impl__, 1, [{:clause, 1, [{:var, 1, :_}], [], [{:atom, 1, module}]}]}
           {:ok, ^module, code} = :compile.forms(forms ++ functions ++ [target], [])
           {module, code}
         end)

  def load do
    for {module, code} <- @code, do: {:module, ^module} = :code.load_binary(module, ~c"restricted", code)
    :ok
  end
end
