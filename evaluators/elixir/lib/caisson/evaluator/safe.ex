defmodule Caisson.Evaluator.Restricted do
  @moduledoc false
  defexception [:message]
end

defmodule Caisson.Evaluator.Safe do
  @moduledoc false
  # What checked code calls where only the run shows what is meant, or how much. No code can name this
  # module: the table does not list it.

  alias Caisson.Evaluator.{Names, Restricted, Rules}

  @binary 64 * 1024 * 1024

  def mfa(module, name, arity) when is_atom(name), do: Exception.format_mfa(module, name, arity)
  def mfa(module, name, arity), do: "#{inspect(module)}.#{name}/#{arity}"

  defp restricted(module, name, arity),
    do: raise(Restricted, "function #{mfa(module, name, arity)} is restricted")

  @doc "`module.name(args)`, `apply(module, name, args)`"
  def call(module, name, args) when is_atom(module) and is_atom(name) and is_list(args) do
    case rule(module, name, length(args)) do
      :allowed -> apply(module, name, args)
      {:replaced, safe} -> apply(__MODULE__, safe, args)
      :restricted -> restricted(module, name, length(args))
    end
  end

  def call(%{} = map, name, args) when is_atom(name) do
    raise ArgumentError,
          "#{name} is a key of a map: call a function there as map.#{name}.(…); got #{length(args)} " <>
            "arguments and keys #{inspect(Map.keys(map), limit: 20)}"
  end

  def call(other, name, _),
    do: raise(ArgumentError, "cannot call #{inspect(name)} of #{inspect(other, limit: 20)}: it is no module")

  # Operators and guards of Kernel that are macros cannot be called so, and are not found.
  defp rule(module, name, arity), do: Rules.function(module, name, arity)

  @doc "`value.name`: a key of a map, or a function of a module."
  def dot(map, key) when is_map(map), do: Map.fetch!(map, key)
  def dot(module, name), do: call(module, name, [])

  def apply(function, args) when is_function(function), do: Kernel.apply(function, args)
  def apply(other, _), do: raise(BadFunctionError, term: other)

  def capture(module, name, arity) when is_atom(module) and is_atom(name) do
    case rule(module, name, arity) do
      :allowed -> Function.capture(module, name, arity)
      {:replaced, safe} -> Function.capture(__MODULE__, safe, arity)
      :restricted -> restricted(module, name, arity)
    end
  end

  def struct(name, fields \\ []), do: Kernel.struct(struct_name(name), fields)
  def struct!(name, fields \\ []), do: Kernel.struct!(struct_name(name), fields)

  defp struct_name(%{__struct__: _} = struct), do: struct

  defp struct_name(name) do
    if is_atom(name) and Rules.struct?(name),
      do: name,
      else: raise(Restricted, "struct #{inspect(name)} is restricted")
  end

  @doc "`binding()`: the names as the code knows them."
  def binding(values, names) do
    texts = Map.new(names, fn {text, name} -> {name, text} end)

    for {name, value} <- values, {:ok, atom} <- [Names.atom(texts[name] || "?")] do
      {atom, value}
    end
    |> Enum.sort()
  end

  # ---- how much ------------------------------------------------------------------------------

  def sized(bits) when bit_size(bits) <= @binary * 8, do: bits
  def sized(bits), do: too_large(byte_size(bits))

  @doc "What a segment of <<>> announces, before it is made."
  def bits(size) when is_integer(size) and size > @binary * 8, do: too_large(div(size, 8))
  def bits(size), do: size

  defp too_large(size),
    do: raise(ArgumentError, "a binary of #{size} bytes: at most #{@binary} can be made here")

  defp room(size) when size > @binary, do: too_large(size)
  defp room(_), do: :ok

  def duplicate(text, count) when is_binary(text) and is_integer(count) do
    room(byte_size(text) * count)
    String.duplicate(text, count)
  end

  def duplicate(text, count), do: String.duplicate(text, count)

  def pad_leading(text, count, padding \\ [" "]), do: pad(:pad_leading, text, count, padding)
  def pad_trailing(text, count, padding \\ [" "]), do: pad(:pad_trailing, text, count, padding)

  defp pad(name, text, count, padding) do
    widest = padding |> List.wrap() |> Enum.map(&IO.iodata_length/1) |> Enum.max(fn -> 1 end)
    if is_integer(count), do: room(count * widest)
    Kernel.apply(String, name, [text, count, padding])
  end

  def iodata_to_binary(data) do
    room(IO.iodata_length(data))
    IO.iodata_to_binary(data)
  end

  def join(items, joiner \\ "") do
    texts = Enum.map(items, &String.Chars.to_string/1)
    room(Enum.reduce(texts, length(texts) * byte_size(joiner), &(byte_size(&1) + &2)))
    Enum.join(texts, joiner)
  end

  # ---- expressions ---------------------------------------------------------------------------

  for {module, name, arity} <- Rules.expressions() do
    args = Macro.generate_arguments(arity, __MODULE__)

    def unquote(:"#{inspect(module)}.#{name}/#{arity}")(unquote_splicing(args)) do
      checked = for arg <- unquote(args), do: expression(arg)
      Kernel.apply(unquote(module), unquote(name), checked)
    end
  end

  defp expression(%{__struct__: Regex} = regex) do
    case regex do
      %{source: source, opts: opts} -> Regex.compile!(source, opts)
      _ -> raise ArgumentError, "this is no expression"
    end
  end

  defp expression(other), do: other

  # ---- where to ------------------------------------------------------------------------------

  def puts(device, value), do: IO.puts(device(device), value)
  def write(device, value), do: IO.write(device(device), value)
  def inspect(device, value, options), do: IO.inspect(device(device), value, options)

  defp device(device) when device in [:stdio, :stderr, :standard_io, :standard_error], do: :stdio
  defp device(other), do: raise(Restricted, "the device #{inspect(other)} is restricted: print to :stdio")
end

defmodule Caisson.Evaluator.Net do
  @moduledoc false
  # The second net: the compiler tells of every call in the tree that it expanded, which is what will
  # run, whatever `Check` saw in what was written. It is the same table.

  alias Caisson.Evaluator.{Requests, Restricted, Rules, Safe}

  @ours [Safe, Requests]

  def trace({kind, _, module, name, arity}, _) when kind in [:remote_function, :imported_function] do
    if module in @ours or Rules.expanded?(module, name, arity),
      do: :ok,
      else: raise(Restricted, "function #{Safe.mfa(module, name, arity)} is restricted")
  end

  def trace(_, _), do: :ok
end
