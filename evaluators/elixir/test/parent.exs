defmodule Parent do
  @moduledoc false
  # The other end, by hand: a port that speaks frames, and nothing of the evaluator's.

  @wait 200_000
  # What an evaluation may use unless a test says otherwise: small, so that its end comes soon.
  @limits %{heap_bytes: 64_000_000, binary_bytes: 128_000_000}

  defstruct [:port, :gates, :answer]

  def folder, do: System.fetch_env!("CAISSON_EVALUATOR")

  def start(opts \\ []) do
    parent = open(opts)
    send_frame(parent, {:init, opts[:binding] || %{}})
    {:ready, pid} = receive_frame(parent)
    true = is_pid(pid)
    parent
  end

  def open(opts \\ []) do
    {program, args} = opts[:argv] || {Path.join(folder(), "caisson-elixir"), [opts[:sandbox] || "port"]}
    options = [:binary, :exit_status, packet: 4, args: args]
    port = Port.open({:spawn_executable, program}, options)
    %__MODULE__{port: port, gates: opts[:gates] || ["done", "read_file", "echo"], answer: opts[:answer]}
  end

  def send_frame(parent, frame), do: Port.command(parent.port, :erlang.term_to_binary(frame))

  def receive_frame(%{port: port}, wait \\ @wait) do
    receive do
      {^port, {:data, bytes}} -> :erlang.binary_to_term(bytes)
      {^port, {:exit_status, status}} -> {:exited, status}
    after
      wait -> raise "no frame within #{wait} ms"
    end
  end

  @doc "The value, or the error, with what was printed and bound."
  def eval(parent, code, opts \\ []) do
    ref = opts[:ref] || 1
    limits = Map.merge(@limits, Map.new(opts[:limits] || []))
    gates = opts[:gates] || parent.gates
    send_frame(parent, {:eval, ref, code, %{gates: gates, limits: limits}})
    await(parent, ref, opts[:answer] || parent.answer)
  end

  def await(parent, ref, answer) do
    case receive_frame(parent) do
      {:eval_result, ^ref, binding, value, terminated, output} ->
        %{value: value, binding: binding, terminated: terminated, output: output}

      {:eval_error, ^ref, binding, reason, output} ->
        %{error: reason, binding: binding, output: output}

      {:gate_call, ^ref, name, args} ->
        reply(parent, :gate_result, ref, answer, {:gate, name, args})
        await(parent, ref, answer)

      {:compile_request, ^ref, args} ->
        {kind, payload} = answer.({:compile, args})
        send_frame(parent, {kind, ref, payload})
        await(parent, ref, answer)

      {:api_call, ^ref, function, args} ->
        reply(parent, :api_result, ref, answer, {:api, function, args})
        await(parent, ref, answer)

      {:gate_observation, map} ->
        send(self(), {:observed, map})
        await(parent, ref, answer)

      other ->
        other
    end
  end

  defp reply(parent, kind, ref, answer, what) do
    value = if answer, do: answer.(what), else: known(what)
    send_frame(parent, {kind, ref, value})
  end

  # As a parent's gates do: one that is not there says so, one that is given nonsense says so.
  def known({:gate, "done", [answer]}), do: %{gate: "done", result: answer, is_error: false}

  def known({:gate, "read_file", [path]}) when is_binary(path),
    do: %{gate: "read_file", result: "text of #{path}", is_error: false}

  def known({:gate, "read_file", args}),
    do: %{gate: "read_file", result: "read_file takes one path, got #{inspect(args)}", is_error: true}

  def known({:gate, "echo", args}), do: %{gate: "echo", result: args, is_error: false}
  def known({:api, function, args}), do: "#{function}: #{inspect(args)}"
  def known({:gate, name, _}), do: %{gate: name, result: "unknown gate: #{name}", is_error: true}

  def close(parent) do
    Port.close(parent.port)
  rescue
    ArgumentError -> true
  end
end
