defmodule Caisson.HostileTest do
  # What stands in caisson's place says whatever it likes: who waits is told, and no more memory is taken than was granted.
  use ExUnit.Case, async: true

  import Caisson.Help

  alias Caisson.{Error, Frames, Sandbox, Term}

  @opened {:reply, 1, %{protocol: 1, caisson: "0.1.0", verbs: [:exec], enforces: []}}

  # A program that says `bytes` when it was asked for a sandbox and, where `then` is given, that when it is called.
  # It ends when it is asked to, or told anything else.
  defp liar(bytes, then \\ nil) do
    folder = folder()
    program = Path.join(folder, "liar")

    take =
      "n=$(head -c 4 | od -An -tu1 | awk '{print $3 * 256 + $4}'); head -c ${n:-0} >/dev/null"

    File.write!(Path.join(folder, "first"), bytes)
    File.write!(Path.join(folder, "then"), then || "")
    called = if then, do: "#{take}\ncat #{folder}/then 2>/dev/null", else: ""
    File.write!(program, "#!/bin/sh\n#{take}\ncat #{folder}/first\n#{called}\n#{take}\n")
    File.chmod!(program, 0o755)
    [program: program, cwd: folder, record: false]
  end

  defp said(frames),
    do: frames |> List.wrap() |> Enum.map(&Frames.frame/1) |> IO.iodata_to_binary()

  describe "instead of an answer to open" do
    for {name, bytes} <- [
          {"a length that nobody sends", <<0x7FFFFFFF::32, "x">>},
          {"one byte more than an answer may have", <<5_242_881::32, 131>>},
          {"no message", <<3::32, 131, 97, 1>>},
          {"a word too large for its kind", <<65::32, 131, 104, 3, 119, 6, "window", 0::432>>},
          {"output of nothing", <<0::32>>},
          {"another protocol's", "HTTP/1.1 400 Bad Request\r\n\r\n"}
        ] do
      test name do
        assert {:error, %Error{code: :lost} = error} =
                 Sandbox.new(Sandbox.Process, liar(unquote(bytes)))

        assert error.message =~ "broke the protocol"
      end
    end

    test "data, or an answer to something else" do
      for frame <- [{:data, 1, :stdout, "x"}, {:reply, 2, %{}}, {:fact, %{}}, {:reply, 1, []}] do
        assert {:error, %Error{code: :lost}} = Sandbox.new(Sandbox.Process, liar(said(frame)))
      end
    end
  end

  defp lies(then, how \\ &Sandbox.exec(&1, "true", timeout: 3000)) do
    {:ok, sb} = Sandbox.new(Sandbox.Process, liar(said(@opened), said(then)))
    answer = how.(sb)
    assert :ok = Sandbox.shutdown(sb)
    answer
  end

  test "out of turn, of another type, or more than was granted" do
    for frames <- [
          {:reply, 9, %{}},
          {:failed, 9, :enoent, "x"},
          {:failed, 2, :enoent, 7},
          {:reply, 2, :done},
          {:data, 9, :stdout, "x"},
          {:data, 2, :stdin, "x"},
          {:data, 2, :stdout, ""},
          {:data, 2, :stdout, String.duplicate("x", 65_537)},
          {:window, 2, -1},
          {:window, 2, 16_777_217},
          {:window, 2, "much"},
          {:fact, "x"},
          {:bye, "x"},
          {:hello, 2},
          :reply
        ] do
      frames = if frames == :reply, do: [{:reply}], else: frames
      assert {:error, %Error{code: :lost} = error} = lies(frames)
      assert error.message =~ "broke the protocol", inspect({frames, error})
    end
  end

  test "a stream that is not read is sent no more than its window" do
    piece = {:data, 2, :stdout, String.duplicate("x", 65_536)}

    unread = fn count ->
      lies(List.duplicate(piece, count), fn sb ->
        {:ok, ref, tag} =
          Caisson.Link.start_stream(sb.state.link, :exec, %{command: "yes"}, keep: 0)

        assert ref == 2
        assert eventually(fn -> pieces(tag) == min(count, 4) end)
        # What came after the window was looked at too.
        lost = fn -> :sys.get_state(sb.state.link).lost end
        if count > 4, do: assert(eventually(fn -> match?(%Error{code: :lost}, lost.()) end))
        pieces(tag)
      end)
    end

    assert unread.(4) == 4
    assert unread.(40) == 4
  end

  defp pieces(tag) do
    {:messages, messages} = Process.info(self(), :messages)
    Enum.count(messages, &match?({^tag, {:data, _, _}}, &1))
  end

  test "violations of one stream are told up to a number" do
    fact = {:fact, %{ref: 2, event: "FilesystemWriteViolation"}}
    ended = {:reply, 2, %{reason: :exited, exit_code: 0, violations: []}}

    told =
      lies(List.duplicate(fact, 3000) ++ [ended], fn sb ->
        sb |> Sandbox.stream("true") |> Enum.to_list()
      end)

    assert Enum.count(told, &match?({:violation, _}, &1)) == 1024
    assert {:exit, %{exit_code: 0}} = List.last(told)
  end

  test "a bye of any kind has a sentence" do
    for {map, text} <- [
          {%{reason: :idle}, "idle"},
          {%{text: [1], reason: %{}}, "lost"},
          {%{text: "so"}, "so"}
        ] do
      assert {:error, %Error{code: :lost, message: message}} = lies({:bye, map})
      assert message =~ text
    end
  end

  test "frames come in any pieces, and too large ones are not waited for" do
    messages = [{:window, 2, 1}, {:data, 2, :stdout, String.duplicate("y", 9000)}, {:bye, %{}}]
    bytes = said(messages)

    for size <- [1, 3, 4, 5, 100, 8999, byte_size(bytes)] do
      {frames, _} =
        bytes
        |> :binary.bin_to_list()
        |> Enum.chunk_every(size)
        |> Enum.reduce({[], %Frames{}}, fn piece, {done, frames} ->
          {:ok, more, frames} = Frames.push(frames, :erlang.list_to_binary(piece))
          {done ++ more, frames}
        end)

      assert Enum.map(frames, &Term.decode/1) == Enum.map(messages, &{:ok, &1})
    end

    assert Frames.push(%Frames{}, <<0xFFFFFFFF::32>>) == :error

    assert {:ok, [small], _} =
             Frames.push(
               %Frames{},
               said([hd(messages)]) <> <<60_000::32>> <> String.duplicate("z", 50_000)
             )

    assert :binary.referenced_byte_size(small) < 100
  end
end
