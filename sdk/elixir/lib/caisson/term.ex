defmodule Caisson.Term do
  @moduledoc false
  # External terms from a sandbox. `:erlang.binary_to_term/2` would make atoms, or fail on those that
  # do not exist; here an atom is one of the protocol's words or a text, whatever else this VM knows.

  @depth 64
  @parts 262_144

  @words ~w(
    reply failed data window fact bye ready stdout stderr tty
    caisson protocol version verbs enforces sandbox_id tier backend workspace mode name at network
    warnings protect_not_enforced reason recorded result
    exec ps logs wait kill read write edit glob grep stat list remove move mount diff commit snapshot
    fork stats
    exit_code signal signal_name error stage text clock code wall_us cpu_us mem_peak_bytes scope
    stdout_bytes stderr_bytes output_cut_bytes violations detached pid
    event source rule say certain expected others count time_ms last_ms comm syscall path to address
    port host ref time detail
    exited signaled timeout memory output processes scratch violation cancelled lost start_failed
    startup command idle budget sandbox cgroup seccomp landlock counter monitor agent guest policy proxy
    bytes size truncated occurrences content paths skipped matches binary line line_number is_context
    entries type file directory symlink fifo socket device target mtime_ms
    commands tag state starting running ending ended bytes cut started_ms reached timed_out
    changes change kind other guarded foreign foreign_names applied left added modified deleted folder
    link torn torn_name
    idle_ms idle_limit_ms means mem_bytes mem_limit processes_limit scratch_bytes scratch_limit
    schema run_id started runtime termination usage enforced limits mounts hide hidden protect cwd
    observed not_observed not_observed_why no_effect toolchains env_passed timings log_incomplete
    trusted sha256 modified key why kernel arch landlock_abi wall_ms cpu_ms user_us system_us
    max_rss_bytes prepared_us cloned_us ready_us exec_us end_us budget_ms command_ms startup_ms
    cpu_milli output_bytes open_files cpus
    not_supported invalid invalid_pattern invalid_regex match_limit
    e2big eacces eagain ebadf ebadmsg ebusy ecancelled ecanceled econnrefused eexist efbig einval eio
    eisdir eloop emfile emsgsize enametoolong enfile enodev enoent enoexec enolck enomem enospc
    enosys enotdir enotempty enotsup enxio eopnotsupp eperm epipe erange erofs esrch estale
    etimedout etxtbsy exdev edquot enodata eoverflow eproto
  )a |> Enum.uniq()

  @atoms Map.new(@words, &{Atom.to_string(&1), &1})

  @doc "The atom of a word of the protocol; another word stays a text."
  def word(text), do: Map.get(@atoms, text, text)

  @doc "Nothing is made of bytes that are no plain data, or of more than #{@parts} parts: `:error`."
  @spec decode(binary) :: {:ok, term} | :error
  def decode(<<131, rest::binary>>) do
    {term, "", _} = take(rest, @depth, @parts)
    {:ok, term}
  rescue
    _ in [MatchError, FunctionClauseError, ArgumentError] -> :error
  end

  def decode(_), do: :error

  # The rest of the bytes, how deep it may still go, how many parts it may still have. One that begins counts.
  # data of whole frames is by far the most: binaries are parts of the frame, not copies.
  defp take(<<109, size::32, bytes::binary-size(size), rest::binary>>, _, left) when left > 0,
    do: {bytes, rest, left - 1}

  defp take(<<97, number, rest::binary>>, _, left) when left > 0, do: {number, rest, left - 1}

  defp take(<<98, number::signed-32, rest::binary>>, _, left) when left > 0,
    do: {number, rest, left - 1}

  defp take(<<tag, n, text::binary-size(n), rest::binary>>, _, left)
       when tag in [119, 115] and left > 0,
       do: {atom(text), rest, left - 1}

  defp take(<<tag, n::16, text::binary-size(n), rest::binary>>, _, left)
       when tag in [118, 100] and left > 0,
       do: {atom(text), rest, left - 1}

  defp take(<<70, number::float-64, rest::binary>>, _, left) when left > 0,
    do: {number, rest, left - 1}

  defp take(<<106, rest::binary>>, _, left) when left > 0, do: {[], rest, left - 1}

  defp take(<<110, n, sign, bytes::binary-size(n), rest::binary>>, _, left)
       when sign < 2 and left > 0 do
    number = :binary.decode_unsigned(bytes, :little)
    {if(sign == 0, do: number, else: -number), rest, left - 1}
  end

  defp take(<<104, n, rest::binary>>, depth, left) when depth > 0 and left > n do
    {items, rest, left} = many(rest, n, depth - 1, left - 1, [])
    {List.to_tuple(items), rest, left}
  end

  # A list of small numbers: each is a part.
  defp take(<<107, n::16, bytes::binary-size(n), rest::binary>>, _, left) when left > n,
    do: {:binary.bin_to_list(bytes), rest, left - 1 - n}

  defp take(<<108, n::32, rest::binary>>, depth, left) when depth > 0 and left > n do
    {items, <<106, rest::binary>>, left} = many(rest, n, depth - 1, left - 1, [])
    {items, rest, left}
  end

  defp take(<<116, n::32, rest::binary>>, depth, left) when depth > 0 and left > 2 * n do
    {items, rest, left} = many(rest, 2 * n, depth - 1, left - 1, [])
    map = items |> Enum.chunk_every(2) |> Map.new(fn [key, value] -> {key, value} end)
    # No key twice.
    ^n = map_size(map)
    {map, rest, left}
  end

  defp many(rest, 0, _depth, left, items), do: {Enum.reverse(items), rest, left}

  defp many(rest, n, depth, left, items) do
    {item, rest, left} = take(rest, depth, left)
    many(rest, n - 1, depth, left, [item | items])
  end

  defp atom("true"), do: true
  defp atom("false"), do: false
  defp atom("null"), do: nil
  defp atom(text), do: word(text)
end
