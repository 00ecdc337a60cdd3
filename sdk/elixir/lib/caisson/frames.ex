defmodule Caisson.Frames do
  @moduledoc false
  # The bytes of a port as they come, cut into frames: four bytes with a length, and so many more. Sizes are looked at
  # before anything is kept or made of them; the VM's own `packet: 4` takes memory for whatever length is announced.

  @most %{
    "reply" => 5_242_880,
    "failed" => 8192,
    "data" => 65_600,
    "window" => 64,
    "fact" => 65_536,
    "bye" => 65_536
  }
  @frame_max @most |> Map.values() |> Enum.max()

  defstruct parts: [], size: 0, needed: 4

  @type t :: %__MODULE__{parts: [binary], size: non_neg_integer, needed: pos_integer}

  @doc "Frames that are whole now, without their length, and what waits for more. `:error`: no such frame may come."
  @spec push(t, binary) :: {:ok, [binary], t} | :error
  def push(%__MODULE__{size: size, needed: needed} = frames, bytes)
      when size + byte_size(bytes) < needed,
      do: {:ok, [], %{frames | parts: [bytes | frames.parts], size: size + byte_size(bytes)}}

  def push(frames, bytes),
    do: [bytes | frames.parts] |> Enum.reverse() |> IO.iodata_to_binary() |> cut([])

  defp cut(<<size::32, _::binary>>, _) when size > @frame_max, do: :error

  defp cut(<<size::32, frame::binary-size(size), rest::binary>>, done) do
    if size <= Map.get(@most, name(frame), 0), do: cut(rest, [own(frame) | done]), else: :error
  end

  defp cut(<<size::32, _::binary>> = rest, done), do: wait(rest, 4 + size, done)
  defp cut(rest, done), do: wait(rest, 4, done)

  defp wait(rest, needed, done) do
    parts = if rest == "", do: [], else: [:binary.copy(rest)]
    {:ok, Enum.reverse(done), %__MODULE__{parts: parts, size: byte_size(rest), needed: needed}}
  end

  # What is kept of a small frame does not keep all that came with it.
  defp own(frame) do
    if :binary.referenced_byte_size(frame) > 2 * byte_size(frame),
      do: :binary.copy(frame),
      else: frame
  end

  # The first word of a message, read before the rest is.
  defp name(<<131, 104, _, tag, n, name::binary-size(n), _::binary>>) when tag in [119, 115],
    do: name

  defp name(<<131, 104, _, tag, n::16, name::binary-size(n), _::binary>>) when tag in [118, 100],
    do: name

  defp name(_), do: nil

  @doc "A message with its length before it."
  @spec frame(tuple) :: iodata
  def frame(message) do
    bytes = :erlang.term_to_binary(message, minor_version: 2)
    [<<byte_size(bytes)::32>>, bytes]
  end
end
