defmodule Caisson.Json do
  @moduledoc false
  # Enough of JSON for the tables of sdk/conformance, which are ours. Elixir 1.14 has none.

  def decode!(text) do
    {value, rest} = value(skip(text))
    "" = skip(rest)
    value
  end

  defp skip(<<c, rest::binary>>) when c in ~c" \t\r\n", do: skip(rest)
  defp skip(rest), do: rest

  defp value("true" <> rest), do: {true, rest}
  defp value("false" <> rest), do: {false, rest}
  defp value("null" <> rest), do: {nil, rest}
  defp value("\"" <> rest), do: string(rest, [])
  defp value("[" <> rest), do: list(skip(rest), [])
  defp value("{" <> rest), do: object(skip(rest), %{})

  defp value(text) do
    [number] = Regex.run(~r/^-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/, text)
    rest = binary_part(text, byte_size(number), byte_size(text) - byte_size(number))

    case Integer.parse(number) do
      {integer, ""} -> {integer, rest}
      _ -> {number |> Float.parse() |> elem(0), rest}
    end
  end

  defp list("]" <> rest, items), do: {Enum.reverse(items), rest}
  defp list("," <> rest, items), do: list(skip(rest), items)

  defp list(text, items) do
    {item, rest} = value(text)
    list(skip(rest), [item | items])
  end

  defp object("}" <> rest, map), do: {map, rest}
  defp object("," <> rest, map), do: object(skip(rest), map)

  defp object("\"" <> text, map) do
    {key, rest} = string(text, [])
    ":" <> rest = skip(rest)
    {value, rest} = value(skip(rest))
    object(skip(rest), Map.put(map, key, value))
  end

  @escapes %{?n => "\n", ?t => "\t", ?r => "\r", ?b => "\b", ?f => "\f"}

  defp string("\"" <> rest, parts), do: {parts |> Enum.reverse() |> IO.iodata_to_binary(), rest}

  defp string(<<"\\u", high::binary-4, "\\u", low::binary-4, rest::binary>>, parts)
       when binary_part(high, 0, 1) in ["d", "D"] do
    code = 0x10000 + (hex(high) - 0xD800) * 0x400 + hex(low) - 0xDC00
    string(rest, [<<code::utf8>> | parts])
  end

  defp string(<<"\\u", code::binary-4, rest::binary>>, parts),
    do: string(rest, [<<hex(code)::utf8>> | parts])

  defp string(<<"\\", c, rest::binary>>, parts),
    do: string(rest, [Map.get(@escapes, c, <<c>>) | parts])

  defp string(<<c, rest::binary>>, parts), do: string(rest, [<<c>> | parts])

  defp hex(digits), do: String.to_integer(digits, 16)
end
