defmodule Caisson.Evaluator.Wire do
  @moduledoc false
  # Frames as bytes. What comes in is taken apart here and not by `binary_to_term`: that would make
  # atoms of whatever the other side names, and a `Ref` is to go back unread. A word that no atom of
  # this VM stands for stays a text; functions, references and compressed terms are refused.

  @depth 64
  @parts 262_144

  @doc "The frame as a tuple: its name, and its parts as raw bytes. `:error` when it is none."
  @spec open(binary) :: {:ok, binary, [binary]} | :error
  def open(<<131, 104, count, rest::binary>>) when count in 1..8 do
    case parts(rest, count, []) do
      [name | parts] ->
        with {:ok, name} <- decode(name), do: {:ok, to_string(name), parts}

      :error ->
        :error
    end
  end

  def open(_), do: :error

  defp parts("", 0, done), do: Enum.reverse(done)

  defp parts(bytes, left, done) when left > 0 do
    case skip(bytes, 1) do
      :error ->
        :error

      rest ->
        size = byte_size(bytes) - byte_size(rest)
        parts(rest, left - 1, [binary_part(bytes, 0, size) | done])
    end
  end

  defp parts(_, _, _), do: :error

  # Behind so many terms. Containers add theirs to the number, so that nothing recurs.
  defp skip(bytes, 0), do: bytes

  defp skip(<<tag, rest::binary>>, n) do
    case tag do
      97 -> past(rest, 1, n)
      98 -> past(rest, 4, n)
      70 -> past(rest, 8, n)
      106 -> skip(rest, n - 1)
      77 -> long(rest, 1, n)
      109 -> long(rest, 0, n)
      tag when tag in [100, 118, 107] -> short(rest, n)
      tag when tag in [115, 119] -> tiny(rest, 0, n)
      110 -> tiny(rest, 1, n)
      111 -> long(rest, 1, n)
      104 -> many(rest, 8, 1, 0, n)
      105 -> many(rest, 32, 1, 0, n)
      108 -> many(rest, 32, 1, 1, n)
      116 -> many(rest, 32, 2, 0, n)
      103 -> named(rest, 9, n)
      88 -> named(rest, 12, n)
      102 -> named(rest, 5, n)
      89 -> named(rest, 8, n)
      120 -> named(rest, 12, n)
      90 -> reference(rest, 4, n)
      114 -> reference(rest, 1, n)
      _ -> :error
    end
  end

  defp skip(_, _), do: :error

  defp past(bytes, size, n) do
    case bytes do
      <<_::binary-size(size), rest::binary>> -> skip(rest, n - 1)
      _ -> :error
    end
  end

  defp tiny(<<size, rest::binary>>, more, n), do: past(rest, size + more, n)
  defp tiny(_, _, _), do: :error
  defp short(<<size::16, rest::binary>>, n), do: past(rest, size, n)
  defp short(_, _), do: :error
  defp long(<<size::32, rest::binary>>, more, n), do: past(rest, size + more, n)
  defp long(_, _, _), do: :error

  defp many(bytes, bits, each, tail, n) do
    case bytes do
      <<count::size(bits), rest::binary>> -> skip(rest, n - 1 + count * each + tail)
      _ -> :error
    end
  end

  # A pid or a port: the atom of its node, and so many bytes.
  defp named(bytes, size, n) do
    case skip(bytes, 1) do
      :error -> :error
      rest -> past(rest, size, n)
    end
  end

  defp reference(<<count::16, rest::binary>>, creation, n),
    do: named(rest, creation + 4 * count, n)

  defp reference(_, _, _), do: :error

  @doc "One term of plain data; nothing is made of what is none."
  @spec decode(binary) :: {:ok, term} | :error
  def decode(bytes) do
    {term, "", _} = take(bytes, @depth, @parts)
    {:ok, term}
  rescue
    _ in [MatchError, FunctionClauseError, ArgumentError] -> :error
  end

  defp take(<<109, size::32, bytes::binary-size(size), rest::binary>>, _, left) when left > 0,
    do: {:binary.copy(bytes), rest, left - 1}

  defp take(<<97, number, rest::binary>>, _, left) when left > 0, do: {number, rest, left - 1}

  defp take(<<98, number::signed-32, rest::binary>>, _, left) when left > 0,
    do: {number, rest, left - 1}

  defp take(<<70, number::float-64, rest::binary>>, _, left) when left > 0,
    do: {number, rest, left - 1}

  defp take(<<106, rest::binary>>, _, left) when left > 0, do: {[], rest, left - 1}

  defp take(<<tag, n, text::binary-size(n), rest::binary>>, _, left)
       when tag in [119, 115] and left > 0,
       do: {word(text), rest, left - 1}

  defp take(<<tag, n::16, text::binary-size(n), rest::binary>>, _, left)
       when tag in [118, 100] and left > 0,
       do: {word(text), rest, left - 1}

  defp take(<<110, n, sign, bytes::binary-size(n), rest::binary>>, _, left)
       when sign < 2 and left > 0,
       do: {whole(sign, bytes), rest, left - 1}

  defp take(<<111, n::32, sign, bytes::binary-size(n), rest::binary>>, _, left)
       when sign < 2 and left > 0,
       do: {whole(sign, bytes), rest, left - 1}

  defp take(<<107, n::16, bytes::binary-size(n), rest::binary>>, _, left) when left > n,
    do: {:binary.bin_to_list(bytes), rest, left - 1 - n}

  defp take(<<104, n, rest::binary>>, depth, left), do: tuple(rest, n, depth, left)
  defp take(<<105, n::32, rest::binary>>, depth, left), do: tuple(rest, n, depth, left)

  defp take(<<108, n::32, rest::binary>>, depth, left) when depth > 0 and left > n do
    {items, <<106, rest::binary>>, left} = each(rest, n, depth - 1, left - 1, [])
    {items, rest, left}
  end

  defp take(<<116, n::32, rest::binary>>, depth, left) when depth > 0 and left > 2 * n do
    {items, rest, left} = each(rest, 2 * n, depth - 1, left - 1, [])
    {items |> Enum.chunk_every(2) |> Map.new(fn [key, value] -> {key, value} end), rest, left}
  end

  defp tuple(bytes, n, depth, left) when depth > 0 and left > n do
    {items, rest, left} = each(bytes, n, depth - 1, left - 1, [])
    {List.to_tuple(items), rest, left}
  end

  defp each(rest, 0, _depth, left, items), do: {Enum.reverse(items), rest, left}

  defp each(rest, n, depth, left, items) do
    {item, rest, left} = take(rest, depth, left)
    each(rest, n - 1, depth, left, [item | items])
  end

  defp whole(sign, bytes) do
    number = :binary.decode_unsigned(bytes, :little)
    if sign == 0, do: number, else: -number
  end

  defp word("null"), do: nil

  defp word(text) do
    String.to_existing_atom(text)
  rescue
    _ in [ArgumentError, SystemLimitError] -> text
  end

  @doc "A frame of parts that are bytes already."
  @spec frame(atom, [iodata]) :: iodata
  def frame(name, parts), do: [<<131, 104, length(parts) + 1>>, bytes(name) | parts]

  @doc "The bytes of one term, as a part of a frame."
  @spec bytes(term) :: binary
  def bytes(term) do
    <<131, bytes::binary>> = :erlang.term_to_binary(term, minor_version: 2)
    bytes
  end

  @doc "The bytes of a map with texts for keys, of values that are bytes already."
  @spec map([{binary, iodata}]) :: iodata
  def map(pairs),
    do: [<<116, length(pairs)::32>> | Enum.map(pairs, fn {key, value} -> [bytes(key), value] end)]
end
