"""How a run ends: statuses, reasons, clocks, signals, and the first thing each message says."""
import os
import signal
import subprocess
import time

import pytest

from run_fixtures import *

WALLS = {"process": None, "landlock": LANDLOCK, "local": LOCAL}
each_wall = pytest.mark.parametrize("policy", WALLS.values(), ids=WALLS)


def ended(run, status, reason, exit_code=None, sig=None, clock=None):
    termination = run.result["termination"]
    assert run.status == status, run
    assert termination == {"reason": reason, "clock": clock, "exit_code": exit_code, "signal": sig,
                           "signal_name": signal.Signals(sig).name if sig else None}, run
    assert (run.result["error"] is not None) == (reason in ("start_failed", "lost")), run.result["error"]


@each_wall
@pytest.mark.parametrize("code", [0, 1, 2, 124, 125, 126, 127, 137, 200, 255])
def test_exit_codes_are_the_commands_own(user_box, policy, code):
    ended(user_box.run("sh", "-c", f"exit {code}", policy=policy), code, "exited", code)


@each_wall
@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "ABRT", "KILL", "SEGV", "TERM", "USR1", "SYS"])
def test_signals_of_its_own(user_box, policy, name):
    number = signal.Signals[f"SIG{name}"]
    ended(user_box.run("sh", "-c", f"kill -{name} $$", policy=policy), 128 + number, "signaled", sig=number)


@each_wall
def test_sigpipe_is_not_ignored_inside(user_box, policy):
    ended(user_box.run("sh", "-c", "kill -PIPE $$", policy=policy), 141, "signaled", sig=signal.SIGPIPE)


@each_wall
def test_no_signal_is_ignored_or_blocked_inside(user_box, policy):
    run = user_box.run("grep", "-E", "Sig(Blk|Ign)", "/proc/self/status", policy=policy)
    values = dict(line.split(":\t") for line in run.text.splitlines())
    assert int(values["SigBlk"], 16) == 0 and int(values["SigIgn"], 16) == 0, run


@each_wall
def test_missing_program(box, policy):
    run = box.run("no-such-program", policy=policy)
    ended(run, 127, "start_failed")
    assert "there is no program named no-such-program" in run.err, run


@each_wall
def test_not_executable(box, policy):
    box.file("plain", "#!/bin/sh\n", 0o644)
    run = box.run("./plain", policy=policy)
    ended(run, 126, "start_failed")
    assert "./plain is not executable: chmod +x ./plain" in run.err, run


def test_a_program_that_is_a_folder(box):
    (box.ws / "d").mkdir()
    ended(box.run("./d"), 126, "start_failed")


def test_a_missing_interpreter(box):
    box.file("script", "#!/no/such/shell\n", 0o755)
    run = box.run("./script")
    ended(run, 127, "start_failed")


ELF_HEADER = bytes.fromhex("7f454c46 020101 00 0000000000000000 0200") + (0xB7).to_bytes(2, "little") + bytes(44)


def test_another_machines_program(box):
    """An AArch64 header on x86-64 (and the other way round): the kernel's ENOEXEC, said in words."""
    header = bytearray(ELF_HEADER)
    if os.uname().machine == "aarch64":
        header[18] = 0x3E
    box.file("foreign", bytes(header) * 2, 0o755)
    run = box.run("./foreign")
    ended(run, 126, "start_failed")
    assert "Exec format error" in run.err, run


def test_an_empty_program_name(box):
    run = box.run("")
    assert run.status in (125, 126, 127) and run.err, run


@each_wall
def test_command_clock(box, policy):
    started = time.monotonic()
    run = box.run("sleep", "60", flags=["--timeout", "300ms"], policy=policy)
    ended(run, 124, "timeout", clock="command", sig=run.result["termination"]["signal"])
    assert time.monotonic() - started < 3 and run.events == {"TimeoutViolation"}, run
    [fact] = run.facts
    assert fact["source"] == "clock" and "300" in fact["say"] + fact["detail"].__str__(), fact


def test_budget_clock(box):
    run = box.run("sleep", "60", flags=["-l", "budget=250ms"])
    ended(run, 124, "timeout", clock="budget", sig=run.result["termination"]["signal"])


@each_wall
def test_terminate_comes_before_kill(box, policy):
    """TERM, 500 ms in which to tidy up, KILL."""
    for ms in (300, 1000, 4000):  # a busy machine may take longer to start a shell
        run = box.sh("trap 'echo tidy' TERM; echo up; while :; do sleep 0.05; done", flags=["--timeout", f"{ms}ms"],
                     policy=policy)
        if "up" in run.text:
            break
    assert run.text.startswith("up\ntidy\n") and run.status == 124, run
    assert ms + 450 <= run.result["usage"]["wall_ms"] < ms + 2500, run


def test_a_tidy_end_ends_at_once(box):
    for ms in (200, 1000, 4000):  # as above
        run = box.sh("trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done", flags=["--timeout", f"{ms}ms"])
        if "up" in run.text:
            break
    assert run.status == 124 and run.reason == "timeout", run
    assert run.result["termination"]["exit_code"] == 0, run  # not killed
    assert run.result["usage"]["wall_ms"] < ms + 500, run


def test_the_clock_reaches_every_descendant(box):
    run = box.sh("(setsid sleep 43 &) ; (trap '' TERM; sleep 43) & sleep 43", flags=["--timeout", "300ms"])
    assert run.status == 124, run
    done = subprocess.run(["pgrep", "-fx", "sleep 43"], stdout=subprocess.PIPE, encoding="ascii")
    assert done.stdout == ""


@pytest.mark.parametrize("policy", [None, LANDLOCK], ids=["process", "landlock"])
def test_the_clock_runs_while_the_monitor_is_held(box, policy):
    """A program can hold it in a look-up, by a folder's lock; a stop signal does the same."""
    lives = box.file("lives", "", 0o666)
    box.file("live.py", """
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with open("lives", "ab", buffering=0) as lives:  # no call that the monitor is asked about from here on
            print("up", flush=True)
            while True:
                lives.write(b".")
                time.sleep(0.02)
    """)
    process, started = up(box, f"exec {PYTHON} live.py", flags=["--timeout", "500ms"],
                          policy=(policy or "version: 1\n") + "workspace: {mode: rw}\n")
    process.send_signal(signal.SIGSTOP)
    time.sleep(2.9)
    before = lives.stat().st_size
    time.sleep(0.3)
    after = lives.stat().st_size
    process.send_signal(signal.SIGCONT)
    run = box.finish(process, started)
    assert before == after > 0, run
    assert (run.status, run.reason, run.clock) == (124, "timeout", "command"), run


def test_a_stopped_command_meets_its_clock(box):
    run = box.sh("kill -STOP $$", flags=["--timeout", "400ms"])
    assert run.status == 124 and run.seconds < 3, run


def up(box, text, **more):
    process = box.start("sh", "-c", f"{text}", **more)
    assert process.stdout.readline() == b"up\n"
    return process, time.monotonic()


@each_wall
def test_first_interrupt_is_passed_on(box, policy):
    process, started = up(box, "trap 'echo got; exit 7' INT; echo up; while :; do sleep 0.02; done", policy=policy)
    process.send_signal(signal.SIGINT)
    run = box.finish(process, started)
    assert run.text == "got\n" and run.seconds < 1, run
    assert (run.status, run.reason) == (130, "cancelled"), run


def test_an_ignored_interrupt_ends_after_a_second(box):
    process, started = up(box, "trap '' INT; echo up; while :; do sleep 0.02; done")
    process.send_signal(signal.SIGINT)
    run = box.finish(process, started)
    assert (run.status, run.reason) == (130, "cancelled") and 0.9 < run.seconds < 2.5, run


def test_a_second_interrupt_ends_at_once(box):
    process, started = up(box, "trap '' INT; echo up; while :; do sleep 0.02; done")
    process.send_signal(signal.SIGINT)
    time.sleep(0.15)
    process.send_signal(signal.SIGINT)
    run = box.finish(process, started)
    assert (run.status, run.reason) == (130, "cancelled") and run.seconds < 0.9, run


@each_wall
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_terminate_and_hangup(box, policy, number):
    process, started = up(box, "trap '' TERM HUP; echo up; sleep 61", policy=policy)
    process.send_signal(number)
    run = box.finish(process, started)
    assert (run.status, run.reason) == (128 + number, "cancelled") and run.seconds < 2.5, run


def test_an_end_by_force_is_no_error(user_box):
    """The wall dies hard, with a listener in use; the first error of that kind is one too many."""
    errors = []
    for _ in range(8):
        process, started = up(user_box, "trap '' INT; echo up; while :; do sleep 0.02; done")
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        run = user_box.finish(process, started)
        assert run.status == 130, run
        errors += [run.result["error"]] if run.result["error"] else []
    assert errors == []


@each_wall
def test_start_up_clock(box, policy):
    """One millisecond is too short for any wall, or it was quick enough: nothing between."""
    run = box.run("echo", "hi", policy=(policy or "version: 1\n") + "limits: {startup: 1ms}\n")
    if run.status == 0:
        assert run.out == b"hi\n", run
    else:
        assert (run.status, run.reason, run.clock) == (124, "timeout", "startup"), run


def test_kill_on_violation(box):
    run = box.sh("echo x >f; sleep 5; echo survived", policy="version: 1\non_violation: kill\n")
    assert (run.status, run.reason) == (137, "violation") and b"survived" not in run.out and run.seconds < 3, run


def test_record_on_violation_goes_on(box):
    run = box.sh("echo x >f; echo survived")
    assert run.status == 0 and run.out == b"survived\n" and run.events == {"FilesystemWriteViolation"}, run
    [fact] = run.facts
    assert fact["say"] and fact["rule"] and fact["count"] >= 1 and fact["comm"] == "sh" and "/workspace/f" in str(fact)


def test_usage_is_of_this_command(box):
    run = box.python("import time\nb = b'x' * (100 << 20)\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint(1)")
    usage = run.result["usage"]
    assert 290 <= usage["cpu_ms"] < 3000 and usage["wall_ms"] >= 250, usage
    assert 100 << 20 <= usage["mem_peak_bytes"] < 400 << 20 and usage["stdout_bytes"] == 2, usage


@pytest.mark.parametrize("flags, word", [
    (["--backend", "no-such"], "no-such"), (["--tier", "absurd"], "absurd"), (["--policy", "/nonexistent"], "/nonexistent"),
    (["-w", "/nonexistent"], "/nonexistent"), (["-w", "/"], "/"), (["--tier", "strict"], "strict"),
    (["--timeout", "none"], "none"), (["--timeout", "0"], "0"), (["--timeout", "1h"], "limits"),
])
def test_refusals_say_why_and_are_125(box, flags, word):
    run = box.run("true", flags=flags)
    assert run.status == 125 and word in run.err and run.out == b"", run
    assert run.err.startswith("caisson: "), run


def test_refusals_are_json_too(box):
    import json
    run = box.cli("run", "--json", "-w", "/nonexistent", "--", "true")
    assert run.status == 125, run
    assert json.loads(run.out or run.err)["error"], run


def test_a_folder_that_it_may_not_enter_is_named(root_box):
    """Root may, and the command is somebody else. Which folder, and what to do."""
    root_box.file("shut/x", "").parent.chmod(0)
    run = root_box.run("true", flags=["-w", root_box.ws], cwd=root_box.ws / "shut")
    said = f"/workspace/shut cannot be started in: Permission denied; let others enter it: chmod o+x {root_box.ws}/shut"
    assert run.status == 126 and said in run.err, run
