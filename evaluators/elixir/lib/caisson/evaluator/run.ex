defmodule Caisson.Evaluator.Run do
  @moduledoc false
  # One evaluation, in a process of its own: statement by statement. What a statement bound goes to the
  # process that owns the session as soon as it finished, so that nothing that ends this one takes it
  # back: an exception, a limit, a kill.

  alias Caisson.Evaluator.{Check, Names, Net, Plain, Requests, Rules, Safe}

  @doc "What is sent to `owner`: `{:bound, pid, changes}` after each statement, then `{:finished, pid, …}`."
  def start(owner, job) do
    options = if job.sandbox == :port, do: [max_heap_size: heap(job.limits.heap_bytes)], else: []

    :erlang.spawn_opt(
      fn ->
        Process.group_leader(self(), job.device)
        send(owner, {:finished, self(), run(owner, job)})
      end,
      [:monitor | options]
    )
  end

  defp heap(bytes),
    do: %{size: div(bytes, :erlang.system_info(:wordsize)), kill: true, error_logger: false}

  defp run(_, %{limits: %{source_bytes: most}, code: code}) when byte_size(code) > most,
    do: {:error, "the code has #{byte_size(code)} bytes, at most #{most} are taken"}

  defp run(owner, job) do
    if String.valid?(job.code),
      do: read(owner, job),
      else: {:error, "the code is not UTF-8"}
  end

  defp read(owner, job) do
    case if(job.sandbox == :port, do: Names.read(job.code), else: Names.read_raw(job.code)) do
      {:ok, tree} -> tree |> statements() |> each(owner, job)
      {:error, why} -> {:error, why}
    end
  end

  defp statements({:__block__, _, list}), do: list
  defp statements(tree), do: [tree]

  defp each(statements, owner, job) do
    state = %{owner: owner, job: job, binding: job.binding, value: nil, env: env(job)}

    case Enum.reduce_while(statements, state, &next/2) do
      {:error, why} -> {:error, why}
      state -> value(state.value)
    end
  end

  defp env(%{sandbox: :port}), do: Code.env_for_eval(tracers: [Net])
  defp env(_), do: Code.env_for_eval(file: "eval")

  defp next(statement, state) do
    case one(statement, state) do
      {:ok, value, binding, env} ->
        changed = Map.reject(binding, fn {name, value} -> same?(state.binding, name, value) end)
        if changed != %{}, do: send(state.owner, {:bound, self(), Enum.map(changed, &cross/1)})
        {:cont, %{state | value: value, binding: Map.merge(state.binding, binding), env: env}}

      {:error, why} ->
        {:halt, {:error, why <> place(statement, state.job.code)}}
    end
  end

  defp same?(binding, name, value) do
    case binding do
      %{^name => old} -> :erts_debug.same(old, value)
      _ -> false
    end
  end

  # Only what can cross is sent at all: a term that is small here may be huge as a message.
  defp cross({name, value}) do
    case Plain.encode(value) do
      {:ok, bytes, parts, false} -> {name, {:kept, value, bytes, parts}}
      {:ok, _, _, true} -> {name, :handle}
      {:error, why} -> {name, {:dropped, why}}
    end
  end

  defp value(value) do
    case Plain.encode(value) do
      {:ok, bytes, parts, _} ->
        {:ok, bytes, parts}

      {:error, why} ->
        {:error, "the value cannot cross: #{why}; keep it in a variable and return a part of it"}
    end
  end

  defp place(statement, code) do
    if String.contains?(String.trim(code), "\n"),
      do: " (line #{line(statement)})",
      else: ""
  end

  defp line(statement) do
    {_, line} =
      Macro.prewalk(statement, nil, fn
        {_, meta, _} = node, nil when is_list(meta) -> {node, meta[:line]}
        node, line -> {node, line}
      end)

    line || 1
  end

  # ---- one statement -------------------------------------------------------------------------

  defp one(statement, %{job: %{sandbox: :port}} = state) do
    gates = MapSet.new(state.job.gates)

    with {:ok, tree} <- Check.statement(statement, gates),
         all = if(binding?(tree), do: Map.keys(state.binding), else: []),
         {:ok, tree, names} <- Names.variables(tree, all) do
      shown = Map.drop(names, state.job.gates)
      tree = Macro.prewalk(tree, &binding(&1, shown))
      texts = Map.new(names, fn {text, name} -> {name, text} end)
      known = for {text, name} <- names, {:ok, value} <- [fetch(state, text)], do: {name, value}
      evaluate(tree, known, state, texts)
    end
  end

  defp one(statement, state) do
    gates = MapSet.new(state.job.gates)
    names = Enum.uniq(Map.keys(state.binding) ++ state.job.gates)
    known = for text <- names, {:ok, value} <- [fetch(state, text)], do: {String.to_atom(text), value}
    texts = fn name -> Atom.to_string(name) end
    evaluate(Macro.prewalk(statement, &call(&1, gates)), known, state, texts)
  end

  # A gate takes any number of arguments, a function one.
  defp call({{:., _, [{name, _, context}]}, meta, args} = node, gates)
       when is_atom(name) and is_atom(context) and is_list(args) and length(args) != 1 do
    if MapSet.member?(gates, Atom.to_string(name)),
      do: {{:., [], [Requests, :gate]}, meta, [Atom.to_string(name), args]},
      else: node
  end

  defp call(node, _), do: node

  defp fetch(state, text) do
    if text in state.job.gates,
      do: {:ok, Requests.closure(text)},
      else: Map.fetch(state.binding, text)
  end

  defp binding?(tree) do
    {_, found} = Macro.prewalk(tree, false, &{&1, &2 or match?({:binding, [], [:caisson]}, &1)})
    found
  end

  defp binding({:binding, [], [:caisson]}, names),
    do: {{:., [], [Safe, :binding]}, [], [{:binding, [], []}, Macro.escape(names)]}

  defp binding(node, _), do: node

  defp evaluate(tree, known, state, texts) do
    {value, binding, env} = quietly(fn -> Code.eval_quoted_with_env(tree, known, state.env) end)

    binding =
      for {name, value} <- binding, text = text(texts, name), text not in state.job.gates, into: %{} do
        {text, value}
      end

    {:ok, value, binding, env}
  catch
    kind, reason -> {:error, failure(kind, reason, __STACKTRACE__, texts, state)}
  end

  defp text(texts, name) when is_atom(name) and is_map(texts), do: texts[name]
  defp text(texts, name) when is_atom(name), do: texts.(name)
  # A variable of a macro's.
  defp text(_, _), do: nil

  # From Elixir 1.15 on a compile error's sentence is told beside the exception.
  defp quietly(function) do
    if function_exported?(Code, :with_diagnostics, 1) do
      {result, told} = apply(Code, :with_diagnostics, [fn -> caught(function) end])

      case result do
        {:ok, value} ->
          value

        {:error, %CompileError{} = error, stack} ->
          message = Enum.find_value(told, error.description, &(&1.severity == :error && &1.message))
          :erlang.raise(:error, %{error | description: message}, stack)

        {:error, error, stack} ->
          :erlang.raise(:error, error, stack)
      end
    else
      function.()
    end
  end

  defp caught(function) do
    {:ok, function.()}
  rescue
    error -> {:error, error, __STACKTRACE__}
  end

  # ---- sentences -----------------------------------------------------------------------------

  defp failure(:error, reason, stack, texts, state) do
    case Exception.normalize(:error, reason, stack) do
      %Caisson.Evaluator.Restricted{message: message} -> message
      %CompileError{} = error -> compile_error(error, texts, state)
      error -> clip(Exception.format_banner(:error, error, stack))
    end
  end

  defp failure(kind, reason, stack, _, _), do: clip(Exception.format_banner(kind, reason, stack))

  defp compile_error(error, texts, state) do
    message = error.description || Exception.message(error)

    case Regex.run(~r/undefined (?:function|variable) "?(v\$\d+|\w+)"?(?:\/0|$)/, message) do
      [_, name] -> undefined(name(name, texts), state)
      nil -> Regex.replace(~r/v\$\d+/, message, &name(&1, texts))
    end
    |> clip()
  end

  defp name("v$" <> _ = name, texts) when is_map(texts),
    do: Enum.find_value(texts, name, fn {atom, text} -> Atom.to_string(atom) == name && text end)

  defp name(name, _), do: name

  defp undefined(name, state) do
    case state.job.handles do
      %{^name => why} -> "undefined variable #{name}: #{why}"
      _ -> "undefined variable #{name}"
    end
  end

  defp clip(text), do: if(String.length(text) > 1900, do: String.slice(text, 0, 1900) <> "…", else: text)

  @doc "What this evaluator allows, as text."
  def describe(sandbox), do: Rules.describe(sandbox)
end
