defmodule Caisson.Evaluator.Names do
  @moduledoc false
  # Reads code into syntax without letting it fill the table of atoms, which is never emptied and
  # ends the VM when it is full.
  #
  # A name that no atom stands for comes out of the tokenizer as `%{new: "name"}`, a shape that
  # nothing else in a syntax tree has. Only where it is a value does it become an atom, and this
  # session has so many of those. Names of variables, functions and modules never do: variables get
  # names of a fixed row, statement by statement, the most frequent first. An Erlang variable is named
  # by its name and the number of its binding, so T occurrences make at most T(1 + ln T) atoms, once.

  @made 10_000
  @variables 4096
  @loaded :caisson_evaluator_loaded
  @table :caisson_evaluator_names

  def start do
    :ets.new(@table, [:named_table, :public])
    :ets.new(@loaded, [:named_table, :public])
    :ok
  end

  @doc "Modules that this session compiled."
  def loaded?(module), do: :ets.member(@loaded, module)
  def add_loaded(module), do: :ets.insert(@loaded, {module})

  @doc "An atom that exists since this session's code named it."
  def made?(atom), do: :ets.member(@table, atom)

  @doc "The syntax tree, its new names not yet atoms."
  @spec read(binary) :: {:ok, Macro.t()} | {:error, binary}
  def read(code), do: parse(code, &{:ok, existing(&1) || %{new: &1}})

  @doc "The same with atoms, for code that may have as many as it likes."
  def read_raw(code), do: parse(code, &{:ok, existing(&1) || make(&1)})

  defp parse(code, encode) do
    encoder = fn
      name, _ when byte_size(name) > 255 -> {:error, "a name may have 255 bytes: "}
      name, _ -> encode.(name)
    end

    case Code.string_to_quoted(code, static_atoms_encoder: encoder) do
      {:ok, tree} -> {:ok, tree}
      {:error, {meta, why, token}} -> {:error, sentence(meta, why, token)}
    end
  rescue
    # A character that no text has, an escape that is none.
    error -> {:error, "syntax error: " <> Exception.message(error)}
  end

  defp sentence(meta, {before, behind}, token), do: sentence(meta, before, "#{token}#{behind}")

  defp sentence(meta, why, token) do
    why = String.replace_prefix(to_string(why), "syntax error ", "")
    text = if token == "" and why == "before: ", do: "the code ends too early", else: "#{why}#{clip(token)}"
    "syntax error: #{String.trim_trailing(text)} (line #{meta[:line]})"
  end

  defp clip(token), do: String.slice(to_string(token), 0, 300)

  defp existing(name) do
    # nil is an atom that the tokenizer knows without us.
    String.to_existing_atom(name)
  rescue
    ArgumentError -> nil
  end

  defp make(name) do
    atom = String.to_atom(name)
    :ets.insert(@table, {atom})
    atom
  end

  @doc "The atom of a name that stands as a value."
  @spec atom(binary) :: {:ok, atom} | {:error, binary}
  def atom(name) do
    cond do
      byte_size(name) > 255 -> {:error, "a name may have 255 bytes"}
      found = existing(name) -> {:ok, found}
      :ets.info(@table, :size) < @made -> {:ok, make(name)}
      true -> {:error, "this session has made #{@made} new atoms: use texts instead"}
    end
  end

  @doc "The atom of a module's name, if it has one: none is made."
  def module(parts) do
    name = Enum.map_join(parts, ".", &text/1)
    {existing("Elixir." <> name), name}
  end

  def text(%{new: name}), do: name
  def text(atom) when is_atom(atom), do: Atom.to_string(atom)

  @doc """
  Gives the variables of a statement, which are `{{:var, name}, meta, nil}`, names of the row.
  The tree, and which is which.
  """
  @spec variables(Macro.t(), [binary]) :: {:ok, Macro.t(), %{binary => atom}} | {:error, binary}
  def variables(tree, more) do
    {_, counts} = Macro.prewalk(tree, %{}, &count/2)
    total = counts |> Map.values() |> Enum.sum()

    if total + length(more) > @variables do
      {:error, "a statement may name variables #{@variables} times: make several of it"}
    else
      names =
        Enum.reduce(more, counts, &Map.put_new(&2, &1, 0))
        |> Enum.sort_by(&(-elem(&1, 1)))
        |> Enum.with_index(fn {name, _}, at -> {name, String.to_atom("v$#{at}")} end)
        |> Map.new()

      {:ok, Macro.prewalk(tree, &rename(&1, names)), names}
    end
  end

  defp count({{:var, name}, _, nil}, counts), do: {nil, Map.update(counts, name, 1, &(&1 + 1))}
  defp count(node, counts), do: {node, counts}

  defp rename({{:var, name}, meta, nil}, names),
    do: {names[name], [generated: true, line: meta[:line] || 1], nil}

  defp rename(node, _), do: node
end
