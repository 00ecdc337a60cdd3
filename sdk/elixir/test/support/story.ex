defmodule Caisson.Story do
  @moduledoc false
  # Tells a file of sdk/conformance to a sandbox: each row's call by this package's own functions, and
  # its answer in the table's words.

  alias Caisson.{Error, Help, Json, Sandbox}

  @folder Path.expand("../../../conformance", __DIR__)
  @schema "caisson.conformance/1"

  def files, do: @folder |> Path.join("*.json") |> Path.wildcard() |> Enum.sort()

  @doc "What is different, as sentences."
  def tell(file) do
    story = file |> File.read!() |> Json.decode!()
    @schema = story["schema"]
    folder = Help.folder()
    places = %{"workspace" => Path.join(folder, "ws"), "host" => Path.join(folder, "host")}
    File.mkdir_p!(places["host"])
    Enum.each(places, fn {_, path} -> File.chmod!(path, 0o700) end)

    for {name, path} <- places, {file, content} <- story[name] || %{} do
      File.mkdir_p!(Path.dirname(Path.join(path, file)))
      File.write!(Path.join(path, file), data(content))
    end

    told = %{story: story, folder: folder, places: places}
    {:ok, sb} = open(told, story["open"] || %{})
    wrong = Enum.flat_map(story["rows"], &check(sb, told, &1))
    :ok = Sandbox.shutdown(sb)
    wrong
  end

  defp open(told, options) do
    {more, options} = Map.split(replaced(options, told.places), ["mode", "no_record"])

    options = Enum.map(options, fn {name, value} -> {String.to_atom(name), value} end)
    options = [cwd: told.places["workspace"], record: more["no_record"] == false] ++ options
    options = if more["mode"], do: [mode: more["mode"]] ++ options, else: options
    text = told.story["policy"]

    options =
      if text && !options[:policy],
        do: [policy: {:text, replaced(text, told.places)}] ++ options,
        else: options

    Sandbox.new(Sandbox.Wall, Help.policy_file(options, told.folder))
  end

  # ---- a row ---------------------------------------------------------------------------------

  defp check(sb, told, row) do
    args = row["args"] |> Kernel.||(%{}) |> replaced(told.places) |> ready()
    found = answer(row["call"], sb, told, args, row["meanwhile"])

    expected =
      if row["error"], do: %{"error" => error_row(row["error"])}, else: row["result"] || %{}

    cond do
      !row["error"] && is_map(found["error"]) -> ["#{row["name"]}: #{inspect(found)}"]
      text = different(expected, found, row["name"]) -> [text]
      true -> []
    end
  end

  defp error_row(%{"says" => says} = error), do: %{error | "says" => %{"contains" => says}}
  defp error_row(error), do: error

  defp answer(call, sb, told, args, meanwhile) do
    case made(call, sb, told, args, meanwhile) do
      {:ok, found} -> found
      :ok -> %{}
      {:error, %Error{details: %{occurrences: _} = details}} -> strings(details)
      {:error, %Error{} = error} -> %{"error" => told_error(error)}
    end
  end

  defp told_error(error),
    do: %{
      "code" => to_string(error.code),
      "stage" => error.stage,
      "says" => error.message,
      "refused" => Error.refusal?(error)
    }

  defp made("open", _sb, told, args, _) do
    with {:ok, other} <- open(told, args), do: Sandbox.shutdown(other)
  end

  defp made("verbs", sb, _, %{"names" => names}, _) do
    {:ok, info} = Sandbox.info(sb)
    verbs = Enum.map(info.verbs, &to_string/1)
    {:ok, %{"has" => Enum.map(names, &(&1 in verbs))}}
  end

  defp made("exec", sb, _, args, meanwhile) do
    {command, opts} = Keyword.pop(options(args), :command)
    {argv, opts} = Keyword.pop(opts, :argv)
    {rows, opts} = Keyword.pop(opts, :rows, 24)
    {columns, opts} = Keyword.pop(opts, :cols, 80)
    opts = if opts[:tty], do: Keyword.put(opts, :tty, {rows, columns}), else: opts

    case run(sb, command || argv, opts, meanwhile) do
      {:ok, done} -> {:ok, exec_told(done)}
      error -> error
    end
  end

  defp made("ps", sb, _, _, _) do
    with {:ok, commands} <- Sandbox.ps(sb), do: {:ok, strings(%{commands: commands})}
  end

  defp made("logs", sb, _, args, _) do
    {tag, opts} = Keyword.pop(options(args), :tag)

    with {:ok, done} <- Sandbox.logs(sb, tag, opts),
         do: {:ok, strings(Map.put(done, :cut_bytes, done.cut))}
  end

  defp made("wait", sb, _, args, _), do: by_tag(args, &Sandbox.wait(sb, &1, &2))
  defp made("kill", sb, _, args, _), do: by_tag(args, &Sandbox.kill(sb, &1, &2))

  defp made("read", sb, _, args, _) do
    {path, opts} = Keyword.pop(options(args), :path)
    with {:ok, content} <- Sandbox.read(sb, path, opts), do: {:ok, %{"bytes" => content}}
  end

  defp made("write", sb, _, args, _) do
    {path, opts} = Keyword.pop(options(args), :path)
    {content, opts} = Keyword.pop(opts, :bytes, "")
    Sandbox.write(sb, path, content, opts)
  end

  defp made("edit", sb, _, args, _) do
    with {:ok, done} <- Sandbox.edit(sb, args["path"], args["old"], args["new"]),
         do: {:ok, strings(done)}
  end

  defp made("move", sb, _, args, _), do: Sandbox.move(sb, args["path"], args["to"])
  defp made("stat", sb, _, args, _), do: told_of(Sandbox.stat(sb, args["path"]))
  defp made("list", sb, _, args, _), do: told_of(Sandbox.list(sb, args["path"]))
  defp made("stats", sb, _, _, _), do: told_of(Sandbox.stats(sb))
  defp made("diff", sb, _, args, _), do: told_of(Sandbox.diff(sb, options(args)))
  defp made("commit", sb, _, args, _), do: told_of(Sandbox.commit(sb, options(args)))
  defp made("snapshot", sb, _, args, _), do: told_of(Sandbox.snapshot(sb, args["tag"]))

  defp made("remove", sb, _, args, _) do
    {path, opts} = Keyword.pop(options(args), :path)
    Sandbox.remove(sb, path, opts)
  end

  defp made("mount", sb, _, args, _) do
    mode = if args["writable"], do: :rw, else: :ro
    Sandbox.mount(sb, args["host"], args["at"], mode: mode)
  end

  defp made(verb, sb, _, args, _) when verb in ["glob", "grep"] do
    {pattern, opts} = Keyword.pop(options(args), :pattern)
    opts = [details: true] ++ opts

    told_of(
      if verb == "glob",
        do: Sandbox.glob(sb, pattern, opts),
        else: Sandbox.grep(sb, pattern, opts)
    )
  end

  defp by_tag(args, call) do
    {tag, opts} = Keyword.pop(options(args), :tag)
    told_of(call.(tag, opts))
  end

  defp told_of({:ok, map}), do: {:ok, strings(map)}
  defp told_of(other), do: other

  defp options(args) do
    Enum.map(args, fn
      {"timeout_ms", ms} -> {:timeout, ms}
      {name, value} -> {String.to_atom(name), value}
    end)
  end

  # ---- exec ----------------------------------------------------------------------------------

  defp run(sb, command, opts, nil) do
    if opts[:detach], do: Sandbox.start(sb, command, opts), else: Sandbox.exec(sb, command, opts)
  end

  defp run(sb, command, opts, meanwhile) do
    id = make_ref()

    {:ok,
     sb
     |> Sandbox.stream(command, [id: id] ++ opts)
     |> Enum.reduce({"", true, nil}, fn
       {:exit, result}, _ ->
         result

       {name, bytes}, {seen, is_due, _} when name in [:stdout, :stderr] ->
         seen = seen <> bytes
         is_now = is_due and String.contains?(seen, data(meanwhile["after"]))
         if is_now, do: meddle(sb, id, meanwhile)
         {seen, is_due and not is_now, nil}

       _, seen ->
         seen
     end)}
  end

  defp meddle(sb, id, %{"cancel" => true}), do: Sandbox.cancel(sb, id)
  defp meddle(sb, id, %{"signal" => number}), do: Sandbox.signal(sb, id, number)

  defp exec_told(done) do
    strings(
      done
      |> Map.merge(done.usage)
      |> Map.merge(done.termination)
      |> Map.put(:events, for(v <- done.violations, !v[:expected], do: v.event))
      |> Map.delete(:violations)
    )
  end

  # ---- values --------------------------------------------------------------------------------

  defp strings(map) when is_map(map),
    do: Map.new(map, fn {k, v} -> {to_string(k), strings(v)} end)

  defp strings(list) when is_list(list), do: Enum.map(list, &strings/1)
  defp strings(word) when word in [nil, true, false], do: word
  defp strings(word) when is_atom(word), do: to_string(word)
  defp strings(other), do: other

  defp is_value(item) when is_binary(item), do: true

  defp is_value(item) when is_map(item),
    do: Enum.any?(["base64", "repeat", "join"], &Map.has_key?(item, &1))

  defp is_value(_), do: false

  defp data(text) when is_binary(text), do: text
  defp data(%{"base64" => text}), do: Base.decode64!(text)
  defp data(%{"repeat" => value, "times" => count}), do: String.duplicate(data(value), count)
  defp data(%{"join" => items}), do: Enum.map_join(items, &data/1)

  defp ready(item) do
    cond do
      is_value(item) -> data(item)
      is_map(item) -> Map.new(item, fn {name, value} -> {name, ready(value)} end)
      is_list(item) -> Enum.map(item, &ready/1)
      true -> item
    end
  end

  defp replaced(text, places) when is_binary(text),
    do:
      Enum.reduce(places, text, fn {name, path}, text ->
        String.replace(text, "{#{name}}", path)
      end)

  defp replaced(map, places) when is_map(map),
    do: Map.new(map, fn {name, value} -> {name, replaced(value, places)} end)

  defp replaced(list, places) when is_list(list), do: Enum.map(list, &replaced(&1, places))
  defp replaced(other, _places), do: other

  # ---- comparing -----------------------------------------------------------------------------

  @matchers ["contains", "length", "at_least", "at_most"]

  @doc "nil, or where `found` is not as expected."
  def different(expected, found, where) do
    cond do
      is_value(expected) -> unless data(expected) == found, do: say(expected, found, where)
      is_map(expected) -> different_map(expected, found, where)
      is_list(expected) -> different_list(expected, found, where)
      expected === found -> nil
      true -> say(expected, found, where)
    end
  end

  defp different_map(expected, found, where) do
    cond do
      Enum.any?(@matchers, &Map.has_key?(expected, &1)) ->
        unless Enum.all?(expected, &matches?(&1, found)), do: say(expected, found, where)

      not is_map(found) ->
        say(expected, found, where)

      true ->
        Enum.find_value(expected, &different_pair(&1, found, where))
    end
  end

  # What an answer leaves out is not there.
  defp different_pair({name, value}, found, where),
    do: different(value, Map.get(found, name, absent(name)), "#{where}.#{name}")

  defp absent(name) when name in ["detached", "guarded", "is_context", "truncated"], do: false
  defp absent(_), do: nil

  defp different_list(expected, found, where) do
    if is_list(found) and length(expected) == length(found),
      do: Enum.find_value(Enum.zip(expected, found), fn {e, f} -> different(e, f, where) end),
      else: say(expected, found, where)
  end

  defp matches?({"contains", value}, found) when is_list(found),
    do: Enum.any?(found, &(different(value, &1, "") == nil))

  defp matches?({"contains", value}, found),
    do: is_binary(found) and String.contains?(found, data(value))

  defp matches?({"length", size}, found) when is_binary(found), do: byte_size(found) == size
  defp matches?({"length", size}, found), do: is_list(found) and length(found) == size
  defp matches?({"at_least", number}, found), do: is_number(found) and found >= number
  defp matches?({"at_most", number}, found), do: is_number(found) and found <= number

  defp say(expected, found, where) do
    short = &inspect(&1, limit: 20, printable_limit: 200)
    "#{where}: #{short.(expected)} expected, found #{short.(found)}"
  end
end
