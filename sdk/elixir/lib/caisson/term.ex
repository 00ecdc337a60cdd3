defmodule Caisson.Term do
  @moduledoc false
  # External terms from a sandbox. `:erlang.binary_to_term/2` would make atoms, or fail on those that
  # do not exist; here an atom is one of the protocol's words or a text, whatever else this VM knows.

  @depth 64

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

  @doc "Nothing is made of bytes that are no plain data: `:error`."
  @spec decode(binary) :: {:ok, term} | :error
  def decode(<<131, rest::binary>>) do
    {term, ""} = take(rest, @depth)
    {:ok, term}
  rescue
    _ in [MatchError, FunctionClauseError, ArgumentError] -> :error
  end

  def decode(_), do: :error

  # data of whole frames is by far the most: binaries are parts of the frame, not copies.
  defp take(<<109, size::32, bytes::binary-size(size), rest::binary>>, _), do: {bytes, rest}
  defp take(<<97, number, rest::binary>>, _), do: {number, rest}
  defp take(<<98, number::signed-32, rest::binary>>, _), do: {number, rest}
  defp take(<<119, n, text::binary-size(n), rest::binary>>, _), do: {atom(text), rest}
  defp take(<<118, n::16, text::binary-size(n), rest::binary>>, _), do: {atom(text), rest}
  defp take(<<115, n, text::binary-size(n), rest::binary>>, _), do: {atom(text), rest}
  defp take(<<100, n::16, text::binary-size(n), rest::binary>>, _), do: {atom(text), rest}
  defp take(<<70, number::float-64, rest::binary>>, _), do: {number, rest}
  defp take(<<106, rest::binary>>, _), do: {[], rest}

  defp take(<<110, n, sign, bytes::binary-size(n), rest::binary>>, _) do
    number = :binary.decode_unsigned(bytes, :little)
    {if(sign == 0, do: number, else: -number), rest}
  end

  defp take(<<104, n, rest::binary>>, depth) when depth > 0 do
    {items, rest} = many(rest, n, depth - 1, [])
    {List.to_tuple(items), rest}
  end

  defp take(<<107, n::16, bytes::binary-size(n), rest::binary>>, _),
    do: {:binary.bin_to_list(bytes), rest}

  defp take(<<108, n::32, rest::binary>>, depth) when depth > 0 do
    {items, <<106, rest::binary>>} = many(rest, n, depth - 1, [])
    {items, rest}
  end

  defp take(<<116, n::32, rest::binary>>, depth) when depth > 0 do
    {items, rest} = many(rest, 2 * n, depth - 1, [])
    {items |> Enum.chunk_every(2) |> Map.new(fn [key, value] -> {key, value} end), rest}
  end

  defp many(rest, 0, _depth, items), do: {Enum.reverse(items), rest}

  defp many(rest, n, depth, items) do
    {item, rest} = take(rest, depth)
    many(rest, n - 1, depth, [item | items])
  end

  defp atom("true"), do: true
  defp atom("false"), do: false
  defp atom("null"), do: nil
  defp atom(text), do: word(text)
end
