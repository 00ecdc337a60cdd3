defmodule Caisson.Evaluator.Output do
  @moduledoc false
  # Where code prints to: a group leader that keeps the first half and the last half of what it may,
  # and says how much was cut. Nobody reads from it. It stands for the VM's own output too, so that
  # nothing but frames gets to where frames go.

  @doc "`:keep`, or `:drop` for what the compiler says of code that it did not write."
  def start(mode), do: spawn(fn -> loop(new(mode, 0)) end)

  @doc "The same under another name: a process can have one."
  def forward(device), do: spawn(fn -> pass(device) end)

  defp pass(device) do
    receive do
      request -> send(device, request)
    end

    pass(device)
  end

  def reset(device, limit), do: send(device, {:reset, limit})

  @doc "What was printed since `reset/2`."
  def take(device) do
    ref = make_ref()
    send(device, {:take, self(), ref})

    receive do
      {^ref, text} -> text
    end
  end

  defp new(mode, limit), do: %{mode: mode, half: div(limit, 2), head: [], size: 0, tail: [], kept: 0, cut: 0}

  defp loop(state) do
    receive do
      {:io_request, from, ref, request} ->
        {reply, state} = io(request, state)
        send(from, {:io_reply, ref, reply})
        loop(state)

      {:reset, limit} ->
        loop(new(state.mode, limit))

      {:take, from, ref} ->
        send(from, {ref, text(state)})
        loop(new(state.mode, 2 * state.half))

      _ ->
        loop(state)
    end
  end

  defp io({:put_chars, encoding, chars}, state), do: put(encoding, fn -> chars end, state)
  defp io({:put_chars, chars}, state), do: put(:latin1, fn -> chars end, state)

  defp io({:put_chars, encoding, module, function, args}, state),
    do: put(encoding, fn -> apply(module, function, args) end, state)

  defp io({:put_chars, module, function, args}, state),
    do: put(:latin1, fn -> apply(module, function, args) end, state)

  defp io({:requests, list}, state),
    do: Enum.reduce(list, {:ok, state}, fn request, {_, state} -> io(request, state) end)

  defp io({:setopts, _}, state), do: {:ok, state}
  defp io(:getopts, state), do: {[binary: true, encoding: :unicode], state}
  defp io({:get_geometry, _}, state), do: {{:error, :enotsup}, state}
  defp io(request, state) when elem(request, 0) in [:get_chars, :get_line, :get_until], do: {:eof, state}
  defp io(_, state), do: {{:error, :request}, state}

  defp put(encoding, chars, state) do
    case :unicode.characters_to_binary(chars.(), encoding) do
      text when is_binary(text) -> {:ok, if(state.mode == :keep, do: add(state, text), else: state)}
      _ -> {{:error, :put_chars}, state}
    end
  rescue
    _ -> {{:error, :put_chars}, state}
  end

  defp add(state, ""), do: state

  defp add(%{size: size, half: half} = state, text) when size < half do
    {head, rest} = split(text, half - size)
    # What is kept does not keep what it was cut from.
    state = %{state | head: [state.head, :binary.copy(head)], size: size + byte_size(head)}
    # A character that would be cut ends the first half.
    add(if(rest == "", do: state, else: %{state | size: max(state.size, half)}), rest)
  end

  defp add(%{half: half} = state, text) do
    over = max(byte_size(text) - half, 0)
    text = binary_part(text, over, byte_size(text) - over) |> :binary.copy()
    state = %{state | tail: [state.tail, text], kept: state.kept + byte_size(text), cut: state.cut + over}
    if state.kept > 2 * half, do: squeeze(state), else: state
  end

  defp squeeze(%{half: half, kept: kept} = state) when kept > half do
    tail = state.tail |> IO.iodata_to_binary() |> binary_part(kept - half, half) |> :binary.copy()
    %{state | tail: tail, kept: half, cut: state.cut + kept - half}
  end

  defp squeeze(state), do: state

  defp split(text, size) when byte_size(text) <= size, do: {text, ""}

  defp split(text, size) do
    at = Enum.find(size..max(size - 3, 0)//-1, size, &(not inside?(text, &1)))
    {binary_part(text, 0, at), binary_part(text, at, byte_size(text) - at)}
  end

  defp inside?(text, at), do: :binary.at(text, at) in 0x80..0xBF

  defp text(state) do
    state = squeeze(state)
    tail = IO.iodata_to_binary(state.tail)

    if state.cut == 0 do
      IO.iodata_to_binary([state.head, tail])
    else
      whole = tail |> from_start()
      cut = state.cut + byte_size(tail) - byte_size(whole)
      IO.iodata_to_binary([state.head, "\n[#{cut} bytes cut]\n", whole])
    end
  end

  defp from_start(<<byte, rest::binary>>) when byte in 0x80..0xBF, do: from_start(rest)
  defp from_start(text), do: text
end
