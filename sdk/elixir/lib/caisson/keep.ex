defmodule Caisson.Keep do
  @moduledoc false
  # Output as it comes, of which so many bytes are kept: all of it, or its first and its last half.

  # A command that writes byte by byte must not cost a hundred bytes for each: small pieces are
  # joined to blocks. `head` is the newest first.

  @block 4096

  defstruct [:head_room, :tail_max, head: [], tail: {[], []}, tail_size: 0, total: 0]

  def new(max) do
    half = div(max, 2)
    %__MODULE__{head_room: half, tail_max: max - half}
  end

  def add(keep, ""), do: keep

  def add(%{head_room: room} = keep, bytes) when room > 0 do
    size = min(room, byte_size(bytes))
    <<head::binary-size(size), rest::binary>> = bytes
    keep = %{keep | head: join(keep.head, head), head_room: room - size, total: keep.total + size}
    add(keep, rest)
  end

  def add(keep, bytes) do
    trim(%{
      keep
      | tail: join_last(keep.tail, bytes),
        tail_size: keep.tail_size + byte_size(bytes),
        total: keep.total + byte_size(bytes)
    })
  end

  defp join([block | older], bytes) when byte_size(block) < @block, do: [block <> bytes | older]
  defp join(blocks, bytes), do: [bytes | blocks]

  defp join_last(queue, bytes) do
    case :queue.peek_r(queue) do
      {:value, block} when byte_size(block) < @block ->
        :queue.in(block <> bytes, :queue.drop_r(queue))

      _ ->
        :queue.in(bytes, queue)
    end
  end

  # Whole blocks go; what is too much of the oldest goes at the end.
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
    head = Enum.reverse(keep.head)
    kept = IO.iodata_to_binary([head, binary_part(tail, extra, byte_size(tail) - extra)])
    {kept, keep.total - byte_size(kept)}
  end
end
