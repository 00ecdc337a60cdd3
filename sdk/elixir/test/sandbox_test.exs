defmodule Caisson.SandboxTest do
  use ExUnit.Case, async: true

  import Caisson.Help

  alias Caisson.{Error, Sandbox}

  @walls [Sandbox.Local, Sandbox.Process, Sandbox.Wall]

  for module <- @walls do
    test "#{inspect(module)}: files, commands, search in the same shapes" do
      {sb, workspace} = sandbox([], unquote(module))
      assert :ok = Sandbox.write(sb, "lib/a.txt", ["one\n", "two\n"])
      assert {:ok, "one\ntwo\n"} = Sandbox.read(sb, "lib/a.txt")
      assert {:ok, "wo"} = Sandbox.read(sb, "lib/a.txt", offset: 5, length: 2)
      assert File.read!(Path.join(workspace, "lib/a.txt")) == "one\ntwo\n"
      assert {:ok, %{occurrences: 1}} = Sandbox.edit(sb, "lib/a.txt", "two", "2")
      assert {:ok, ["lib/a.txt"]} = Sandbox.glob(sb, "lib/*.txt")
      assert {:ok, [%{path: "lib/a.txt", line_number: 2, line: "2"}]} = Sandbox.grep(sb, "[0-9]")
      assert {:ok, %{paths: _, truncated: false}} = Sandbox.glob(sb, "*", details: true)

      assert {:ok, %{output: "hi\n", exit_code: 0, violations: []}} = Sandbox.exec(sb, "echo hi")
      assert {:ok, %{exit_code: 3}} = Sandbox.exec(sb, ["sh", "-c", "exit 3"])
      assert {:ok, %{output: "\n"}} = Sandbox.exec(sb, "echo $X", env: [Y: 1])
      assert {:ok, %{output: "7\n"}} = Sandbox.exec(sb, "echo $X", env: %{"X" => 7})
      assert {:ok, %{output: "in"}} = Sandbox.exec(sb, "cat", stdin: ["i", ?n])
      assert {:ok, %{output: text}} = Sandbox.exec(sb, "pwd", cwd: "lib")
      assert text =~ ~r"/lib\n$"

      assert :ok = Sandbox.move(sb, "lib/a.txt", "b.txt")
      assert {:ok, %{type: :file, size: 6}} = Sandbox.stat(sb, "b.txt")
      assert :ok = Sandbox.remove(sb, "lib", recursive: true)
      assert {:ok, %{entries: entries}} = Sandbox.list(sb, ".")
      assert "b.txt" in Enum.map(entries, & &1.name)
      assert {:ok, %{mode: "rw"}} = Sandbox.stats(sb)
      assert :ok = Sandbox.shutdown(sb)
      assert {:error, %Error{code: :lost}} = Sandbox.read(sb, "b.txt")
    end
  end

  test "each command is a process of its own" do
    {sb, _} = sandbox()
    assert {:ok, %{exit_code: 0}} = Sandbox.exec(sb, "cd /; export X=1; Y=2")
    assert {:ok, %{output: "/workspace::\n"}} = Sandbox.exec(sb, "echo $PWD:$X:$Y")
  end

  test "output is merged in order, and kept by its halves" do
    {sb, _} = sandbox()
    text = "for i in 1 2 3; do echo o$i; sleep 0.02; echo e$i >&2; sleep 0.02; done"
    assert {:ok, done} = Sandbox.exec(sb, text)
    assert done.output == "o1\ne1\no2\ne2\no3\ne3\n"
    assert {done.stdout, done.stderr} == {"o1\no2\no3\n", "e1\ne2\ne3\n"}

    assert {:ok, done} = Sandbox.exec(sb, "seq 100000", keep_bytes: 20)
    assert done.output == "1\n2\n3\n4\n5\n99\n100000\n"
    assert done.output_cut == done.usage.stdout_bytes - 20
  end

  test "how a command ends" do
    {sb, _} = sandbox(limits: [memory: "64MiB"])
    assert {:ok, done} = Sandbox.exec(sb, "sleep 60", timeout: 200)
    assert %{exit_code: nil, termination: %{reason: :timeout, clock: :command}} = done
    assert done.termination.text =~ "200"
    assert [%{event: "TimeoutViolation"}] = done.violations

    assert {:ok, %{exit_code: nil, termination: %{reason: :signaled, signal: 9}}} =
             Sandbox.exec(sb, "kill -9 $$")

    assert {:ok, %{termination: %{reason: :start_failed, error: :enoent, text: text}}} =
             Sandbox.exec(sb, ["no-such-program"])

    assert text =~ "no-such-program"

    assert {:ok, %{violations: [%{event: "FilesystemWriteViolation", path: "/etc/x"}]}} =
             Sandbox.exec(sb, "echo x >/etc/x")
  end

  test "errors have a stage, a code and a sentence" do
    {sb, _} = sandbox()
    assert {:error, %Error{stage: "read", code: :enoent} = error} = Sandbox.read(sb, "none")
    assert Exception.message(error) =~ "none"
    assert {:error, %Error{code: :einval}} = Sandbox.read(sb, "../x")
    assert {:error, %Error{code: :invalid_regex}} = Sandbox.grep(sb, "(")
    :ok = Sandbox.write(sb, "a", "xx")

    assert {:error, %Error{code: :not_unique, details: %{occurrences: 2}}} =
             Sandbox.edit(sb, "a", "x", "y")

    assert {:error, %Error{code: :not_found}} = Sandbox.edit(sb, "a", "z", "y")
    assert {:error, %Error{code: :e2big}} = Sandbox.edit(sb, "a", "x", large(6_000_000))
    assert {:error, %Error{code: :invalid}} = Sandbox.exec(sb, "true", tag: "x\0y")
    assert {:ok, %{exit_code: 0}} = Sandbox.exec(sb, "true")
  end

  test "large files go both ways" do
    {sb, workspace} = sandbox()
    content = :crypto.strong_rand_bytes(3_000_001)
    assert :ok = Sandbox.write(sb, "big", content)
    assert File.read!(Path.join(workspace, "big")) == content
    assert {:ok, ^content} = Sandbox.read(sb, "big")
    assert {:ok, %{output: sum}} = Sandbox.exec(sb, "wc -c", stdin: content)
    assert String.trim(sum) == "3000001"
  end

  test "a stream gives what comes, as it comes" do
    {sb, _} = sandbox()
    stream = Sandbox.stream(sb, "echo a; sleep 0.05; echo b >&2; echo x >/etc/x; exit 4")
    events = Enum.to_list(stream)
    assert {:stdout, "a\n"} = hd(events)
    assert {:exit, %{exit_code: 4}} = List.last(events)
    assert Enum.any?(events, &match?({:violation, %{path: "/etc/x"}}, &1))
    assert for({:stderr, bytes} <- events, into: "", do: bytes) =~ "b\n"

    # A reader who stops has had enough: the command ends, whatever it writes.
    time = odd_sleep()
    assert ["go\n"] = sb |> lines("echo go; exec sleep #{time}") |> Enum.take(1)
    assert eventually(fn -> running(time) == [] end)
    assert [_ | _] = sb |> lines("yes") |> Enum.take(100)
    assert {:ok, %{output: "still\n"}} = Sandbox.exec(sb, "echo still")
    refute_received _
  end

  test "a stream that is not read holds its command back, and no memory" do
    {sb, _} = sandbox()
    parent = self()

    pid =
      spawn(fn ->
        sb |> Sandbox.stream("yes") |> Enum.each(fn _ -> Process.sleep(:infinity) end)
        send(parent, :over)
      end)

    Process.sleep(300)

    size = fn ->
      {:messages, messages} = Process.info(pid, :messages)
      Enum.sum(for {_, {:data, _, bytes}} <- messages, do: byte_size(bytes))
    end

    assert size.() in 100_000..262_144
    before = size.()
    Process.sleep(100)
    assert size.() == before
    Process.exit(pid, :kill)
    assert eventually(fn -> match?({:ok, %{commands: 0}}, Sandbox.stats(sb)) end)
  end

  test "commands that outlive their call" do
    {sb, _} = sandbox()
    assert {:ok, %{detached: true, pid: pid}} = Sandbox.start(sb, "echo up; sleep 60", tag: "web")
    assert is_integer(pid)

    assert {:ok, %{reached: true, line: "up"}} =
             Sandbox.wait(sb, "web", line: "up", timeout: 5000)

    assert {:ok, %{stdout: "up\n", running: true}} = Sandbox.logs(sb, "web")
    assert {:ok, [%{tag: "web", state: :running}]} = Sandbox.ps(sb)
    assert {:ok, %{timed_out: true}} = Sandbox.wait(sb, "web", timeout: 50)
    assert :ok = Sandbox.kill(sb, "web", signal: 9)
    assert {:ok, %{reached: true, signal: 9}} = Sandbox.wait(sb, "web", timeout: 5000)
    assert {:error, %Error{code: :enoent}} = Sandbox.logs(sb, "none")
  end

  test "a copy-on-write workspace" do
    {sb, workspace} = sandbox(mode: :cow, record: true, run_dir: Path.join(folder(), "runs"))
    :ok = Sandbox.write(sb, "a.txt", "new\n")
    refute File.exists?(Path.join(workspace, "a.txt"))
    assert {:ok, %{changes: [%{path: "a.txt", change: :added}], text: text}} = Sandbox.diff(sb)
    assert text =~ "+new"
    assert {:ok, %{entries: _}} = Sandbox.snapshot(sb, "one")
    assert {:ok, %{applied: [%{path: "a.txt"}]}} = Sandbox.commit(sb)
    assert File.read!(Path.join(workspace, "a.txt")) == "new\n"
    name = "elixir-#{System.unique_integer([:positive])}-#{System.pid()}"
    assert {:ok, %{entries: _}} = Sandbox.fork(sb, name, tag: "one")
    assert {:ok, other} = Sandbox.new(Sandbox.Wall, attach: name)
    assert {:ok, "new\n"} = Sandbox.read(other, "a.txt")
    assert :ok = Sandbox.shutdown(other)
    {_, 0} = System.cmd(System.get_env("CAISSON") || "caisson", ["down", name])
  end

  test "mounts, lent at the start and while it runs" do
    folder = folder()
    File.write!(Path.join(folder, "x"), "lent")
    policy = {:text, "version: 1\nworkspace: {mode: rw}\nmount_roots: [\"#{folder}\"]\n"}
    {sb, _} = sandbox(policy: policy, mounts: [{folder, "/lent", :readonly}])
    assert {:ok, "lent"} = Sandbox.read(sb, "/lent/x")
    assert {:ok, %{exit_code: 1}} = Sandbox.exec(sb, "echo x 2>/dev/null >/lent/y")
    assert :ok = Sandbox.mount(sb, folder, "/mnt/more")
    assert {:ok, "lent"} = Sandbox.read(sb, "/mnt/more/x")
    assert {:error, %Error{code: :eperm}} = Sandbox.mount(sb, "/etc", "/mnt/more2")
    assert {:error, %Error{code: :einval}} = Sandbox.mount(sb, folder, "/mnt/m", mode: :frob)
  end

  test "what a sandbox does not have is not supported" do
    {sb, _} = sandbox([], Sandbox.Local)
    assert {:error, :not_supported} = Sandbox.mount(sb, "/tmp", "/x")
    assert {:error, %Error{code: :not_supported}} = Sandbox.diff(sb)
  end

  # ---- which one -----------------------------------------------------------------------------

  defmodule Chooses do
    def sandbox, do: {Caisson.Sandbox.Process, mode: :ro}
  end

  test "the option, then the module, then the default" do
    assert {Sandbox.Wall, []} = Sandbox.resolve(sandbox: Sandbox.Wall, module: Chooses)
    assert {Sandbox.Process, mode: :ro} = Sandbox.resolve(module: Chooses, cwd: "/x")
    assert {Sandbox.Local, opts} = Sandbox.resolve(module: __MODULE__, cwd: "/x")
    assert opts[:cwd] == "/x"
    assert {Sandbox.Local, opts} = Sandbox.resolve()
    assert opts[:cwd] == File.cwd!()
  end

  test "the default is local; CAISSON_BACKEND may put a wall around it, and around no other" do
    workspace = Path.join(folder(), "ws")
    other = %{"CAISSON_BACKEND" => "process"}
    wall = fn sb -> Sandbox.info(sb) |> elem(1) |> Map.fetch!(:backend) end

    {:ok, sb} = Sandbox.new(cwd: workspace)
    assert wall.(sb) == "local"
    {module, opts} = Sandbox.resolve(cwd: workspace)
    {:ok, sb} = Sandbox.new(module, [os_env: other] ++ opts)
    assert wall.(sb) == "process"
    {:ok, sb} = Sandbox.new(Sandbox.Local, cwd: workspace, os_env: other)
    assert wall.(sb) == "local"
  end

  # ---- nothing there -------------------------------------------------------------------------

  test "options that make no sense are refused with a sentence" do
    for {opts, code, text} <- [
          {[frob: 1], :einval, ":frob"},
          {[mounts: [{"/a:b", "/x"}]], :einval, ":mounts"},
          {[limits: 7], :einval, ":limits"},
          {[record: "no"], :einval, ":record"},
          {[tags: [%{}]], :einval, "option"},
          {[tier: "stricter"], :einval, "no such tier"},
          {[backend: "qemu"], "TierUnavailable", "qemu"},
          {[cwd: "/nonexistent"], :enoent, "/nonexistent"},
          {[attach: "nobody-is-there"], :enoent, "nobody-is-there"}
        ] do
      assert {:error, %Error{code: ^code, message: message}} = Sandbox.new(Sandbox.Wall, opts)
      assert message =~ text
    end

    assert {:error, %Error{}} = Sandbox.new(NoSuchModule)
  end

  test "a program that is not there, or is another" do
    assert {:error, %Error{code: :enoent, message: message}} =
             Sandbox.new(Sandbox.Process, program: "/nonexistent/caisson")

    assert message =~ ":program" and message =~ "make install"

    folder = folder()
    old = script(folder, "old", "[ $1 = version ] && echo 'caisson 0.0.1' || exit 2")

    assert {:error, %Error{message: message}} = Sandbox.new(Sandbox.Process, program: old)
    assert message =~ "caisson 0.0.1" and message =~ "this package is 0.1.0"

    # {reply, 1, #{protocol => 2, caisson => <<"9.0">>}}
    frame = :erlang.term_to_binary({:reply, 1, %{protocol: 2, caisson: "9.0"}})
    bytes = for <<b <- <<byte_size(frame)::32>> <> frame>>, do: :io_lib.format("\\~3.8.0b", [b])
    new = script(folder, "new", "printf '#{bytes}'; cat >/dev/null")

    assert {:error, %Error{code: :enotsup, message: message}} =
             Sandbox.new(Sandbox.Process, program: new)

    assert message =~ "is 9.0 and speaks 2" and message =~ "this package is 0.1.0"

    talks = script(folder, "talks", "printf '\\000\\000\\000\\004abcd'; cat >/dev/null")
    assert {:error, %Error{message: message}} = Sandbox.new(Sandbox.Process, program: talks)
    assert message =~ "no frame"

    slow = script(folder, "slow", "exec sleep 60")

    assert {:error, %Error{code: :etimedout}} =
             Sandbox.new(Sandbox.Process, program: slow, start_timeout: 100)
  end

  defp script(folder, name, text) do
    path = Path.join(folder, name)
    File.write!(path, "#!/bin/sh\n#{text}\n")
    File.chmod!(path, 0o755)
    path
  end

  defp lines(sb, command),
    do: sb |> Sandbox.stream(command) |> Stream.map(fn {:stdout, bytes} -> bytes end)

  defp large(size), do: String.duplicate("x", size)
end
