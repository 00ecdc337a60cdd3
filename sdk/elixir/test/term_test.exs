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
          <<131, 116, 2::32, 97, 1, 97, 1, 97, 1, 97, 2>>,
          <<131, 110, 1, 2, 1>>,
          :erlang.term_to_binary(fn -> 1 end),
          :erlang.term_to_binary(self()),
          :erlang.term_to_binary(List.duplicate("a", 1000), [:compressed])
        ] do
      assert Term.decode(bytes) == :error
    end
  end

  test "more parts than a frame has are not made" do
    list = fn count, item -> <<131, 108, count::32>> <> String.duplicate(item, count) <> "j" end
    assert {:ok, items} = Term.decode(list.(262_143, <<97, 1>>))
    assert length(items) == 262_143

    for bytes <- [
          list.(262_144, <<97, 1>>),
          list.(5_000_000, "j"),
          # lists of bytes, each of which is a part
          list.(80, <<107, 0xFFFF::16>> <> String.duplicate("x", 0xFFFF)),
          # each level within the bound, and all of them not
          list.(600, <<108, 600::32>> <> String.duplicate("j", 600) <> "j"),
          <<131, 116, 131_072::32>> <> for(n <- 1..131_072, into: "", do: <<98, n::32, 106>>)
        ] do
      {time, answer} = :timer.tc(fn -> Term.decode(bytes) end)
      assert answer == :error
      assert time < 5_000_000
    end
  end

  test "damaged frames are plain data or nothing" do
    :rand.seed(:exsss, {1, 2, 3})

    whole =
      :erlang.term_to_binary({:reply, 7, %{a: [1, {2, nil}], b: "bytes", c: 2 ** 40, d: 1.5}},
        minor_version: 2
      )

    answers =
      for _ <- 1..20_000 do
        at = :rand.uniform(byte_size(whole)) - 1
        <<before::binary-size(at), _, rest::binary>> = whole
        damaged = <<before::binary, :rand.uniform(256) - 1, rest::binary>>

        size =
          if :rand.uniform(2) == 1,
            do: byte_size(damaged),
            else: :rand.uniform(byte_size(damaged))

        case Term.decode(binary_part(damaged, 0, size)) do
          {:ok, _} -> :ok
          :error -> :error
        end
      end

    assert Enum.count(answers, &(&1 == :error)) > 10_000
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
