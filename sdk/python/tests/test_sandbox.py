"""The client that waits, against the built program."""

from __future__ import annotations

import io
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Callable, List

import pytest

import caisson

Open = Callable[..., caisson.Sandbox]


def run_python(text: str, *args: str, **more: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", text, *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=60,
        encoding="utf-8",
        **more,
    )


def wait_until(is_so: Callable[[], bool], within_s: float = 10) -> bool:
    end = time.monotonic() + within_s
    while not is_so() and time.monotonic() < end:
        time.sleep(0.02)
    return is_so()


def is_gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().split()[2] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def port_of(sandbox: caisson.Sandbox) -> int:
    assert sandbox._child.process is not None
    return sandbox._child.process.pid


# ---- commands -----------------------------------------------------------------------------------


def test_a_command(sandbox: caisson.Sandbox) -> None:
    done = sandbox.exec("echo out; echo err >&2; exit 3", cwd="/", env={"A": "b"})
    assert (done.stdout, done.stderr, done.exit_code, done.ok) == (b"out\n", b"err\n", 3, False)
    assert done.termination.reason == "exited" and sorted(done.text.split()) == ["err", "out"]
    assert done.usage.wall_us > 0 and done.usage.stdout_bytes == 4


@pytest.mark.parametrize(
    "stdin", ["text", b"text", io.BytesIO(b"text"), io.StringIO("text"), iter(["te", "", b"xt"])], ids=repr
)
def test_input(sandbox: caisson.Sandbox, stdin: Any) -> None:
    content = b"te" if "iterator" in repr(stdin) else b"text"  # an empty piece is the end
    assert sandbox.exec("cat", stdin=stdin).stdout == content


def test_output_as_it_comes(sandbox: caisson.Sandbox) -> None:
    seen: List[str] = []
    with sandbox.stream("echo one; read line; echo got $line >&2", stdin=caisson.PIPE) as stream:
        for chunk in stream:
            seen.append(f"{chunk.stream} {chunk.text.strip()}")
            if len(seen) == 1:
                stream.write("two\n")
                stream.close_stdin()
        assert stream.result.exit_code == 0 and stream.result.stdout == b"one\n"
    assert seen == ["stdout one", "stderr got two"]


def test_writing_where_there_is_no_pipe(sandbox: caisson.Sandbox) -> None:
    with sandbox.stream("cat", stdin=b"x") as stream:
        with pytest.raises(caisson.Invalid, match="is not PIPE"):
            stream.write("y")
        assert [chunk.data for chunk in stream] == [b"x"]
    with sandbox.stream("cat", stdin=caisson.PIPE) as stream:
        stream.close_stdin()
        with pytest.raises(caisson.Invalid, match="end of its input was said"):
            stream.write("y")


def test_a_stream_that_is_left_is_cancelled(sandbox: caisson.Sandbox) -> None:
    with sandbox.stream("yes") as stream:
        assert next(stream).data.startswith(b"y\n")
    assert wait_until(lambda: not sandbox.ps())


def test_a_slow_reader_loses_nothing(sandbox: caisson.Sandbox) -> None:
    size = 0
    for chunk in sandbox.stream("head -c 3000000 /dev/zero"):
        size += len(chunk.data)
        time.sleep(0.0005)
    assert size == 3000000


def test_a_terminal_and_its_size(sandbox: caisson.Sandbox) -> None:
    text = "trap 'stty size; exit' WINCH; stty size; while :; do sleep 0.02; done"
    with sandbox.stream(text, tty=(24, 80), timeout=20) as stream:
        assert next(stream).stream == "tty"  # the trap is set
        stream.resize(40, 100)
        assert b"40 100" in stream.result.output


def test_violations_as_they_come(open_: Open) -> None:
    heard: List[caisson.Violation] = []
    sandbox = open_(on_violation=heard.append)
    done = sandbox.exec("touch /usr/x")
    assert [v.event for v in heard] == ["FilesystemWriteViolation"] == [v.event for v in done.violations]
    assert done.violations[0].path == "/usr/x" and done.violations[0].say


def test_a_callback_that_raises_cancels_its_command(sandbox: caisson.Sandbox) -> None:
    def stop(_: caisson.Violation) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        sandbox.exec("touch /usr/x; sleep 30", on_violation=stop)
    assert wait_until(lambda: not sandbox.ps())


def test_cancelling_from_another_thread(sandbox: caisson.Sandbox) -> None:
    token = caisson.Cancel()
    threading.Timer(0.2, token.cancel).start()
    assert sandbox.exec("sleep 30", cancel=token).termination.reason == "cancelled"
    with pytest.raises(caisson.Cancelled):
        sandbox.read("x", cancel=token)


def test_timeouts(sandbox: caisson.Sandbox) -> None:
    done = sandbox.exec("echo begun; sleep 30", timeout=0.2)
    assert (done.termination.reason, done.termination.clock, done.stdout) == ("timeout", "command", b"begun\n")


def test_detached_commands(open_: Open) -> None:
    sandbox = open_(network="loopback")
    started = sandbox.start("echo up; exec python3 -m http.server 8123 --bind 127.0.0.1", tag="web")
    assert started.termination.reason == "detached" and started.pid
    assert sandbox.wait("web", port=8123, timeout=20).reached
    assert sandbox.wait("web", line="^up$", timeout=5).line == b"up"
    assert [item.tag for item in sandbox.ps()] == ["web"]
    sandbox.kill("web", signal.SIGKILL)
    assert sandbox.wait("web", timeout=5).signal == 9
    assert b"up\n" in b"".join(chunk.data for chunk in sandbox.follow("web"))


# ---- files --------------------------------------------------------------------------------------


def test_files(sandbox: caisson.Sandbox, workspace: pathlib.Path) -> None:
    big = bytes(range(256)) * 3000
    sandbox.write("a/big", big, mode=0o640)
    assert sandbox.read("a/big") == big and b"".join(sandbox.read_pieces("a/big")) == big
    assert (workspace / "a/big").read_bytes() == big
    sandbox.write(pathlib.Path("a/t.txt"), "grün\n")
    assert sandbox.read_text("a/t.txt") == "grün\n" and sandbox.edit("a/t.txt", "ü", "u").ok
    odd = os.fsdecode(b"odd \xff")
    sandbox.write(odd, b"")
    assert odd in [entry.name for entry in sandbox.list().entries] and odd in sandbox.glob("odd*").paths
    sandbox.move(odd, "even")
    sandbox.remove("a", recursive=True)
    names = [entry.name for entry in sandbox.list().entries]
    assert "even" in names and "a" not in names
    assert sandbox.stat("even").type == "file" and not sandbox.grep("x").matches


def test_what_is_too_long_to_keep(sandbox: caisson.Sandbox) -> None:
    sandbox.exec("truncate -s 100M large")
    with pytest.raises(caisson.TooLarge, match="read_pieces"):
        sandbox.read("large")
    assert sandbox.read("large", offset=104857000, length=5000) == b"\0" * 600
    assert sum(map(len, sandbox.read_pieces("large"))) == 100 << 20


def test_a_copy(open_: Open, workspace: pathlib.Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    sandbox = open_("cow")
    sandbox.write("a.txt", "two\n")
    sandbox.snapshot("s")
    assert b"-one\n+two\n" in sandbox.diff().text and (workspace / "a.txt").read_text() == "one\n"
    sandbox.fork("other")
    with caisson.Sandbox.attach("other") as other:
        assert other.read("a.txt") == b"two\n"
        other._core.is_owner = True
        other._post(other._core._send, "stop")
        assert wait_until(lambda: other._core.error is not None)
    assert [change.path for change in sandbox.commit().applied] == ["a.txt"]
    assert (workspace / "a.txt").read_text() == "two\n"


# ---- errors -------------------------------------------------------------------------------------


def test_errors_have_a_class_a_code_and_a_stage(sandbox: caisson.Sandbox) -> None:
    with pytest.raises(caisson.NotFound, match="none") as caught:
        sandbox.read("none")
    assert (caught.value.code, caught.value.stage) == ("enoent", "read")
    with pytest.raises(caisson.NotSupported, match="PATH:cow"):
        sandbox.diff()
    with pytest.raises(caisson.InvalidPattern):
        sandbox.grep("(")
    with pytest.raises(caisson.Invalid, match="zero byte"):
        sandbox.read("a\0b")
    with pytest.raises(TypeError, match="path is a int"):
        sandbox.read(3)  # type: ignore[arg-type]


def test_what_cannot_be_had_is_refused(open_: Open) -> None:
    with pytest.raises(caisson.PolicyRefused) as caught:
        open_(tier="strict", backend="landlock")
    assert caught.value.code in ("TierUnavailable", "StrictModeUnavailable")
    with pytest.raises(caisson.CaissonError, match="nonsense"):
        open_(limits={"nonsense": 1})


def test_a_program_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.delenv("CAISSON")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(caisson.NotInstalled, match="make install"):
        caisson.Sandbox()
    monkeypatch.setenv("CAISSON", "/nonexistent/caisson")
    with pytest.raises(caisson.NotInstalled, match="/nonexistent/caisson"):
        caisson.Sandbox()


def test_a_program_that_is_another(tmp_path: pathlib.Path) -> None:
    for text, expected in (
        ("#!/bin/sh\nhead -c 4 >/dev/null\necho no such command: port >&2\nexit 2\n", "no such command: port"),
        ("#!/bin/sh\nprintf '\\0\\0\\0\\2\\203q'\nexit 0\n", "broke the protocol"),
        ("#!/bin/sh\nexit 0\n", "without a word"),
    ):
        fake = tmp_path / "fake"
        fake.write_text(text)
        fake.chmod(0o755)
        with pytest.raises(caisson.Lost, match=expected):
            caisson.Sandbox(program=str(fake), start_timeout=10)


def test_a_wall_that_does_not_stand_in_time(tmp_path: pathlib.Path) -> None:
    fake = tmp_path / "fake"
    fake.write_text("#!/bin/sh\nexec sleep 30\n")
    fake.chmod(0o755)
    with pytest.raises(caisson.Timeout, match="start_timeout"):
        caisson.Sandbox(program=str(fake), start_timeout=0.2)


# ---- ends ---------------------------------------------------------------------------------------


def test_a_killed_caisson_is_lost(sandbox: caisson.Sandbox) -> None:
    pid = port_of(sandbox)
    threading.Timer(0.2, os.kill, (pid, signal.SIGKILL)).start()
    with pytest.raises(caisson.Lost, match="killed") as caught:
        sandbox.exec("sleep 30")
    assert caught.value.stage == "wire"
    with pytest.raises(caisson.Lost):
        sandbox.read("x")
    sandbox.close()


def test_closing_is_the_end_and_may_be_said_twice(open_: Open) -> None:
    sandbox = open_()
    pid = port_of(sandbox)
    sandbox.close()
    sandbox.close()
    assert is_gone(pid) and sandbox.result is not None and sandbox.result["termination"]["reason"] == "cancelled"
    with pytest.raises(caisson.Lost, match="closed"):
        sandbox.exec("true")


def test_a_killed_host_leaves_nothing(workspace: pathlib.Path) -> None:
    text = """if True:
        import os, signal, sys, caisson
        sandbox = caisson.Sandbox(workspace=sys.argv[1] + ":rw", no_record=True)
        sandbox.start("exec sleep 300", tag="t")
        print(sandbox._child.process.pid, flush=True)
        if os.fork() == 0:  # a fork holds nothing open
            import time; time.sleep(20); os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)"""
    child = subprocess.Popen([sys.executable, "-c", text, str(workspace)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    pid = int(child.stdout.readline())
    child.wait()
    child.stdout.close()
    assert wait_until(lambda: is_gone(pid))


def test_a_host_that_forgets_to_close(workspace: pathlib.Path) -> None:
    text = """if True:
        import sys, caisson
        sandbox = caisson.Sandbox(workspace=sys.argv[1] + ":rw", no_record=True)
        print(sandbox._child.process.pid)"""
    done = run_python(text, str(workspace))
    assert (done.returncode, done.stderr) == (0, "") and is_gone(int(done.stdout))


def test_what_is_collected_ends_with_a_warning(open_: Open, workspace: pathlib.Path) -> None:
    sandbox = caisson.Sandbox(workspace=f"{workspace}:rw", no_record=True)
    pid = port_of(sandbox)
    process = sandbox._child.process
    with pytest.warns(ResourceWarning, match="not closed"):
        del sandbox
    assert process is not None and process.wait(10) == 0 and is_gone(pid)


def test_a_fork_has_no_sandbox(sandbox: caisson.Sandbox, workspace: pathlib.Path) -> None:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            sandbox.exec("true")
        except caisson.Invalid as error:
            sandbox.close()
            with caisson.Sandbox(workspace=f"{workspace}:rw", no_record=True) as own:
                status = 0 if "another process" in str(error) and own.exec("true").ok else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert sandbox.exec("true").ok


def test_ctrl_c_in_the_middle(sandbox: caisson.Sandbox) -> None:
    interrupted = 0
    for i in range(60):
        timer = threading.Timer(0.0007 * (i % 12), signal.raise_signal, (signal.SIGINT,))
        try:
            timer.start()
            for _ in range(3):
                sandbox.exec("head -c 200000 /dev/zero")
            timer.join()
            time.sleep(0)
        except KeyboardInterrupt:
            interrupted += 1
        timer.join()
    assert interrupted > 30
    assert sandbox.exec("echo alive").stdout == b"alive\n"
    assert wait_until(lambda: not sandbox.ps())


def test_many_threads(sandbox: caisson.Sandbox) -> None:
    wrong: List[object] = []

    def work(number: int) -> None:
        for i in range(5):
            done = sandbox.exec(["printf", "%s", f"{number} {i}"])
            if done.stdout != f"{number} {i}".encode():
                wrong.append(done)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_refusal_has_its_lines(workspace: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The part of a policy that would permit it is shown as it would be written."""
    (tmp_path / "policy.yaml").write_text("version: 1\nlimits: {memory: 128MiB}\n")
    with pytest.raises(caisson.PolicyRefused) as refused:
        caisson.Sandbox(workspace=str(workspace), policy=str(tmp_path / "policy.yaml"), limits={"memory": "1GiB"})
    assert str(refused.value).splitlines()[-1] == "limits: {memory: 1GiB}"
