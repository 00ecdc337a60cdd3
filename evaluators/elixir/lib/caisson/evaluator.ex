defmodule Caisson.Evaluator do
  @moduledoc """
  A session of Elixir code, for a parent on the other end of standard input and output:

      elixir --erl -noinput -pa EBIN -e "Caisson.Evaluator.main()"

  Frames are those of an Erlang port with `packet: 4`. One process owns them, and the session: what
  evaluations bound. Each evaluation runs in a process of its own, which is ended when it passes a
  limit, and never touches a frame. When the parent's end closes, this VM ends.

  `main(:port)` takes code under the restriction of `Caisson.Evaluator.Rules`, `main(:port_unrestricted)`
  any. `describe/1` prints what either allows.
  """

  alias Caisson.Evaluator.{Names, Output, Plain, Requests, Rules, Run, Stubs, Wire}

  @limits %{
    source_bytes: 262_144,
    heap_bytes: 256 * 1024 * 1024,
    binary_bytes: 256 * 1024 * 1024,
    reductions: 4_000_000_000,
    output_bytes: 1_000_000,
    time_ms: 0
  }

  # All that is kept together, as bytes and parts of a frame.
  @binding_bytes 8 * 1024 * 1024
  @binding_parts 120_000
  # What a gate is asked with.
  @asked_bytes 1024 * 1024
  @frame_bytes 16 * 1024 * 1024
  @tick_ms 20
  # Of the 1,048,576 that a VM has.
  @atoms 400_000

  # Nothing runs; what matches a run's process finds none.
  @idle %{pid: nil, monitor: nil, tag: nil, ref: nil}

  @doc "Prints what code may use."
  def describe(sandbox \\ :port), do: IO.puts(Rules.describe(sandbox))

  @doc "Serves one session on the two descriptors."
  def main(sandbox \\ :port, {input, output} \\ {0, 1})
      when sandbox in [:port, :port_unrestricted] do
    Process.flag(:trap_exit, true)
    Process.flag(:priority, :high)
    Process.register(self(), Requests.name())
    device = Output.start(:keep)
    own_output(device, sandbox)
    Names.start()
    load()
    if sandbox == :port, do: Stubs.load()

    loop(%{
      port: :erlang.open_port({:fd, input, output}, [:binary, packet: 4]),
      sandbox: sandbox,
      device: device,
      ready: false,
      binding: %{},
      handles: %{},
      run: @idle,
      asked: nil,
      asking: :queue.new()
    })
  end

  # Before anything is read: a word that the table has is to be an atom by then.
  defp load do
    for module <- [
          Rules,
          Run,
          Plain,
          Wire,
          Caisson.Evaluator.Check,
          Caisson.Evaluator.Net,
          Caisson.Evaluator.Safe
        ] do
      {:module, _} = Code.ensure_loaded(module)
    end
  end

  # What the VM and its libraries print goes where code prints, or nowhere.
  defp own_output(device, sandbox) do
    replace(:user, device)
    replace(:standard_error, if(sandbox == :port, do: Output.start(:drop), else: Output.forward(device)))
    Process.group_leader(self(), device)
    if sandbox == :port, do: :logger.set_primary_config(:level, :none)
  end

  defp replace(name, pid) do
    if Process.whereis(name), do: Process.unregister(name)
    Process.register(pid, name)
  end

  defp loop(state) do
    state =
      receive do
        {port, {:data, bytes}} when port == state.port -> frame(bytes, state)
        {:EXIT, port, _} when port == state.port -> stop(0)
        {:request, pid, tag, kind, name, args} -> request({pid, tag, kind, name, args}, state)
        {:bound, pid, changes} when pid == state.run.pid -> bound(changes, state)
        {:finished, pid, result} when pid == state.run.pid -> finish(result, state)
        {:DOWN, monitor, _, _, reason} when monitor == state.run.monitor -> died(reason, state)
        {:tell, map} -> tell(map, state)
        {:tick, tag} when tag == state.run.tag -> tick(state)
        {:late, tag} when tag == state.run.tag -> kill("port code evaluation timed out", state)
        _ -> state
      end

    loop(state)
  end

  defp stop(status), do: :erlang.halt(status, flush: false)

  # ---- frames --------------------------------------------------------------------------------

  defp frame(bytes, state) do
    case Wire.open(bytes) do
      {:ok, name, parts} -> take(name, parts, state)
      :error -> broken()
    end
  end

  # Whoever sends what is no frame does not speak this protocol; nothing can be answered.
  defp broken, do: stop(1)

  defp take("init", [binding], state) do
    with {:ok, binding} <- Wire.decode(binding), {:ok, binding} <- initial(binding) do
      ready(binding, state)
    else
      {:error, why} -> send_frame(:init_error, [Wire.bytes(why)], state)
      :error -> send_frame(:init_error, [Wire.bytes("the binding is no plain data")], state)
    end
  end

  defp take("eval", [ref, code, env], %{ready: false} = state) do
    _ = {code, env}
    failed(ref, "not initialized: the first frame is {init, Binding}", state)
  end

  defp take("eval", [ref, code, env], %{run: %{pid: nil}} = state) do
    with {:ok, code} when is_binary(code) <- Wire.decode(code),
         {:ok, env} when is_map(env) <- Wire.decode(env) do
      evaluate(ref, code, settings(env), state)
    else
      _ -> failed(ref, "an eval is {eval, Ref, Code, Env}: a text and a map", state)
    end
  end

  defp take("eval", [ref, _, _], state),
    do: failed(ref, "an evaluation is running: one at a time", state)

  defp take("gate_result", [ref, value], state), do: answered(:gate_call, ref, value, & &1, state)
  defp take("api_result", [ref, value], state), do: answered(:api_call, ref, value, & &1, state)

  defp take("compile_allowed", [ref, value], state),
    do: answered(:compile_request, ref, value, &{:allowed, &1}, state)

  defp take("compile_denied", [ref, value], state),
    do: answered(:compile_request, ref, value, &{:denied, &1}, state)

  defp take(_, _, _), do: broken()

  defp initial(binding) when is_map(binding) or is_list(binding) do
    pairs =
      Enum.map(binding, fn {name, value} when is_atom(name) or is_binary(name) -> {to_string(name), value} end)

    Enum.reduce_while(pairs, {:ok, %{}}, fn {name, value}, {:ok, kept} ->
      case Plain.encode(value) do
        {:ok, bytes, parts, _} -> {:cont, {:ok, Map.put(kept, name, {value, bytes, parts})}}
        {:error, why} -> {:halt, {:error, "the variable #{name} cannot be taken: #{why}"}}
      end
    end)
  rescue
    _ -> {:error, "a binding is a map of names and values"}
  end

  defp initial(_), do: {:error, "a binding is a map of names and values"}

  defp ready(binding, state) do
    state = %{state | ready: true, binding: binding}
    send_frame(:ready, [Wire.bytes(self())], state)
  end

  # ---- an evaluation -------------------------------------------------------------------------

  defp settings(env) do
    env = Map.new(env, fn {key, value} -> {to_string(key), value} end)
    given = if is_map(env["limits"]), do: env["limits"], else: %{}
    given = Map.new(given, fn {key, value} -> {to_string(key), value} end)

    limits =
      Map.new(@limits, fn {key, value} ->
        case given[Atom.to_string(key)] do
          number when is_integer(number) and number > 0 -> {key, number}
          _ -> {key, value}
        end
      end)

    gates = for name <- List.wrap(env["gates"]), gate?(name), do: to_string(name)
    %{gates: gates, limits: limits}
  end

  defp gate?(name) when is_atom(name), do: gate?(Atom.to_string(name))
  defp gate?(name), do: is_binary(name) and Regex.match?(~r/\A[a-z]\w{0,63}[?!]?\z/, name)

  defp evaluate(ref, code, settings, state) do
    Output.reset(state.device, settings.limits.output_bytes)
    binding = Map.new(state.binding, fn {name, {value, _, _}} -> {name, value} end)

    job = %{
      code: code,
      sandbox: state.sandbox,
      device: state.device,
      gates: settings.gates,
      limits: settings.limits,
      binding: binding,
      handles: state.handles
    }

    tag = make_ref()
    {pid, monitor} = Run.start(self(), job)
    Process.send_after(self(), {:tick, tag}, @tick_ms)
    if settings.limits.time_ms > 0, do: Process.send_after(self(), {:late, tag}, settings.limits.time_ms)

    run = %{
      pid: pid,
      monitor: monitor,
      tag: tag,
      ref: ref,
      limits: settings.limits,
      gates: settings.gates,
      notes: [],
      binary: :erlang.memory(:binary)
    }

    %{state | run: run}
  end

  # Functions and their like are dropped with a word that the next evaluation can be told.
  defp bound(changes, state), do: Enum.reduce(changes, state, &bind/2)

  defp bind({name, :handle}, state),
    do: drop(name, "it was a function or another handle, which is not kept", state)

  defp bind({name, {:dropped, why}}, state) do
    note = "#{name} is not kept after this evaluation: #{why}"
    drop(name, why, put_in(state.run.notes, [note | state.run.notes]))
  end

  defp bind({name, {:kept, value, bytes, parts}}, state) do
    others = Map.delete(state.binding, name) |> Map.values()
    size = Enum.reduce(others, byte_size(bytes), &(byte_size(elem(&1, 1)) + &2))
    count = Enum.reduce(others, parts, &(elem(&1, 2) + &2))

    if size > @binding_bytes or count > @binding_parts,
      do: bind({name, {:dropped, "all variables together have #{size} bytes and #{count} parts"}}, state),
      else: %{
        state
        | binding: Map.put(state.binding, name, {value, bytes, parts}),
          handles: Map.delete(state.handles, name)
      }
  end

  defp drop(name, why, state) do
    handles = if map_size(state.handles) < 1000, do: Map.put(state.handles, name, why), else: %{}
    %{state | binding: Map.delete(state.binding, name), handles: handles}
  end

  defp finish({:ok, value, _parts}, state), do: result(value, false, state)
  defp finish({:error, why}, state), do: over(why, state)

  defp result(value, terminated, state) do
    parts = [state.run.ref, bound_bytes(state), value, Wire.bytes(terminated), output(state)]
    :eval_result |> send_frame(parts, state) |> rest()
  end

  defp over(why, state),
    do:
      :eval_error
      |> send_frame([state.run.ref, bound_bytes(state), Wire.bytes(why), output(state)], state)
      |> rest()

  defp failed(ref, why, state),
    do: send_frame(:eval_error, [ref, bound_bytes(state), Wire.bytes(why), Wire.bytes("")], state)

  # What a process left behind asks from now on has nobody to ask for it.
  defp rest(state) do
    if state.run.monitor, do: Process.demonitor(state.run.monitor, [:flush])
    for one <- :queue.to_list(state.asking), do: reply(one, {:error, "the evaluation is over"})
    if state.asked, do: reply(state.asked, {:error, "the evaluation is over"})
    state = %{state | run: @idle, asked: nil, asking: :queue.new()}
    if :erlang.system_info(:atom_count) > @atoms, do: stop(3), else: state
  end

  defp bound_bytes(state),
    do: Wire.map(for {name, {_, bytes, _}} <- state.binding, do: {name, bytes})

  defp output(state) do
    notes = state.run.notes |> Enum.reverse() |> Enum.take(20) |> Enum.map(&[&1, "\n"])
    Wire.bytes(IO.iodata_to_binary([Output.take(state.device), notes]))
  end

  defp died(reason, state) do
    why =
      case reason do
        :killed ->
          "the evaluation needed more than #{state.run.limits.heap_bytes} bytes of memory (limits.heap_bytes)"

        reason ->
          "the evaluation's process ended: #{inspect(reason, limit: 20, printable_limit: 400)}"
      end

    over(why, state)
  end

  defp kill(why, state) do
    Process.exit(state.run.pid, :kill)
    state |> drain() |> then(&over(why, &1))
  end

  # What it bound before it was killed is in the mailbox; after its end nothing more comes.
  defp drain(%{run: %{pid: pid, monitor: monitor}} = state) do
    receive do
      {:bound, ^pid, changes} -> drain(bound(changes, state))
      {:DOWN, ^monitor, _, _, _} -> late(state)
      # What it does cannot be interrupted, a product of huge numbers say: that may take longer than the host lives.
      {:EXIT, port, _} when port == state.port -> stop(0)
    end
  end

  defp late(%{run: %{pid: pid}} = state) do
    receive do
      {:bound, ^pid, changes} -> late(bound(changes, state))
    after
      0 -> state
    end
  end

  # ---- limits --------------------------------------------------------------------------------

  defp tick(%{sandbox: :port, run: run} = state) do
    grown = :erlang.memory(:binary) - run.binary

    cond do
      reductions(run.pid) > run.limits.reductions ->
        kill("the evaluation took more than #{run.limits.reductions} steps (limits.reductions)", state)

      grown > run.limits.binary_bytes ->
        kill(
          "the evaluation's binaries have more than #{run.limits.binary_bytes} bytes (limits.binary_bytes)",
          state
        )

      :erlang.system_info(:atom_count) > @atoms ->
        kill("the evaluation made too many atoms", state)

      true ->
        Process.send_after(self(), {:tick, run.tag}, @tick_ms)
        state
    end
  end

  defp tick(state), do: state

  defp reductions(pid) do
    case Process.info(pid, :reductions) do
      {:reductions, count} -> count
      nil -> 0
    end
  end

  # ---- what code asks ------------------------------------------------------------------------

  defp request(one, %{run: %{pid: pid}, asked: nil} = state) when pid != nil, do: ask(one, state)

  defp request(one, %{run: %{pid: pid}} = state) when pid != nil,
    do: %{state | asking: :queue.in(one, state.asking)}

  defp request(one, state) do
    reply(one, {:error, "no evaluation is running: nobody can be asked"})
    state
  end

  defp ask({_, _, kind, name, args} = one, state) do
    case Plain.encode(args) do
      {:ok, bytes, _, _} when byte_size(bytes) > @asked_bytes ->
        reply(one, {:error, "the arguments of #{name} cannot cross: at most #{@asked_bytes} bytes can"})
        next(state)

      {:ok, bytes, _, _} ->
        parts =
          if kind == :compile_request,
            do: [state.run.ref, bytes],
            else: [state.run.ref, Wire.bytes(name), bytes]

        send_frame(kind, parts, %{state | asked: one})

      {:error, why} ->
        reply(one, {:error, "the arguments of #{name} cannot cross: #{why}"})
        next(state)
    end
  end

  defp next(state) do
    case :queue.out(state.asking) do
      {{:value, one}, asking} -> ask(one, %{state | asking: asking})
      {:empty, _} -> state
    end
  end

  # An answer to what nobody asks any more is late, and no fault of the parent's.
  defp answered(kind, ref, value, as, %{asked: {_, _, kind, _, _} = one, run: %{ref: ref}} = state) do
    case Wire.decode(value) do
      {:ok, value} -> answer(one, as.(value), %{state | asked: nil})
      :error -> broken()
    end
  end

  defp answered(_, _, _, _, state), do: state

  # Nothing of the code runs after this, no `after` and no `catch` of its either.
  defp answer({_, _, :gate_call, "done", _} = one, observation, state) do
    if error?(observation) do
      reply(one, {:ok, observation})
      next(state)
    else
      Process.exit(state.run.pid, :kill)
      state = drain(state)

      case Plain.encode(Requests.result(observation)) do
        {:ok, value, _, _} -> result(value, true, state)
        {:error, why} -> over("the answer cannot cross: #{why}", state)
      end
    end
  end

  defp answer(one, value, state) do
    reply(one, {:ok, value})
    next(state)
  end

  defp error?(%{is_error: error}), do: error
  defp error?(%{"is_error" => error}), do: error
  defp error?(_), do: false

  defp reply({pid, tag, _, _, _}, what), do: send(pid, {:answer, tag, what})

  defp tell(map, state) do
    with {:ok, bytes, _, _} <- Plain.encode(map), do: send_frame(:gate_observation, [bytes], state)
    state
  end

  defp send_frame(name, parts, state) do
    bytes = Wire.frame(name, parts)

    if IO.iodata_length(bytes) > @frame_bytes do
      short = [hd(parts), Wire.bytes(%{}), Wire.bytes("the answer is larger than a frame"), Wire.bytes("")]
      Port.command(state.port, Wire.frame(:eval_error, short))
    else
      Port.command(state.port, bytes)
    end

    state
  end
end
