defmodule Caisson.Sandbox.Wall do
  @moduledoc """
  Any wall of caisson's, by options; without any, the strongest that the policy asks for.

    * `:cwd` - the workspace, and where the policy file is looked for; default: the folder we are in
    * `:mode` - of the workspace: `:ro`, `:rw` or `:cow`
    * `:workspace` - another folder than `:cwd`, as `"PATH"` or `"PATH:rw"`
    * `:policy` - a policy file; the one found in `:cwd` or above it has to be trusted
    * `:tier` - at least this wall: `"balanced"`; `:backend` - exactly this one: `"landlock"`
    * `:at` - where the workspace stands inside; `"host"`: under its own path
    * `:mounts` - `[{host_path, path}]`, `[{host_path, path, :readonly | :readwrite}]`
    * `:network` - `:none` or `:loopback`; `:allow` - `["HOST:PORT"]`
    * `:limits` - `[memory: "1GiB", processes: 64]`, as in the policy file
    * `:env` - `%{"NAME" => "value"}`, or a list with names to pass on
    * `:tags` - words for the record; `record: false` keeps none; `:run_dir` - where it goes
    * `:pool` - the name of a pool to take it from (`caisson pool start`); what does not fit is made as without
    * `:attach` - the name of a sandbox of `caisson up`, joined as it is; none of the above then
    * `:program` - the command `caisson`; default: `$CAISSON`, else the one on PATH
    * `:start_timeout`, `:call_timeout` - ms; one minute, and for calls that are no commands 30 s
    * `:owner` - the process with which it ends; default: the one that makes it
    * `:os_env` - variables for caisson itself, as `%{"XDG_RUNTIME_DIR" => "/run/x"}`
  """
  @behaviour Caisson.Sandbox

  alias Caisson.{Error, Link, Program}

  @enforce_keys [:link, :call_timeout]
  defstruct [:link, :call_timeout, call_env: %{}]

  # Beyond a command's own clock, until we stop waiting for the word of its end.
  @after_command_ms 15_000
  @piece 65_536

  @doc false
  defmacro __using__(_) do
    quote do
      alias Caisson.Sandbox.Wall

      @impl true
      defdelegate shutdown(state), to: Wall
      @impl true
      defdelegate read_file(state, path), to: Wall
      defdelegate read_file(state, path, opts), to: Wall
      @impl true
      defdelegate write_file(state, path, content), to: Wall
      defdelegate write_file(state, path, content, opts), to: Wall
      @impl true
      defdelegate edit_file(state, path, old, new), to: Wall
      @impl true
      defdelegate exec(state, command, opts), to: Wall
      @impl true
      defdelegate glob(state, pattern, opts), to: Wall
      @impl true
      defdelegate grep(state, pattern, opts), to: Wall
      defdelegate stream(state, command, opts), to: Wall
      defdelegate start(state, command, opts), to: Wall
      defdelegate logs(state, tag, opts), to: Wall
      defdelegate wait(state, tag, opts), to: Wall
      defdelegate kill(state, tag, opts), to: Wall
      defdelegate ps(state), to: Wall
      defdelegate cancel(state, id), to: Wall
      defdelegate signal(state, id, number), to: Wall
      defdelegate stat(state, path), to: Wall
      defdelegate list(state, path), to: Wall
      defdelegate remove(state, path, opts), to: Wall
      defdelegate move(state, path, to), to: Wall
      defdelegate diff(state, opts), to: Wall
      defdelegate commit(state, opts), to: Wall
      defdelegate snapshot(state, tag), to: Wall
      defdelegate fork(state, name, opts), to: Wall
      defdelegate stats(state), to: Wall
      defdelegate info(state), to: Wall
    end
  end

  # ---- life ----------------------------------------------------------------------------------

  @impl true
  def init(opts) do
    with :ok <- check_folder(opts[:cwd]),
         {:ok, wish} <- Caisson.Options.wish(opts),
         {:ok, program} <- Program.find(opts),
         {:ok, link} <- Link.start(opts[:owner] || self()) do
      port = [program: program, cd: opts[:cwd], env: os_env(opts[:os_env] || %{})]

      case Link.open(link, wish, port, opts[:start_timeout] || 60_000) do
        {:ok, _info} ->
          {:ok,
           %__MODULE__{
             link: link,
             call_timeout: opts[:call_timeout] || 30_000,
             call_env: opts[:call_env] || %{}
           }}

        error ->
          DynamicSupervisor.terminate_child(Caisson.Supervisor, link)
          error
      end
    end
  end

  defp check_folder(nil), do: :ok

  defp check_folder(path) do
    if File.dir?(path),
      do: :ok,
      else:
        {:error, Error.new("open", :enoent, "the option :cwd names #{path}, which is no folder")}
  end

  defp os_env(map), do: for({name, value} <- map, do: {to_charlist(name), to_charlist(value)})

  @impl true
  def shutdown(state) do
    with {:ok, _result} <- Link.close(state.link), do: :ok
  end

  def info(state), do: Link.info(state.link)

  # ---- files ---------------------------------------------------------------------------------

  @impl true
  def read_file(state, path), do: read_file(state, path, [])

  def read_file(state, path, opts) do
    args = with_options(%{path: path}, opts, [:offset, :length])
    # All of it, or an error: a file is not cut silently.
    keep = 2 * (opts[:keep_bytes] || 1_073_741_824)

    with {:ok, reply, output} <- call(state, :read, args, opts, keep: keep) do
      if output.stdout_cut > 0,
        do: {:error, Error.new("read", :efbig, "#{path} is too large to be read at once")},
        else: {:ok, reply[:bytes] || output.stdout}
    end
  end

  @impl true
  def write_file(state, path, content), do: write_file(state, path, content, [])

  def write_file(state, path, content, opts) do
    content = IO.iodata_to_binary(content)
    args = with_options(%{path: path}, opts, [:mode])

    if byte_size(content) <= @piece,
      do: done(call(state, :write, Map.put(args, :bytes, content), opts)),
      else: done(call(state, :write, Map.put(args, :stdin, true), opts, input: content))
  end

  @impl true
  def edit_file(state, path, old, new) do
    case call(state, :edit, %{path: path, old: old, new: new}, []) do
      {:ok, %{occurrences: 1} = reply, _} -> {:ok, reply}
      {:ok, reply, _} -> {:error, not_once(path, reply)}
      error -> error
    end
  end

  defp not_once(path, %{occurrences: 0} = reply),
    do:
      Error.new(
        "edit",
        :not_found,
        "#{path} does not contain the text",
        reply
      )

  defp not_once(path, %{occurrences: count} = reply) do
    message = "the text occurs #{count} times in #{path}: give more of what is around it"
    Error.new("edit", :not_unique, message, reply)
  end

  def stat(state, path), do: result(call(state, :stat, %{path: path}, []))
  def list(state, path), do: result(call(state, :list, %{path: path}, []))

  def remove(state, path, opts),
    do: done(call(state, :remove, with_options(%{path: path}, opts, [:recursive]), opts))

  def move(state, path, to), do: done(call(state, :move, %{path: path, to: to}, []))

  # ---- commands ------------------------------------------------------------------------------

  @impl true
  def exec(state, command, opts) do
    input = input_of(opts)
    args = exec_args(state, command, opts, input)
    more = [input: input, keep: opts[:keep_bytes], id: opts[:id], timeout: exec_timeout(opts)]

    with {:ok, reply, output} <- Link.call(state.link, :exec, args, more) do
      {:ok, exec_result(reply, output)}
    end
  end

  def stream(state, command, opts) do
    Stream.resource(
      fn -> begin_stream(state, command, opts) end,
      &next_of_stream/1,
      &end_stream/1
    )
  end

  defp begin_stream(state, command, opts) do
    input = input_of(opts)
    more = [input: input, id: opts[:id], timeout: exec_timeout(opts), keep: 0]

    case Link.start_stream(state.link, :exec, exec_args(state, command, opts, input), more) do
      {:ok, ref, tag} ->
        monitor = Process.monitor(state.link)
        %{link: state.link, ref: ref, tag: tag, monitor: monitor, is_over: false}

      {:error, error} ->
        raise error
    end
  end

  defp next_of_stream(%{is_over: true} = stream), do: {:halt, stream}

  defp next_of_stream(%{tag: tag, monitor: monitor} = stream) do
    receive do
      {^tag, {:data, name, bytes}} ->
        Link.ack(stream.link, stream.ref, byte_size(bytes))
        {[{if(name == :stderr, do: :stderr, else: :stdout), bytes}], stream}

      {^tag, {:violation, violation}} ->
        {[{:violation, violation}], stream}

      {^tag, {:over, {:ok, reply, output}}} ->
        {[{:exit, exec_result(reply, output)}], %{stream | is_over: true}}

      {^tag, {:over, {:error, error}}} ->
        raise error

      {:DOWN, ^monitor, _, _, _} ->
        raise Error.new("exec", :lost, "the sandbox is over")
    end
  end

  defp end_stream(stream) do
    Process.demonitor(stream.monitor, [:flush])
    unless stream.is_over, do: Link.abandon(stream.link, stream.ref)
    flush(stream.tag)
  end

  defp flush(tag) do
    receive do
      {^tag, _} -> flush(tag)
    after
      0 -> :ok
    end
  end

  defp input_of(opts) do
    case opts[:stdin] do
      nil -> nil
      input -> IO.iodata_to_binary(input)
    end
  end

  defp exec_args(state, command, opts, input) do
    own = Map.new(opts[:env] || %{}, fn {name, value} -> {to_string(name), to_string(value)} end)
    env = Map.merge(state.call_env, own)
    key = if is_list(command), do: :argv, else: :command

    %{key => command}
    |> with_options(opts, [:cwd, :detach, :tag])
    |> put(:env, if(env != %{}, do: env))
    |> put(:timeout_ms, finite(opts[:timeout]))
    |> put(:stdin, input && true)
    |> Map.merge(tty(opts[:tty]))
  end

  defp tty({rows, columns}), do: %{tty: true, rows: rows, cols: columns}
  defp tty(true), do: %{tty: true, rows: 24, cols: 80}
  defp tty(_), do: %{}

  # The policy's clocks end a command; ours is for a sandbox that says nothing.
  defp exec_timeout(opts) do
    case finite(opts[:timeout]) do
      nil -> :infinity
      ms -> ms + @after_command_ms
    end
  end

  defp finite(:infinity), do: nil
  defp finite(ms), do: ms

  @usage [
    :wall_us,
    :cpu_us,
    :mem_peak_bytes,
    :scope,
    :stdout_bytes,
    :stderr_bytes,
    :output_cut_bytes
  ]

  defp exec_result(reply, output) do
    termination = [:reason, :clock, :exit_code, :signal, :error, :stage, :text]

    Map.merge(output, %{
      exit_code: reply[:exit_code],
      termination: Map.new(termination, &{&1, reply[&1]}),
      violations: reply[:violations] || [],
      usage: Map.take(reply, @usage),
      detached: reply[:detached] || false,
      pid: reply[:pid]
    })
  end

  def start(state, command, opts), do: exec(state, command, [detach: true] ++ opts)

  def ps(state) do
    with {:ok, %{commands: commands}, _} <- call(state, :ps, %{}, []), do: {:ok, commands}
  end

  def logs(state, tag, opts) do
    args = with_options(%{tag: tag}, opts, [:follow])
    more = [keep: opts[:keep_bytes]] ++ if(opts[:follow], do: [timeout: opts[:timeout]], else: [])

    with {:ok, reply, output} <- call(state, :logs, args, opts, more),
         do: {:ok, Map.merge(output, reply)}
  end

  def wait(state, tag, opts) do
    args =
      %{tag: tag}
      |> with_options(opts, [:port, :line, :text, :forget])
      |> put(:timeout_ms, finite(opts[:timeout]))

    result(call(state, :wait, args, [], timeout: exec_timeout(opts)))
  end

  def kill(state, tag, opts),
    do: done(call(state, :kill, with_options(%{tag: tag}, opts, [:signal]), opts))

  def cancel(state, id), do: Link.cancel(state.link, id)
  def signal(state, id, number) when number in 1..64, do: Link.signal(state.link, id, number)

  # ---- search --------------------------------------------------------------------------------

  @impl true
  def glob(state, pattern, opts) do
    args = with_options(%{pattern: pattern}, opts, [:cwd, :limit])
    details(call_search(state, :glob, args, opts), :paths, opts)
  end

  @impl true
  def grep(state, pattern, opts) do
    args =
      %{pattern: pattern}
      |> with_options(opts, [:path, :glob, :limit, :context])
      |> put(:case_sensitive, opts[:ignore_case] && false)

    details(call_search(state, :grep, args, opts), :matches, opts)
  end

  # The search has the clock itself, and says more of its end.
  defp call_search(state, verb, args, opts) do
    args = put(args, :timeout_ms, finite(opts[:timeout]))
    call(state, verb, args, [], timeout: (finite(opts[:timeout]) || 30_000) + @after_command_ms)
  end

  defp details({:ok, reply, _}, key, opts),
    do: {:ok, if(opts[:details], do: reply, else: Map.fetch!(reply, key))}

  defp details(error, _key, _opts), do: error

  # ---- the workspace -------------------------------------------------------------------------

  @impl true
  def mount(state, host_path, path), do: mount(state, host_path, path, [])

  def mount(state, host_path, path, opts) do
    with {:ok, mode} <- Caisson.Options.mode(opts[:mode] || :ro),
         do: done(call(state, :mount, %{host: host_path, at: path, mode: mode}, opts))
  end

  def diff(state, opts) do
    args = with_options(%{}, opts, [:paths, :names_only])

    with {:ok, reply, output} <- call_copy(state, :diff, args, opts),
         do: {:ok, Map.merge(reply, %{text: output.stdout, text_cut: output.stdout_cut})}
  end

  def commit(state, opts),
    do:
      result(call_copy(state, :commit, with_options(%{}, opts, [:paths, :force, :dry_run]), opts))

  def snapshot(state, tag), do: result(call_copy(state, :snapshot, %{tag: tag}, []))

  def fork(state, name, opts),
    do: result(call_copy(state, :fork, with_options(%{name: name}, opts, [:tag]), opts))

  def stats(state), do: result(call(state, :stats, %{}, []))

  # They may copy a whole workspace: the monitor's own clock is ten minutes.
  defp call_copy(state, verb, args, opts) do
    more = [keep: opts[:keep_bytes], timeout: opts[:timeout] || 600_000 + @after_command_ms]
    call(state, verb, args, [], more)
  end

  # ---- calls ---------------------------------------------------------------------------------

  defp call(state, verb, args, opts, more \\ []) do
    timeout = if opts[:timeout], do: opts[:timeout], else: state.call_timeout
    Link.call(state.link, verb, args, Keyword.put_new([id: opts[:id]] ++ more, :timeout, timeout))
  end

  defp done({:ok, _reply, _output}), do: :ok
  defp done(error), do: error

  defp result({:ok, reply, _output}), do: {:ok, reply}
  defp result(error), do: error

  defp with_options(args, opts, names),
    do: Enum.reduce(names, args, fn name, args -> put(args, name, opts[name]) end)

  defp put(args, _name, nil), do: args
  defp put(args, name, value), do: Map.put(args, name, value)
end
