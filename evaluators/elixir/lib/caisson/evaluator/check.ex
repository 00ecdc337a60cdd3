defmodule Caisson.Evaluator.Check do
  @moduledoc false
  # The restriction, for what is written. A statement's syntax goes in as it was read; what comes out
  # consists of forms this module names, of calls that `Rules` lists, and of calls to `Safe` where only
  # the run shows what would be called. A node that no clause here takes is refused.
  #
  # Three places differ: in a `:body` calls are rewritten, in a `:match` and a `:guard` the language
  # allows no call of ours, and no call that could matter.

  alias Caisson.Evaluator.{Names, Requests, Rules, Safe}

  @sigils ~w(sigil_C sigil_D sigil_N sigil_R sigil_S sigil_T sigil_U sigil_W sigil_c sigil_r sigil_s
    sigil_w)a
  @paths [put_in: 2, update_in: 2, pop_in: 1, get_and_update_in: 2]
  @types ~w(integer float bits bitstring binary bytes utf8 utf16 utf32 signed unsigned big little native)a
  @deep 1000

  @doc "The statement as it may run. `{:error, sentence}` names the first thing that is restricted."
  @spec statement(Macro.t(), MapSet.t()) :: {:ok, Macro.t()} | {:error, binary}
  def statement(tree, gates) do
    {:ok, walk(tree, %{place: :body, gates: gates, deep: @deep})}
  catch
    {__MODULE__, sentence} -> {:error, sentence}
  end

  defp refuse(sentence), do: throw({__MODULE__, sentence})
  defp restricted(what), do: refuse("#{what} is restricted")

  defp restricted(module, name, arity),
    do: restricted("function #{Safe.mfa(module, Names.text(name), arity)}")

  defp each(list, c), do: Enum.map(list, &walk(&1, c))
  defp body(c), do: %{c | place: :body}
  defp match(c), do: %{c | place: :match}
  defp guard(c), do: %{c | place: :guard}

  defp walk(_, %{deep: 0}), do: refuse("code may be nested #{@deep} deep: make several statements of it")
  defp walk(tree, c), do: node(tree, %{c | deep: c.deep - 1})

  # ---- literals ------------------------------------------------------------------------------

  defp node(value, _) when is_number(value) or is_binary(value), do: value
  defp node(:__struct__, _), do: restricted("the key __struct__")
  defp node(atom, _) when is_atom(atom), do: atom
  defp node(%{new: name}, %{place: :body}), do: atom(name)
  defp node(%{new: name}, _), do: atom(name)
  defp node(list, c) when is_list(list), do: items(list, c)
  defp node({left, right}, c), do: {walk(left, c), walk(right, c)}

  # ---- names ---------------------------------------------------------------------------------

  defp node({:_, meta, context}, _) when is_atom(context), do: {:_, line(meta), nil}

  defp node({name, meta, context}, c) when is_atom(context) and (is_atom(name) or is_map(name)),
    do: variable(Names.text(name), meta, c)

  defp node({:__aliases__, _, parts}, _), do: alias_value(parts)

  # ---- forms ---------------------------------------------------------------------------------

  defp node({:__block__, meta, list}, c) when is_list(list),
    do: {:__block__, line(meta), each(list, c)}

  defp node({:{}, meta, list}, c), do: {:{}, line(meta), each(list, c)}
  defp node({:%{}, meta, pairs}, c), do: {:%{}, line(meta), pairs(pairs, c)}
  defp node({:%, meta, [name, map]}, c), do: {:%, line(meta), [struct_name(name, c), walk(map, c)]}

  defp node({:=, meta, [left, right]}, %{place: :body} = c),
    do: {:=, line(meta), [walk(left, match(c)), walk(right, c)]}

  defp node({:=, meta, [left, right]}, %{place: :match} = c),
    do: {:=, line(meta), [walk(left, c), walk(right, c)]}

  defp node({:^, meta, [{name, _, context} = pinned]}, %{place: :match} = c)
       when is_atom(context) and (is_atom(name) or is_map(name)),
       do: {:^, line(meta), [walk(pinned, body(c))]}

  defp node({:|, meta, [head, tail]}, c), do: {:|, line(meta), [walk(head, c), walk(tail, c)]}
  defp node({:<<>>, meta, parts}, c), do: bits(meta, parts, c)

  defp node({:fn, meta, clauses}, %{place: :body} = c),
    do: {:fn, line(meta), clauses(clauses, c)}

  defp node({:case, meta, [value, [{:do, clauses}]]}, %{place: :body} = c),
    do: {:case, line(meta), [walk(value, c), [do: clauses(clauses, c)]]}

  defp node({:cond, meta, [[{:do, clauses}]]}, %{place: :body} = c) do
    clauses =
      for {:->, meta, [[test], body]} <- list(clauses, "cond") do
        {:->, line(meta), [[walk(test, c)], walk(body, c)]}
      end

    {:cond, line(meta), [[do: clauses]]}
  end

  defp node({form, meta, args}, %{place: :body} = c) when form in [:with, :for] and is_list(args) do
    {steps, options} = Enum.split(args, -1)
    {steps, options} = if Keyword.keyword?(hd(options ++ [nil])), do: {steps, hd(options)}, else: {args, []}
    # `for x <- xs, into: %{} do` has its options in two lists.
    {steps, more} = Enum.split_with(steps, &(not options?(&1)))
    steps = Enum.map(steps, &step(&1, c))
    options = Enum.map(Enum.concat(more) ++ options, &option(&1, c))
    {form, line(meta), steps ++ [options]}
  end

  defp node({:try, meta, [parts]}, %{place: :body} = c) when is_list(parts),
    do: {:try, line(meta), [Enum.map(parts, &try_part(&1, c))]}

  defp node({:&, meta, [number]}, _) when is_integer(number), do: {:&, line(meta), [number]}
  defp node({:&, meta, [captured]}, %{place: :body} = c), do: capture(captured, meta, c)

  # ---- calls ---------------------------------------------------------------------------------

  defp node({:|>, _, [left, right]}, %{place: :body} = c), do: walk(pipe(left, right), c)

  defp node({:<>, meta, args}, %{place: :body} = c),
    do: safe(:sized, [{:<>, line(meta), each(args, c)}])

  defp node({:binding, _, []}, %{place: :body}), do: {:binding, [], [:caisson]}

  defp node({sigil, meta, [{:<<>>, _, parts}, modifiers]}, c) when sigil in @sigils,
    do: sigil(sigil, meta, parts, modifiers, c)

  defp node({name, meta, [pattern, value]}, %{place: :body} = c)
       when name in [:match?, :destructure],
       do: {name, line(meta), [head(pattern, c), walk(value, c)]}

  defp node({name, meta, args}, %{place: :body} = c)
       when is_list(args) and {name, length(args)} in @paths,
       do: {name, line(meta), [path(hd(args), c) | each(tl(args), c)]}

  defp node({:raise, meta, [what | more]}, %{place: :body} = c) when length(more) < 2,
    do: {:raise, line(meta), [raised(what, c) | each(more, c)]}

  # map.field in a guard: the compiler asks for a map there, no module is called.
  defp node({{:., meta, [{_, _, context} = value, field]}, _, []}, %{place: :guard} = c)
       when is_atom(context),
       do: {{:., line(meta), [walk(value, c), walk(field, c)]}, [no_parens: true], []}

  defp node({{:., meta, [function]}, _, args}, %{place: :body} = c), do: apply_to(function, meta, args, c)

  defp node({{:., _, [module, name]}, meta, args}, c) when is_list(args),
    do: remote(module_of(module), name, meta, args, c)

  defp node({name, meta, args}, c) when is_list(args) and (is_atom(name) or is_map(name)),
    do: local(name, meta, args, c)

  defp node(_, _), do: restricted("this syntax")

  # ---- helpers: names ------------------------------------------------------------------------

  defp line(meta), do: Keyword.take(meta, [:line])

  defp atom(name) do
    case Names.atom(name) do
      {:ok, :__struct__} -> restricted("the key __struct__")
      {:ok, atom} -> atom
      {:error, sentence} -> refuse(sentence)
    end
  end

  defp variable("__" <> _ = name, _, _), do: restricted(name)

  defp variable(name, meta, c) do
    if c.place == :match and MapSet.member?(c.gates, name),
      do: refuse("#{name} is a gate here: choose another name for the variable")

    {{:var, name}, meta, nil}
  end

  defp alias_value(parts) do
    case alias_module(parts) do
      {nil, name} -> atom("Elixir." <> name)
      {module, _} -> module
    end
  end

  defp alias_module([first | _] = parts) do
    if Enum.all?(parts, &(is_atom(&1) or is_map(&1))),
      do: Names.module(if(first == Elixir, do: tl(parts), else: parts)),
      else: restricted("this module name")
  end

  # What stands before the dot: a module, one that nothing is called, or a value.
  defp module_of({:__aliases__, _, parts}) do
    case alias_module(parts) do
      {nil, name} -> {:unknown, name}
      {module, _} -> {:module, module}
    end
  end

  defp module_of(atom) when is_atom(atom), do: {:module, atom}
  defp module_of(%{new: name}), do: {:unknown, ":" <> name}
  defp module_of(value), do: {:value, value}

  defp struct_name({:__aliases__, _, parts}, _) do
    case alias_module(parts) do
      {nil, name} -> restricted("struct %#{name}{}")
      {module, _} -> if Rules.struct?(module), do: module, else: restricted("struct %#{inspect(module)}{}")
    end
  end

  defp struct_name({name, _, context} = variable, %{place: :match} = c)
       when is_atom(context) and (is_atom(name) or is_map(name)),
       do: walk(variable, c)

  defp struct_name(_, _), do: restricted("a struct whose name is computed")

  # ---- helpers: data -------------------------------------------------------------------------

  defp items(list, c) do
    case list do
      [] -> []
      [{:->, _, _} | _] -> restricted("a clause outside of fn, case, cond, for, with and try")
      _ -> each(list, c)
    end
  end

  defp list(list, _) when is_list(list), do: list
  defp list(_, name), do: refuse("#{name} has no clauses")

  defp pairs([{:|, meta, [map, pairs]}], c),
    do: [{:|, line(meta), [walk(map, c), pairs(pairs, c)]}]

  defp pairs(pairs, c) when is_list(pairs) do
    Enum.map(pairs, fn
      {key, value} -> {walk(key, c), walk(value, c)}
      other -> walk(other, c)
    end)
  end

  # ---- helpers: bits -------------------------------------------------------------------------

  defp bits(meta, parts, %{place: :body} = c) do
    made = {:<<>>, line(meta), Enum.map(parts, &part(&1, c))}
    sizes = for {:"::", _, [_, spec]} <- parts, size <- sizes(spec), do: safe(:bits, [walk(size, c)])

    cond do
      Enum.all?(parts, &(is_binary(&1) or is_integer(&1))) -> made
      sizes == [] -> safe(:sized, [made])
      true -> {:__block__, [], sizes ++ [safe(:sized, [made])]}
    end
  end

  defp bits(meta, parts, c), do: {:<<>>, line(meta), Enum.map(parts, &part(&1, c))}

  defp part({:"::", meta, [value, spec]}, c),
    do: {:"::", line(meta), [walk(value, c), spec(spec, c)]}

  defp part(value, c), do: walk(value, c)

  defp spec({:-, meta, [left, right]}, c), do: {:-, line(meta), [spec(left, c), spec(right, c)]}
  defp spec({:*, meta, [size, unit]}, c) when is_integer(unit), do: {:*, line(meta), [size(size, c), unit]}
  defp spec({:size, meta, [size]}, c), do: {:size, line(meta), [size(size, c)]}
  defp spec({:unit, meta, [unit]}, _) when is_integer(unit), do: {:unit, line(meta), [unit]}
  defp spec({type, meta, args}, _) when type in @types and args in [nil, []], do: {type, line(meta), args}
  defp spec(size, _) when is_integer(size), do: size
  defp spec(_, _), do: restricted("this part of <<>>")

  # A size that is computed would be computed twice: once to be looked at.
  defp size(size, _) when is_integer(size), do: size
  defp size({name, _, context} = size, c) when is_atom(context) and name != :_, do: walk(size, c)
  defp size(size, %{place: :match} = c), do: walk(size, guard(c))
  defp size(_, _), do: refuse("in <<>>, size takes a number or a variable")

  defp sizes({:-, _, [left, right]}), do: sizes(left) ++ sizes(right)
  defp sizes({:*, _, [size, unit]}), do: [size, unit]
  defp sizes({name, _, [size]}) when name in [:size, :unit], do: [size]
  defp sizes(size) when is_integer(size), do: [size]
  defp sizes(_), do: []

  defp sigil(name, _, parts, [?a], c) when name in [:sigil_w, :sigil_W] do
    if c.place == :guard or not Enum.all?(parts, &is_binary/1),
      do: restricted("making atoms from a computed text")

    text = Enum.join(parts)
    text = if name == :sigil_w, do: Macro.unescape_string(text), else: text
    for word <- String.split(text), do: atom(word)
  end

  defp sigil(name, meta, parts, modifiers, c) do
    # The macro would run on what stands there.
    (is_list(modifiers) and Enum.all?(modifiers, &is_integer/1)) ||
      restricted("a sigil with computed modifiers")

    parts = Enum.map(parts, &part(&1, c))
    meta = Keyword.take(meta, [:line, :delimiter])
    {name, meta, [{:<<>>, line(meta), parts}, modifiers]}
  end

  # ---- helpers: clauses ----------------------------------------------------------------------

  defp clauses(clauses, c) do
    Enum.map(list(clauses, "this"), fn
      {:->, meta, [left, body]} -> {:->, line(meta), [heads(left, c), walk(body, c)]}
      _ -> restricted("this clause")
    end)
  end

  defp heads([{:when, meta, parts}], c) do
    {patterns, [test]} = Enum.split(parts, -1)
    [{:when, line(meta), each(patterns, match(c)) ++ [tests(test, c)]}]
  end

  defp heads(patterns, c), do: each(patterns, match(c))

  defp head({:when, meta, [pattern, test]}, c),
    do: {:when, line(meta), [walk(pattern, match(c)), tests(test, c)]}

  defp head(pattern, c), do: walk(pattern, match(c))

  defp tests({:when, meta, [left, right]}, c),
    do: {:when, line(meta), [walk(left, guard(c)), tests(right, c)]}

  defp tests(test, c), do: walk(test, guard(c))

  defp step({:<-, meta, [pattern, value]}, c),
    do: {:<-, line(meta), [head(pattern, c), walk(value, c)]}

  defp step({:<<>>, meta, parts} = whole, c) do
    case Enum.split(parts, -1) do
      {parts, [{:<-, arrow, [last, value]}]} ->
        parts = Enum.map(parts ++ [last], &part(&1, match(c)))
        {parts, [last]} = Enum.split(parts, -1)
        {:<<>>, line(meta), parts ++ [{:<-, line(arrow), [last, walk(value, c)]}]}

      _ ->
        walk(whole, c)
    end
  end

  defp step(other, c), do: walk(other, c)

  defp options?(list), do: list != [] and Keyword.keyword?(list)

  defp option({key, [{:->, _, _} | _] = clauses}, c) when key in [:do, :else],
    do: {key, clauses(clauses, c)}

  defp option({key, value}, c) when key in [:do, :else, :into, :uniq, :reduce],
    do: {key, walk(value, c)}

  defp option({key, _}, _), do: restricted("the option #{Names.text(key)}")

  defp try_part({key, body}, c) when key in [:do, :after], do: {key, walk(body, c)}
  defp try_part({key, list}, c) when key in [:catch, :else], do: {key, clauses(list, c)}

  defp try_part({:rescue, list}, c) do
    clauses =
      Enum.map(list(list, "rescue"), fn {:->, meta, [[left], body]} ->
        {:->, line(meta), [[rescued(left, c)], walk(body, c)]}
      end)

    {:rescue, clauses}
  end

  defp try_part(_, _), do: restricted("this part of try")

  defp rescued({:in, meta, [variable, names]}, c),
    do: {:in, line(meta), [walk(variable, match(c)), rescued(names, c)]}

  defp rescued(names, c) when is_list(names), do: Enum.map(names, &rescued(&1, c))
  defp rescued(other, c), do: walk(other, match(c))

  # ---- helpers: calls ------------------------------------------------------------------------

  defp safe(name, args), do: {{:., [], [Safe, name]}, [], args}

  defp pipe(left, {{:., _, _}, _, _} = right), do: into(left, right)
  defp pipe(left, {name, _, _} = right) when is_atom(name) or is_map(name), do: into(left, right)
  defp pipe(_, _), do: refuse("|> needs a call on its right, as in: list |> Enum.sum()")

  # A name alone, `x |> f`, is the call f(x).
  defp into(left, {name, meta, context}) when is_atom(context), do: {name, meta, [left]}

  defp into(left, {:__aliases__, _, _}),
    do: refuse("|> needs a call on its right; #{Macro.to_string(left)} cannot go into a module")

  defp into(left, {name, meta, args}), do: {name, Keyword.delete(meta, :no_parens), [left | args]}

  defp apply_to({name, _, context} = function, meta, args, c)
       when is_atom(context) and length(args) != 1 do
    if MapSet.member?(c.gates, Names.text(name)),
      do: {{:., [], [Requests, :gate]}, line(meta), [Names.text(name), each(args, c)]},
      else: applied(function, meta, args, c)
  end

  defp apply_to(function, meta, args, c), do: applied(function, meta, args, c)

  defp applied(function, meta, args, c),
    do: {{:., line(meta), [walk(function, c)]}, line(meta), each(args, c)}

  defp remote({:module, :erlang}, name, _, _, _) when name in [:binary_to_atom, :binary_to_existing_atom],
    do: restricted("making atoms from a computed text")

  # `"\#{x}"` calls Kernel.to_string. What Kernel offers is checked as if it were written without its name.
  defp remote({:module, Kernel}, name, meta, args, c) do
    if is_atom(name) and Rules.macro?(name),
      do: walk({name, meta, args}, c),
      else: known(Kernel, name, meta, args, c)
  end

  defp remote({:module, module}, name, meta, args, c), do: known(module, name, meta, args, c)

  # A module that does not exist now may when this runs, where code may compile.
  defp remote({:unknown, name}, function, meta, args, c) do
    if c.place == :body and MapSet.member?(c.gates, "compile_and_load"),
      do: dynamic(atom("Elixir." <> name), function, meta, args, c),
      else: restricted("function #{name}.#{Names.text(function)}/#{length(args)}")
  end

  defp remote({:value, value}, name, meta, args, %{place: :body} = c) do
    if meta[:no_parens] && args == [],
      do: safe(:dot, [walk(value, c), walk(name, c)]),
      else: dynamic(walk(value, c), name, meta, args, c)
  end

  defp remote({:value, _}, name, _, args, _),
    do: restricted("calling #{Names.text(name)}/#{length(args)} here")

  defp dynamic(module, name, _, args, c),
    do: safe(:call, [module, walk(name, c), each(args, c)])

  defp known(module, name, meta, args, c) do
    case Rules.function(module, name, length(args)) do
      :allowed ->
        {{:., line(meta), [module, name]}, line(meta), each(args, c)}

      {:replaced, safe} when c.place == :body ->
        safe(safe, each(args, c))

      _ ->
        if c.place == :body and not Rules.module?(module) and MapSet.member?(c.gates, "compile_and_load") and
             is_atom(name) and not Code.ensure_loaded?(module),
           do: dynamic(module, name, meta, args, c),
           else: restricted(module, name, length(args))
    end
  end

  defp local(name, meta, args, c) do
    arity = length(args)

    cond do
      not is_atom(name) or not (Rules.local?(name) or exists?(name, arity)) ->
        refuse("undefined function #{Names.text(name)}/#{arity}")

      not Rules.local?(name) ->
        restricted(if special?(name, arity), do: "#{name}", else: "function #{name}/#{arity}")

      name in @sigils ->
        restricted("a sigil that is written as a call")

      true ->
        allowed(Rules.function(Kernel, name, arity), name, meta, args, c)
    end
  end

  defp allowed({:replaced, safe}, _, _, args, %{place: :body} = c), do: safe(safe, each(args, c))
  defp allowed(_, name, meta, args, c), do: {name, line(meta), each(args, c)}

  defp exists?(name, arity) do
    special?(name, arity) or Keyword.has_key?(Kernel.__info__(:functions), name) or
      Keyword.has_key?(Kernel.__info__(:macros), name)
  end

  defp special?(name, arity),
    do:
      Macro.special_form?(name, arity) or Keyword.has_key?(Kernel.SpecialForms.__info__(:macros), name) or
        Keyword.has_key?(Kernel.__info__(:macros), name)

  defp capture({:/, meta, [{{:., _, [module, name]}, _, []}, arity]}, _, c) when is_integer(arity) do
    case module_of(module) do
      {:module, module} ->
        captured(Rules.function(module, name, arity), module, name, arity, meta)

      {:unknown, text} ->
        restricted("function #{text}.#{Names.text(name)}/#{arity}")

      {:value, value} ->
        safe(:capture, [walk(value, c), walk(name, c), arity])
    end
  end

  defp capture({:/, meta, [{name, _, context}, arity]}, _, _) when is_atom(context) and is_integer(arity) do
    cond do
      not is_atom(name) or not exists?(name, arity) ->
        refuse("undefined function #{Names.text(name)}/#{arity}")

      Rules.macro?(name) ->
        {:&, line(meta), [{:/, [], [{name, [], nil}, arity]}]}

      true ->
        captured(Rules.function(Kernel, name, arity), Kernel, name, arity, meta)
    end
  end

  defp capture(body, meta, c), do: {:&, line(meta), [walk(body, c)]}

  defp captured(:allowed, module, name, arity, meta), do: mfa(module, name, arity, meta)
  defp captured({:replaced, safe}, _, _, arity, meta), do: mfa(Safe, safe, arity, meta)
  defp captured(:restricted, Kernel, name, arity, _), do: restricted("function #{name}/#{arity}")
  defp captured(:restricted, module, name, arity, _), do: restricted(module, name, arity)

  defp mfa(module, name, arity, meta),
    do: {:&, line(meta), [{:/, [], [{{:., [], [module, name]}, [no_parens: true], []}, arity]}]}

  # `put_in(user.address[:street], …)`: the macro reads its first argument as a path.
  defp path({{:., meta, [Access, :get]}, _, [value, key]}, c),
    do: {{:., line(meta), [Access, :get]}, [], [path(value, c), walk(key, c)]}

  defp path({{:., meta, [value, name]}, _, []} = whole, c) do
    case module_of(value) do
      {:value, value} -> {{:., line(meta), [path(value, c), walk(name, c)]}, [no_parens: true], []}
      _ -> walk(whole, c)
    end
  end

  defp path(value, c), do: walk(value, c)

  defp raised({:__aliases__, _, parts}, _) do
    case alias_module(parts) do
      {nil, name} -> restricted("exception #{name}")
      {module, _} -> if Rules.exception?(module), do: module, else: restricted("exception #{inspect(module)}")
    end
  end

  defp raised(what, c), do: walk(what, c)
end
