defmodule Caisson.Evaluator.Requests do
  @moduledoc false
  # What code asks of the parent: gates, children, leave to compile. The one process that owns the port
  # sends it, and answers when the parent did, or when there is nobody to ask.

  alias Caisson.Evaluator.Loading

  @name :caisson_evaluator

  def name, do: @name

  @doc "A gate as a function of one argument."
  def closure("compile_and_load"), do: fn arg -> gate("compile_and_load", [arg]) end
  def closure(name), do: fn arg -> gate(name, [arg]) end

  def gate("compile_and_load", args) do
    case ask(:compile_request, "compile_and_load", args) do
      {:allowed, payload} -> Loading.load(payload, args)
      {:denied, observation} -> result(observation)
    end
  end

  def gate(name, args), do: :gate_call |> ask(name, args) |> result()

  def api(function, args), do: ask(:api_call, function, args)

  @doc "Of an observation the code sees the result alone."
  def result(%{result: result}), do: result
  def result(%{"result" => result}), do: result
  def result(other), do: other

  defp ask(kind, name, args) do
    monitor = Process.monitor(@name)
    send(@name, {:request, self(), monitor, kind, name, args})

    receive do
      {:answer, ^monitor, {:ok, value}} ->
        Process.demonitor(monitor, [:flush])
        value

      {:answer, ^monitor, {:error, why}} ->
        Process.demonitor(monitor, [:flush])
        raise ArgumentError, why

      {:DOWN, ^monitor, _, _, _} ->
        exit(:shutdown)
    end
  end
end

defmodule Caisson.Evaluator.Loading do
  @moduledoc false
  # Compiles what the parent allowed, in this VM alone. Which module, from where, and signed by whom is
  # the parent's to judge; here it is the module that was named and no other, and none that is here
  # already: what is loaded over the evaluator or over Elixir would be the evaluator.

  alias Caisson.Evaluator.{Names, Requests}

  def load(payload, args) do
    given = if is_map(List.first(args)), do: hd(args), else: %{}
    name = field(payload, :module) || field(given, :module)
    source = field(payload, :source) || field(given, :source)

    said =
      with {:ok, module} <- module(name),
           :ok <- named(source, module),
           do: compile(source, module)

    {text, failed} =
      case said do
        {:ok, module} -> {"loaded #{inspect(module)}", false}
        {:error, why} -> {"compile_and_load: " <> why, true}
      end

    send(Requests.name(), {:tell, %{gate: "compile_and_load", result: text, is_error: failed}})
    text
  end

  defp field(map, key) when is_map(map), do: map[key] || map[Atom.to_string(key)]
  defp field(_, _), do: nil

  defp module(name) when is_atom(name) and name != nil, do: name |> inspect() |> module()

  defp module("Elixir." <> name), do: module(name)

  defp module(name) when is_binary(name) do
    cond do
      not Regex.match?(~r/\A[A-Z]\w*(\.[A-Z]\w*)*\z/, name) ->
        {:error, "#{inspect(name)} is no name of a module"}

      Regex.match?(~r/\A(Caisson|Cantrip)(\.|\z)/, name) ->
        {:error, "#{name} is a name of the evaluator's own"}

      true ->
        with {:ok, module} <- Names.atom("Elixir." <> name), do: free(module)
    end
  end

  defp module(_), do: {:error, "it needs a module and its source"}

  defp free(module) do
    if Code.ensure_loaded?(module) and not Names.loaded?(module),
      do: {:error, "#{inspect(module)} exists already"},
      else: {:ok, module}
  end

  # Before it is compiled: what a source defines is loaded as it is.
  defp named(source, module) when is_binary(source) do
    case Code.string_to_quoted(source) do
      {:ok, {:defmodule, _, [{:__aliases__, _, parts}, _]} = tree} ->
        {_, count} = Macro.prewalk(tree, 0, &definitions/2)

        cond do
          Module.concat(parts) != module ->
            {:error, "the source defines #{inspect(Module.concat(parts))}, not #{inspect(module)}"}

          count != 1 ->
            {:error, "the source defines more than #{inspect(module)}"}

          true ->
            :ok
        end

      {:ok, _} ->
        {:error, "the source is to be one defmodule #{inspect(module)}"}

      {:error, {meta, _, _}} ->
        {:error, "syntax error in line #{meta[:line]} of the source"}
    end
  end

  defp named(_, _), do: {:error, "it needs a module and its source"}

  defp definitions({name, _, [_ | _]} = node, count)
       when name in [:defmodule, :defimpl, :defprotocol],
       do: {node, count + 1}

  defp definitions(node, count), do: {node, count}

  defp compile(source, module) do
    Code.put_compiler_option(:ignore_module_conflict, true)
    made = source |> Code.compile_string("compile_and_load") |> Enum.map(&elem(&1, 0))

    if made == [module] do
      Names.add_loaded(module)
      {:ok, module}
    else
      for name <- made, do: :code.purge(name) && :code.delete(name)
      {:error, "the source made #{inspect(made)}, not #{inspect(module)} alone"}
    end
  rescue
    error -> {:error, Exception.message(error)}
  end
end
