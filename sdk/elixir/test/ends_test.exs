defmodule Caisson.EndsTest do
  # Whatever ends first - a call's time, its caller, the owner, the process behind the sandbox, this
  # VM - nothing is left, and who waits is told.
  use ExUnit.Case, async: true

  import Caisson.Help

  alias Caisson.{Error, Sandbox}

  defp busy(opts \\ []) do
    {sb, workspace} = sandbox(opts)
    time = odd_sleep()
    {:ok, _} = Sandbox.start(sb, "setsid sleep #{time} & exec sleep #{time}", tag: "busy")
    assert eventually(fn -> length(running(time)) == 2 end)
    {sb, time, workspace}
  end

  test "shutdown" do
    {sb, time, _} = busy()
    assert :ok = Sandbox.shutdown(sb)
    assert running(time) == []
    refute Process.alive?(sb.state.link)
  end

  test "the owner's death" do
    parent = self()
    folder = folder()
    time = odd_sleep()

    owner =
      spawn(fn ->
        {:ok, sb} = Sandbox.new(Sandbox.Process, cwd: Path.join(folder, "ws"), record: false)
        {:ok, _} = Sandbox.start(sb, "exec sleep #{time}")
        send(parent, sb)
        Process.sleep(:infinity)
      end)

    assert_receive %Sandbox{} = sb, 10_000
    assert eventually(fn -> running(time) != [] end)
    Process.exit(owner, :kill)
    assert eventually(fn -> running(time) == [] end)
    refute Process.alive?(sb.state.link)
  end

  test "an owner of its own" do
    {:ok, owner} = Agent.start(fn -> nil end)
    {sb, _} = sandbox(owner: owner)
    assert {:ok, _} = Sandbox.exec(sb, "true")
    Agent.stop(owner)
    assert eventually(fn -> not Process.alive?(sb.state.link) end)
  end

  test "the death of the process behind it" do
    {sb, time, _} = busy()
    task = Task.async(fn -> Sandbox.exec(sb, "sleep 60") end)
    Process.sleep(50)
    Process.exit(sb.state.link, :kill)
    assert {:error, %Error{code: :lost}} = Task.await(task)
    assert {:error, %Error{code: :lost}} = Sandbox.exec(sb, "true")
    assert :ok = Sandbox.shutdown(sb)
    assert eventually(fn -> running(time) == [] end)
  end

  test "the death of caisson itself" do
    {sb, time, _} = busy()
    {:os_pid, pid} = Port.info(:sys.get_state(sb.state.link).port, :os_pid)
    task = Task.async(fn -> sb |> Sandbox.stream("sleep 60") |> Enum.to_list() end)
    Process.sleep(50)
    {_, 0} = System.cmd("kill", ["-9", "#{pid}"])
    Process.unlink(task.pid)
    assert {:exit, {%Error{code: :lost}, _}} = Task.yield(task, 5000)
    assert {:error, %Error{code: :lost}} = Sandbox.exec(sb, "true")
    assert eventually(fn -> running(time) == [] end)
    assert :ok = Sandbox.shutdown(sb)
  end

  test "the sandbox ends by itself, and says why" do
    {sb, _} = sandbox(limits: [idle: "200ms"])
    Process.sleep(600)
    assert {:error, %Error{code: :lost} = error} = Sandbox.exec(sb, "true")
    assert error.message =~ "timeout" and error.details == %{reason: "timeout"}
  end

  test "the end of this VM, however it comes" do
    folder = folder()
    time = odd_sleep()

    code = """
    {:ok, _} = Application.ensure_all_started(:caisson)
    {:ok, sb} = Caisson.Sandbox.new(Caisson.Sandbox.Process, cwd: #{inspect(folder)}, record: false)
    {:ok, _} = Caisson.Sandbox.start(sb, "exec sleep #{time}")
    Caisson.Sandbox.exec(sb, "sleep #{time}")
    """

    ebin = Path.join(:code.lib_dir(:caisson), "ebin")
    elixir = System.find_executable("elixir")
    vm = Port.open({:spawn_executable, elixir}, [:binary, args: ["-pa", ebin, "-e", code]])
    {:os_pid, pid} = Port.info(vm, :os_pid)
    assert eventually(fn -> length(running("sleep\0" <> time)) == 2 end, 20_000)
    {_, 0} = System.cmd("kill", ["-9", "#{pid}"])
    assert eventually(fn -> running(time) == [] end, 10_000)
  end

  test "a call's time, and its late answer" do
    {sb, _} = sandbox()
    link = sb.state.link
    # Without the grace that exec gives the monitor to tell of its own clock.
    assert {:error, %Error{code: :etimedout}} =
             Caisson.Link.call(link, :exec, %{command: "sleep 1"}, timeout: 100)

    assert {:ok, %{output: "on\n"}} = Sandbox.exec(sb, "echo on")
    assert eventually(fn -> :sys.get_state(link).calls == %{} end)
    state = :sys.get_state(link)
    assert {state.under_way, state.callers} == {0, %{}}
    refute_received _
  end

  test "a caller's death cancels his call" do
    {sb, _} = sandbox()
    time = odd_sleep()
    caller = spawn(fn -> Sandbox.exec(sb, "sleep #{time}") end)
    assert eventually(fn -> running(time) != [] end)
    Process.exit(caller, :kill)
    assert eventually(fn -> running(time) == [] end)
    assert eventually(fn -> :sys.get_state(sb.state.link).calls == %{} end)
  end

  test "a call is cancelled by its id, under way or not yet" do
    {sb, _} = sandbox()
    tasks = for n <- 1..40, do: Task.async(fn -> Sandbox.exec(sb, "sleep 60", id: n) end)
    assert eventually(fn -> map_size(:sys.get_state(sb.state.link).calls) == 40 end)
    for n <- 40..1, do: assert(:ok = Sandbox.cancel(sb, n))
    answers = Task.await_many(tasks, 20_000)
    assert Enum.count(answers, &match?({:error, %Error{code: :cancelled}}, &1)) >= 16

    assert Enum.all?(answers, fn
             {:error, %Error{code: :cancelled}} -> true
             {:ok, done} -> done.termination.reason == :cancelled
           end)
  end

  test "ten thousand callers at once: all are answered, and no more are taken" do
    {sb, _} = sandbox()
    :ok = Sandbox.write(sb, "a", "x")
    # All 24 places are taken, so that the calls have to wait together.
    blockers = for n <- 1..24, do: Task.async(fn -> Sandbox.exec(sb, "sleep 60", id: n) end)
    assert eventually(fn -> :sys.get_state(sb.state.link).under_way == 24 end, 10_000)
    callers = for _ <- 1..10_100, do: Task.async(fn -> Sandbox.stat(sb, "a") end)
    assert eventually(fn -> map_size(:sys.get_state(sb.state.link).calls) == 10_024 end, 10_000)
    for n <- 1..24, do: Sandbox.cancel(sb, n)
    answers = Task.await_many(callers, 50_000)
    assert Enum.count(answers, &match?({:ok, %{size: 1}}, &1)) == 10_000
    assert Enum.count(answers, &match?({:error, %Error{code: :eagain}}, &1)) == 100
    Task.await_many(blockers)
  end
end
