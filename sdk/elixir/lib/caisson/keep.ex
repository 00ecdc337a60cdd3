defmodule Caisson.Keep do
  @moduledoc false
  # Output as it comes, of which so many bytes are kept: all of it, or its first and its last half.

  defstruct [:head_room, :tail_max, head: [], tail: {[], []}, tail_size: 0, total: 0]

  def new(max) do
    half = div(max, 2)
    %__MODULE__{head_room: half, tail_max: max - half}
  end

  def add(keep, ""), do: keep

  def add(%{head_room: room} = keep, bytes) when room > 0 do
    size = min(room, byte_size(bytes))
    <<head::binary-size(size), rest::binary>> = bytes
    keep = %{keep | head: [keep.head | head], head_room: room - size, total: keep.total + size}
    add(keep, rest)
  end

  def add(keep, bytes) do
    trim(%{
      keep
      | tail: :queue.in(bytes, keep.tail),
        tail_size: keep.tail_size + byte_size(bytes),
        total: keep.total + byte_size(bytes)
    })
  end

  # Whole pieces go; what is too much of the oldest goes at the end.
  defp trim(keep) do
    case :queue.peek(keep.tail) do
      {:value, oldest} when keep.tail_size - byte_size(oldest) >= keep.tail_max ->
        trim(%{
          keep
          | tail: :queue.drop(keep.tail),
            tail_size: keep.tail_size - byte_size(oldest)
        })

      _ ->
        keep
    end
  end

  @doc "What was kept, and how many bytes are missing in it."
  def take(keep) do
    tail = keep.tail |> :queue.to_list() |> IO.iodata_to_binary()
    extra = max(0, byte_size(tail) - keep.tail_max)
    kept = IO.iodata_to_binary([keep.head, binary_part(tail, extra, byte_size(tail) - extra)])
    {kept, keep.total - byte_size(kept)}
  end
end
