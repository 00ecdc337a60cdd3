defmodule Caisson.Evaluator.Plain do
  @moduledoc false
  # Values as plain data: what any program that reads terms can keep. Structs are maps with texts for
  # keys, atoms that this session made are texts, functions and pids are what `inspect` prints.
  #
  # It counts while it goes: `x = [x, x]` thirty times is small here, and a billion terms elsewhere.

  alias Caisson.Evaluator.Names

  # A parent takes 200,000 parts of a frame, 64 deep; a value shares it with a binding.
  @parts 60_000
  @depth 48
  @bytes 4 * 1024 * 1024

  @doc """
  The value's bytes, how many parts it has, and whether a function, pid or other handle is in it.
  `{:error, sentence}` when it cannot cross.
  """
  @spec encode(term) :: {:ok, binary, pos_integer, boolean} | {:error, binary}
  def encode(value) do
    {plain, left, handles} = plain(value, @depth, {@parts, false}) |> flat()

    case :erlang.external_size(plain) do
      size when size > @bytes -> {:error, "it has #{size} bytes, at most #{@bytes} can cross"}
      _ -> {:ok, Caisson.Evaluator.Wire.bytes(plain), @parts - left, handles}
    end
  catch
    {__MODULE__, why} -> {:error, why}
  end

  defp flat({plain, {left, handles}}), do: {plain, left, handles}

  defp plain(_, _, {0, _}), do: throw({__MODULE__, "it has more than #{@parts} parts"})
  defp plain(_, 0, _), do: throw({__MODULE__, "it is nested deeper than #{@depth}"})

  defp plain(value, _, state) when is_number(value) or is_binary(value), do: {value, one(state)}

  defp plain(value, _, state) when is_atom(value),
    do: {if(Names.made?(value), do: Atom.to_string(value), else: value), one(state)}

  defp plain([], _, state), do: {[], one(state)}

  defp plain(list, depth, state) when is_list(list) do
    if List.improper?(list),
      do: {printed(list), one(state)},
      else: Enum.map_reduce(list, one(state), &plain(&1, depth - 1, &2))
  end

  defp plain(tuple, depth, state) when is_tuple(tuple) do
    {items, state} = tuple |> Tuple.to_list() |> Enum.map_reduce(one(state), &plain(&1, depth - 1, &2))

    {List.to_tuple(items), state}
  end

  defp plain(%{__struct__: name} = struct, depth, state) when is_atom(name) do
    struct
    |> Map.delete(:__struct__)
    |> Map.new(fn {key, value} -> {text(key), value} end)
    |> plain(depth, state)
  end

  defp plain(map, depth, state) when is_map(map) do
    {pairs, state} =
      map
      |> Map.to_list()
      |> Enum.map_reduce(one(state), fn {key, value}, state ->
        {key, state} = plain(key, depth - 1, state)
        {value, state} = plain(value, depth - 1, state)
        {{key, value}, state}
      end)

    {Map.new(pairs), state}
  end

  defp plain(bits, _, state) when is_bitstring(bits), do: {printed(bits), one(state)}
  defp plain(handle, _, {left, _}), do: {printed(handle), {left - 1, true}}

  defp one({left, handles}), do: {left - 1, handles}

  defp text(key) when is_atom(key), do: Atom.to_string(key)
  defp text(key), do: key

  defp printed(value), do: inspect(value, limit: 50, printable_limit: 4096)
end
