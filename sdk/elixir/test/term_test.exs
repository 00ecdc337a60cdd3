defmodule Caisson.TermTest do
  use ExUnit.Case, async: true

  alias Caisson.{Keep, Term}

  test "plain data comes as it is" do
    for term <- [
          {:reply, 1, %{reason: :exited, exit_code: 0, usage: %{wall_ms: 1.5}}},
          [1, -1, 255, 256, -2_147_483_648, 9_223_372_036_854_775_807, -(2 ** 64)],
          {"bytes", <<0, 255>>, [], [[]], %{}, true, false, ~c"abc"}
        ] do
      assert Term.decode(:erlang.term_to_binary(term, minor_version: 2)) == {:ok, term}
      assert Term.decode(:erlang.term_to_binary(term, minor_version: 1)) == {:ok, term}
    end
  end

  test "no atom is made, whatever comes" do
    for n <- 1..1000 do
      text = "never_seen_#{n}_#{System.unique_integer()}"
      frame = <<131, 104, 2, 119, byte_size(text), text::binary, 119, 5, "reply">>
      assert Term.decode(frame) == {:ok, {text, :reply}}
      assert_raise ArgumentError, fn -> String.to_existing_atom(text) end
    end
  end

  test "what is no plain data is nothing" do
    deep = String.duplicate(<<108, 1::32>>, 1000) <> "j"

    for bytes <- [
          "",
          <<131>>,
          <<130, 97, 1>>,
          <<131, 97>>,
          <<131, 97, 1, 2>>,
          <<131, 109, 100::32, "x">>,
          <<131, 108, 0xFFFFFFFF::32, 97, 1>>,
          <<131, 116, 1::32, 97, 1>>,
          <<131, 108, 1::32, 97, 1, 97, 2>>,
          <<131, 70, 0x7FF8000000000000::64>>,
          <<131>> <> deep,
          :erlang.term_to_binary(fn -> 1 end),
          :erlang.term_to_binary(self()),
          :erlang.term_to_binary(List.duplicate("a", 1000), [:compressed])
        ] do
      assert Term.decode(bytes) == :error
    end
  end

  test "kept: all, or the first and the last half" do
    for max <- [0, 1, 2, 7, 20],
        pieces <- [["abc"], ["abcdefghij", "klmnopqrst", "uvwxyz"], Enum.map(?a..?z, &<<&1>>)] do
      text = Enum.join(pieces)
      {kept, cut} = pieces |> Enum.reduce(Keep.new(max), &Keep.add(&2, &1)) |> Keep.take()
      assert byte_size(kept) == min(max, byte_size(text))
      assert cut == byte_size(text) - byte_size(kept)
      half = if cut == 0, do: byte_size(text), else: div(max, 2)
      assert binary_part(kept, 0, half) == binary_part(text, 0, half)
      rest = byte_size(kept) - half
      assert binary_part(kept, half, rest) == binary_part(text, byte_size(text) - rest, rest)
    end
  end

  test "a byte that is kept costs a byte, in whatever pieces it came" do
    size = 400_000
    keep = Enum.reduce(1..(2 * size), Keep.new(size), &Keep.add(&2, <<&1>>))
    assert :erts_debug.flat_size(keep) * :erlang.system_info(:wordsize) < div(size, 4)
    {kept, cut} = Keep.take(keep)
    assert {byte_size(kept), cut} == {size, size}
    assert binary_part(kept, size - 2, 2) == <<2 * size - 1, 2 * size>>
  end
end
