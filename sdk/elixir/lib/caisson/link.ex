defmodule Caisson.Link do
  @moduledoc false
  # One `caisson port`, its calls and their clocks. The port is this process's own: whatever ends this
  # process - its owner's death, a kill, the VM's end - closes the port's input, and caisson leaves
  # nothing of the sandbox then.
  #
  # Calls of any number of processes are bounded twice: a few are under way, so many may wait. A
  # caller that is gone, or whose time is over, has his call cancelled; what is answered later finds
  # nobody. What comes from the other side is data of bounded size: windows hold a fast command back
  # until what it wrote was taken. A frame that is malformed, out of turn, or more than was asked for
  # ends the sandbox, as in the other packages.

  use GenServer, restart: :temporary

  alias Caisson.{Error, Frames, Keep, Program, Term}

  @protocol 1
  @under_way 24
  @waiting 10_000
  @piece 65_536
  @window 262_144
  @grant_max 16_777_216
  # Violations of one call that are told as they come; the account has them all.
  @facts 1024
  @call_bytes 5 * 1024 * 1024 - 4096
  @keep_bytes 1_048_576
  @close_ms 20_000
  # A caller gives up so long after the clock that should have answered him.
  @grace_ms 5_000

  defstruct [
    :port,
    :program,
    :owner,
    :opening,
    :closing,
    :info,
    :lost,
    last_ref: 0,
    frames: %Frames{},
    calls: %{},
    callers: %{},
    waiting: {[], []},
    under_way: 0
  ]

  # ---- for callers ---------------------------------------------------------------------------

  def start(owner), do: DynamicSupervisor.start_child(Caisson.Supervisor, {__MODULE__, owner})

  @doc "Makes the sandbox, or joins it. `{:ok, info}` as the protocol's reply to `open`."
  def open(link, options, port_options, timeout) do
    ask(link, {:open, options, port_options, timeout}, timeout, "open")
  end

  @doc """
  One call. Options: `:timeout` in ms or `:infinity`, `:input` for its stdin, `:keep` bytes of output,
  `:id` by which it can be cancelled. `{:ok, reply, output}` with `output` as `%{output: …}`.
  """
  def call(link, verb, args, opts) do
    timeout = opts[:timeout] || :infinity

    case :erlang.external_size(args) do
      size when size > @call_bytes ->
        {:error, Error.new(verb, :e2big, "the call has #{size} bytes; #{@call_bytes} are taken")}

      _ ->
        ask(link, {:call, verb, args, Map.new(opts)}, timeout, verb)
    end
  end

  @doc "The same of a stream: messages `{tag, event}` to the caller; `ack/3` asks for more."
  def start_stream(link, verb, args, opts) do
    ask(link, {:stream, verb, args, Map.new(opts)}, 30_000, verb)
  end

  def ack(link, ref, size), do: GenServer.cast(link, {:ack, ref, size})
  def abandon(link, ref), do: GenServer.cast(link, {:abandon, ref})
  def cancel(link, id), do: ask(link, {:cancel, id}, 30_000, "cancel")
  def signal(link, id, number), do: ask(link, {:signal, id, number}, 30_000, "signal")
  def info(link), do: ask(link, :info, 30_000, "info")

  @doc "Ends the sandbox, or leaves one that was joined; nothing of it is left then."
  def close(link) do
    with {:error, %Error{code: :lost}} <- ask(link, :close, @close_ms, "close"), do: {:ok, %{}}
  end

  defp ask(link, request, timeout, stage) do
    wait = if timeout == :infinity, do: :infinity, else: timeout + @grace_ms
    GenServer.call(link, request, wait)
  catch
    :exit, {:timeout, _} -> {:error, late(stage)}
    :exit, _ -> {:error, Error.new(stage, :lost, "the sandbox is over")}
  end

  # ---- life ----------------------------------------------------------------------------------

  def start_link(owner), do: GenServer.start_link(__MODULE__, owner)

  @impl true
  def init(owner) do
    Process.flag(:trap_exit, true)
    {:ok, %__MODULE__{owner: Process.monitor(owner)}}
  end

  @impl true
  def handle_call({:open, options, port_options, timeout}, from, %{port: nil} = link) do
    link = %{link | program: port_options[:program]}

    case spawn_port(port_options) do
      {:ok, port} ->
        timer = Process.send_after(self(), :open_timeout, timeout)
        link = %{link | port: port, opening: {from, timer}, last_ref: 1}
        {:noreply, send_frame(link, {:open, 1, options})}

      {:error, error} ->
        {:reply, {:error, error}, link}
    end
  end

  def handle_call(:info, _from, link), do: {:reply, {:ok, link.info}, link}

  def handle_call(:close, _from, %{lost: %Error{}} = link),
    do: {:stop, :normal, {:ok, %{}}, link}

  def handle_call(_request, _from, %{lost: %Error{} = lost} = link),
    do: {:reply, {:error, lost}, link}

  def handle_call(:close, from, link) do
    ref = link.last_ref + 1
    timer = Process.send_after(self(), :close_timeout, @close_ms)
    link = send_frame(%{link | last_ref: ref, closing: {from, timer, ref, nil}}, {:close, ref})
    {:noreply, lose(link, Error.new("close", :lost, "the sandbox was closed"))}
  end

  def handle_call({kind, verb, args, opts}, from, link) when kind in [:call, :stream] do
    if map_size(link.calls) >= @under_way + @waiting do
      message = "#{@waiting} calls wait already; wait for some of them"
      {:reply, {:error, Error.new(verb, :eagain, message)}, link}
    else
      {:noreply, link |> add_call(kind, verb, args, opts, from) |> send_waiting()}
    end
  end

  def handle_call({:cancel, id}, _from, link) do
    {:reply, :ok, Enum.reduce(calls_of(link, id), link, &cancel_call(&2, &1))}
  end

  def handle_call({:signal, id, number}, _from, link) do
    calls = Enum.filter(calls_of(link, id), & &1.is_sent)
    {:reply, :ok, Enum.reduce(calls, link, &send_frame(&2, {:signal, &1.ref, number}))}
  end

  @impl true
  def handle_cast({:ack, ref, size}, link) do
    case link.calls do
      %{^ref => call} -> {:noreply, grant(link, call, size)}
      _ -> {:noreply, link}
    end
  end

  def handle_cast({:abandon, ref}, link) do
    case link.calls do
      %{^ref => %{is_over: false} = call} -> {:noreply, leave_call(link, call)}
      _ -> {:noreply, link}
    end
  end

  @impl true
  def handle_info({port, {:data, bytes}}, %{port: port} = link) do
    case Frames.push(link.frames, bytes) do
      {:ok, whole, frames} ->
        {:noreply, Enum.reduce(whole, %{link | frames: frames}, &receive_frame/2)}

      :error ->
        {:noreply, nonsense(link)}
    end
  end

  def handle_info({port, {:exit_status, status}}, %{port: port} = link), do: ended(link, status)
  def handle_info({:EXIT, port, _}, %{port: port} = link), do: ended(link, nil)
  def handle_info({:DOWN, owner, _, _, _}, %{owner: owner} = link), do: {:stop, :normal, link}

  def handle_info({:DOWN, monitor, _, _, _}, link) do
    case link.callers do
      %{^monitor => ref} -> {:noreply, leave_call(link, link.calls[ref])}
      _ -> {:noreply, link}
    end
  end

  def handle_info({:deadline, ref}, link) do
    case link.calls do
      %{^ref => call} -> {:noreply, link |> answer(call, {:error, late(call.verb)}) |> leave(ref)}
      _ -> {:noreply, link}
    end
  end

  def handle_info(:open_timeout, %{opening: {from, _}} = link) do
    message = "the wall did not stand in time; see `caisson doctor`"
    GenServer.reply(from, {:error, Error.new("open", :etimedout, message)})
    {:stop, :normal, %{link | opening: nil}}
  end

  def handle_info(:close_timeout, %{closing: {from, _, _, _}} = link) do
    message = "the sandbox did not end in time; it is killed with its port"
    GenServer.reply(from, {:error, Error.new("close", :etimedout, message)})
    {:stop, :normal, %{link | closing: nil}}
  end

  def handle_info(_, link), do: {:noreply, link}

  defp spawn_port(options) do
    port_options =
      [:binary, :exit_status, :use_stdio, :hide, :stream, args: ["port"]] ++
        [env: options[:env] || []] ++ if(options[:cd], do: [cd: options[:cd]], else: [])

    {:ok, Port.open({:spawn_executable, options[:program]}, port_options)}
  rescue
    error in [ErlangError, ArgumentError] ->
      reason = Map.get(error, :original, error)
      message = "cannot start #{options[:program]}: #{inspect(reason)}"
      {:error, Error.new("open", Term.word(to_string(error_word(reason))), message)}
  end

  defp error_word(reason) when is_atom(reason), do: reason
  defp error_word(_), do: :einval

  # ---- calls ---------------------------------------------------------------------------------

  defp add_call(link, kind, verb, args, opts, {pid, _} = from) do
    ref = link.last_ref + 1
    monitor = Process.monitor(pid)
    keep = opts[:keep] || @keep_bytes

    call = %{
      ref: ref,
      verb: verb,
      args: args,
      id: opts[:id],
      from: from,
      kind: kind,
      pid: pid,
      tag: {Caisson, ref, make_ref()},
      monitor: monitor,
      timer: clock(opts[:timeout], ref),
      output: Keep.new(keep),
      stdout: Keep.new(keep),
      stderr: Keep.new(keep),
      input: opts[:input],
      input_window: @window,
      output_window: @window,
      facts: 0,
      is_sent: false,
      is_over: false
    }

    if kind == :stream, do: GenServer.reply(from, {:ok, ref, call.tag})

    %{
      link
      | last_ref: ref,
        calls: Map.put(link.calls, ref, call),
        callers: Map.put(link.callers, monitor, ref),
        waiting: :queue.in(ref, link.waiting)
    }
  end

  defp clock(timeout, _ref) when timeout in [nil, :infinity], do: nil
  defp clock(timeout, ref), do: Process.send_after(self(), {:deadline, ref}, timeout)

  defp send_waiting(%{under_way: count} = link) when count >= @under_way, do: link

  defp send_waiting(link) do
    case :queue.out(link.waiting) do
      {:empty, _} ->
        link

      {{:value, ref}, waiting} ->
        link = %{link | waiting: waiting}

        case link.calls do
          %{^ref => call} -> link |> send_call(call) |> send_waiting()
          _ -> send_waiting(link)
        end
    end
  end

  defp send_call(link, call) do
    link = send_frame(link, {:call, call.ref, call.verb, call.args})
    call = %{call | is_sent: true, args: nil}
    pump(%{link | under_way: link.under_way + 1}, call)
  end

  # Input within its window, and its end.
  defp pump(link, %{input: nil} = call), do: put_call(link, call)

  defp pump(link, %{input: ""} = call) do
    link = send_frame(link, {:data, call.ref, :stdin, :eof})
    put_call(link, %{call | input: nil})
  end

  defp pump(link, %{input_window: 0} = call), do: put_call(link, call)

  defp pump(link, call) do
    size = Enum.min([@piece, call.input_window, byte_size(call.input)])
    <<piece::binary-size(size), rest::binary>> = call.input
    link = send_frame(link, {:data, call.ref, :stdin, piece})
    pump(link, %{call | input: rest, input_window: call.input_window - size})
  end

  defp put_call(link, call), do: %{link | calls: Map.put(link.calls, call.ref, call)}

  defp calls_of(link, id), do: for({_, %{id: ^id} = call} <- link.calls, id != nil, do: call)

  # Its caller is answered; the other side may still have to.
  defp answer(link, %{is_over: true}, _answer), do: link

  defp answer(link, call, answer) do
    case call.kind do
      :call -> GenServer.reply(call.from, answer)
      :stream -> send(call.pid, {call.tag, {:over, answer}})
    end

    silence(link, call)
  end

  defp silence(link, call) do
    if call.timer, do: Process.cancel_timer(call.timer)
    Process.demonitor(call.monitor, [:flush])
    none = Keep.new(0)

    %{link | callers: Map.delete(link.callers, call.monitor)}
    |> put_call(%{call | is_over: true, output: none, stdout: none, stderr: none, input: nil})
  end

  defp leave(link, ref) do
    case link.calls[ref] do
      %{is_sent: false} -> %{link | calls: Map.delete(link.calls, ref)}
      _ -> send_frame(link, {:cancel, ref})
    end
  end

  defp leave_call(link, call), do: link |> silence(call) |> leave(call.ref)

  defp cancel_call(link, %{is_sent: true} = call), do: send_frame(link, {:cancel, call.ref})

  defp cancel_call(link, call) do
    error = Error.new(call.verb, :cancelled, "the call was cancelled before it began")
    link |> answer(call, {:error, error}) |> leave(call.ref)
  end

  defp late(stage), do: Error.new(stage, :etimedout, "the call was not done in time")

  defp finish(link, ref, outcome) do
    case link.calls do
      %{^ref => %{is_sent: true} = call} ->
        link = answer(link, call, outcome.(call))
        link = %{link | calls: Map.delete(link.calls, ref), under_way: link.under_way - 1}
        send_waiting(link)

      _ ->
        if link.lost, do: link, else: :error
    end
  end

  # ---- frames --------------------------------------------------------------------------------

  defp receive_frame(bytes, link) do
    with {:ok, frame} <- Term.decode(bytes), %{} = link <- take_frame(frame, link) do
      link
    else
      _ -> nonsense(link)
    end
  end

  # Checked before it is used: the link, or :error. After the end only the answer to `close` counts.

  defp take_frame({:reply, ref, map} = frame, link) when is_integer(ref) and is_map(map),
    do: handle_frame(frame, link)

  defp take_frame({:failed, ref, reason, detail} = frame, link)
       when is_integer(ref) and (is_atom(reason) or is_binary(reason)) and is_binary(detail),
       do: handle_frame(frame, link)

  defp take_frame({:bye, map} = frame, link) when is_map(map), do: handle_frame(frame, link)
  defp take_frame(_, %{opening: opening}) when opening != nil, do: :error
  defp take_frame(_, %{lost: %Error{}} = link), do: link

  defp take_frame({:data, ref, stream, bytes} = frame, link)
       when stream in [:stdout, :stderr, :tty] and byte_size(bytes) in 1..@piece do
    case link.calls do
      %{^ref => %{output_window: room, is_sent: true}} when byte_size(bytes) <= room ->
        handle_frame(frame, link)

      _ ->
        :error
    end
  end

  defp take_frame({:window, ref, size} = frame, link)
       when is_integer(ref) and size in 0..@grant_max,
       do: handle_frame(frame, link)

  defp take_frame({:fact, map} = frame, link) when is_map(map), do: handle_frame(frame, link)
  defp take_frame(_, _link), do: :error

  defp handle_frame({:data, ref, stream, bytes}, link) do
    call = Map.update!(link.calls[ref], :output_window, &(&1 - byte_size(bytes)))

    if call.is_over,
      do: grant(link, call, byte_size(bytes)),
      else: take_output(link, call, stream, bytes)
  end

  defp handle_frame({:reply, 1, map}, %{opening: {from, timer}} = link) do
    Process.cancel_timer(timer)
    link = %{link | opening: nil}

    if map[:protocol] == @protocol do
      GenServer.reply(from, {:ok, map})
      %{link | info: map}
    else
      refuse_version(link, from, map)
    end
  end

  defp handle_frame({:failed, ref, reason, detail}, %{opening: {from, timer}} = link)
       when ref in [0, 1] do
    Process.cancel_timer(timer)
    {stage, text} = staged(detail)
    GenServer.reply(from, {:error, Error.new(stage, reason, text)})
    %{link | opening: nil}
  end

  defp handle_frame({:reply, ref, map}, %{closing: {from, timer, ref, nil}} = link),
    do: %{link | closing: {from, timer, ref, map}}

  defp handle_frame({:reply, ref, map}, link), do: finish(link, ref, &{:ok, map, output_of(&1)})

  defp handle_frame({:failed, 0, _, detail}, link),
    do: lose(link, Error.new("wire", :lost, detail))

  defp handle_frame({:failed, ref, reason, detail}, link),
    do: finish(link, ref, &{:error, Error.new(&1.verb, reason, detail)})

  defp handle_frame({:window, ref, size}, link) do
    case link.calls do
      %{^ref => call} ->
        pump(link, %{call | input_window: min(call.input_window + size, @window)})

      _ ->
        link
    end
  end

  defp handle_frame({:fact, %{ref: ref} = fact}, link) do
    case link.calls do
      %{^ref => %{kind: :stream, is_over: false, facts: count} = call} when count < @facts ->
        send(call.pid, {call.tag, {:violation, Map.delete(fact, :ref)}})
        put_call(link, %{call | facts: count + 1})

      _ ->
        link
    end
  end

  defp handle_frame({:bye, map}, link) do
    reason = text_of(map[:reason], "lost")
    text = text_of(map[:text], "the sandbox ended: #{reason}")
    lose(link, Error.new(text_of(map[:stage], "sandbox"), :lost, text, %{reason: reason}))
  end

  defp handle_frame(_, link), do: link

  defp text_of(text, _otherwise) when is_binary(text) and text != "", do: text
  defp text_of(word, _otherwise) when is_atom(word) and word != nil, do: Atom.to_string(word)
  defp text_of(_, otherwise), do: otherwise

  # More output may come.
  defp grant(link, call, size) do
    link
    |> put_call(%{call | output_window: call.output_window + size})
    |> send_frame({:window, call.ref, size})
  end

  defp take_output(link, %{kind: :stream} = call, stream, bytes) do
    send(call.pid, {call.tag, {:data, stream, bytes}})
    put_call(link, call)
  end

  defp take_output(link, call, stream, bytes) do
    call = %{call | output: Keep.add(call.output, bytes)}
    name = if stream == :stderr, do: :stderr, else: :stdout
    call = Map.update!(call, name, &Keep.add(&1, bytes))
    grant(link, call, byte_size(bytes))
  end

  defp output_of(call) do
    {output, output_cut} = Keep.take(call.output)
    {stdout, stdout_cut} = Keep.take(call.stdout)
    {stderr, stderr_cut} = Keep.take(call.stderr)

    %{
      output: output,
      output_cut: output_cut,
      stdout: stdout,
      stdout_cut: stdout_cut,
      stderr: stderr,
      stderr_cut: stderr_cut
    }
  end

  # "stage: sentence"
  defp staged(detail) do
    case String.split(detail, ": ", parts: 2) do
      [stage, text] -> {stage, text}
      [text] -> {"open", text}
    end
  end

  defp send_frame(%{port: nil} = link, _frame), do: link

  defp send_frame(link, frame) do
    Port.command(link.port, Frames.frame(frame))
    link
  rescue
    # It has ended; a message says so.
    ArgumentError -> link
  end

  # ---- ends ----------------------------------------------------------------------------------

  defp ours, do: Application.spec(:caisson, :vsn) |> to_string()

  defp refuse_version(link, from, map) do
    message =
      "this package is #{ours()} and speaks protocol #{@protocol}; #{link.program} is " <>
        "#{map[:caisson]} and speaks #{inspect(map[:protocol])}: install the same version of both"

    GenServer.reply(from, {:error, Error.new("open", :enotsup, message)})
    lose(link, Error.new("open", :lost, message))
  end

  # The port is closed, and caisson leaves nothing of the sandbox then.
  defp nonsense(link) do
    error =
      Error.new(
        "wire",
        :lost,
        "#{link.program} broke the protocol: what it said is no frame, or out of turn"
      )

    close_port(link.port)
    link = lose(link, error)

    case link.opening do
      {from, timer} ->
        Process.cancel_timer(timer)
        GenServer.reply(from, {:error, error})
        %{link | opening: nil}

      nil ->
        link
    end
  end

  defp close_port(port) do
    Port.close(port)
  rescue
    # It has ended; a message says so.
    ArgumentError -> true
  end

  # Who waits is told; who asks later too.
  defp lose(%{lost: %Error{}} = link, _error), do: link

  defp lose(link, error) do
    link = Enum.reduce(link.calls, link, fn {_, call}, link -> lose_call(link, call, error) end)
    %{link | calls: %{}, callers: %{}, waiting: :queue.new(), under_way: 0, lost: error}
  end

  defp lose_call(link, call, error), do: answer(link, call, {:error, %{error | stage: call.verb}})

  defp ended(%{closing: {from, timer, _, map}} = link, _status) do
    Process.cancel_timer(timer)
    GenServer.reply(from, {:ok, map || %{}})
    {:stop, :normal, %{link | port: nil, closing: nil}}
  end

  defp ended(%{opening: {from, timer}} = link, status) do
    Process.cancel_timer(timer)

    message =
      "#{link.program} (#{Program.version(link.program)}) ended with status #{inspect(status)} " <>
        "before it answered; this package is #{ours()}: install the same version of both"

    GenServer.reply(from, {:error, Error.new("open", :lost, message)})
    {:stop, :normal, %{link | port: nil, opening: nil}}
  end

  defp ended(link, status) do
    error = Error.new("sandbox", :lost, "caisson ended with status #{inspect(status)}")
    {:noreply, lose(%{link | port: nil}, error)}
  end
end
