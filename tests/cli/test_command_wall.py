"""A wall of somebody's own: a program of the host's, believed in nothing but what the policy's author declares."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from run_fixtures import *  # noqa: F403
from test_stay import Stay, alive

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "agent"))
SEALED = ["fs-write", "syscalls", "privilege", "identity", "net-none"]
AGENT = ["unshare", "-Ur", "caisson-agent", "--stdio"]


def policy(argv, enforces=SEALED, tier="auto", more="", **keys):
    keys = {"argv": argv, "enforces": enforces} | keys
    return f"version: 1\ntier: {tier}\nbackend: command\nworkspace: {{mode: rw, at: host}}\ncommand: {json.dumps(keys)}\n{more}"


def scripted(box, text):
    """argv of a Python program that can speak frames."""
    folder = pathlib.Path(__file__).resolve().parents[1] / "agent"
    shutil.copy(folder / "etf.py", box.base)
    path = box.base / "program.py"
    path.write_text("import os, signal, struct, sys, time\nfrom etf import Atom, encode, decode\n" + textwrap.dedent("""
        def send(*frame):
            data = encode((Atom(frame[0]), *frame[1:]))
            os.write(1, struct.pack(">I", len(data)) + data)
        def receive():
            head = sys.stdin.buffer.read(4)
            return decode(sys.stdin.buffer.read(struct.unpack(">I", head)[0])) if head else sys.exit(0)
        READY = {"version": 1, "verbs": [Atom("exec")], "enforces": []}
        DONE = {"exit_code": 0, "signal": Atom("null"), "user_us": 0, "system_us": 0, "max_rss_bytes": 1 << 50}
        """) + textwrap.dedent(text))
    path.chmod(0o755)
    return [PYTHON, str(path)]


def processes_of(box):
    """Whose command line names this box."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(box.base / "program.py").encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return alive(found)


def test_a_prefix_that_ends_in_our_agent(box):
    run = box.sh("grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status; id -u; pwd; exit 3", policy=policy(AGENT))
    assert run.status == 3 and run.text.splitlines() == [
        *(f"Cap{name}:\t0000000000000000" for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")), "NoNewPrivs:\t1", "Seccomp:\t2",
        "0", str(box.ws)], run
    assert run.result["runtime"] == "auto/command" and sorted(run.result["enforced"]) == sorted([*SEALED, "time", "output"])


def test_nothing_is_claimed_that_nobody_declared(user_box):
    result = user_box.run("true", flags=["--memory", "64MiB"], policy=policy(AGENT)).result
    assert result["observed"] == ["TimeoutViolation", "OutputLimitViolation"], result
    assert "command.observes" in result["not_observed_why"]["FilesystemWriteViolation"]
    assert {k: v for k, v in result["limits"]["means"].items() if k != "output"} == dict.fromkeys(("memory", "processes", "cpus", "scratch"), "none")
    assert {"limits.memory", "workspace.mode"} & {gap["key"] for gap in result["no_effect"]} == {"limits.memory"}, result["no_effect"]
    assert result["protect_not_enforced"] and not result["hidden"] and not result["toolchains"]
    result = user_box.run("true", policy=policy(AGENT, [*SEALED, "memory", "fs-protect"], observes=["SyscallViolation"])).result
    assert "SyscallViolation" in result["observed"] and result["limits"]["means"]["memory"] == "declared" and not result["protect_not_enforced"]


@pytest.mark.parametrize("kept, tier, missing", [
    (SEALED[1:], "auto", "fs-write"), (SEALED[:-1], "auto", "net-none"), ([], "auto", "syscalls"), (SEALED, "balanced", "fs-view, fs-hide"),
    ([*SEALED, "fs-view", "fs-hide", "fs-protect", "pids"], "strict", "memory, processes, cpu"),
])
def test_refused_where_the_plan_needs_more(user_box, kept, tier, missing):
    box = user_box
    argv = scripted(box, f"open({str(box.base / 'ran')!r}, 'w')")
    run = box.run("true", policy=policy(argv, kept, tier))
    assert run.status == 125 and "does not enforce: " in run.err, run
    assert set(missing.split(", ")) <= set(run.err.partition("enforce: ")[2].partition(".")[0].split(", ")), run
    assert not (box.base / "ran").exists()


def test_a_copy_on_write_layer_cannot_be_declared(user_box):
    assert "command.enforces" in user_box.run("true", policy=policy(AGENT, ["fs-cow"])).err
    run = user_box.run("true", flags=["--cow"], policy=policy(AGENT))
    assert run.status == 125 and "fs-cow" in run.err, run


def test_a_file_that_was_found_names_no_program(user_box):
    box = user_box
    argv = scripted(box, f"open({str(box.base / 'ran')!r}, 'w')")
    box.file("caisson.yaml", policy(argv, SEALED, "balanced"))
    run = box.run("true")
    assert run.status == 125 and "caisson policy trust" in run.err and not (box.base / "ran").exists(), run
    box.file("caisson.yaml", f"version: 1\ncommand: {json.dumps({'argv': argv})}\n")
    run = box.run("true", flags=["--backend", "command"])
    assert run.status == 125 and "caisson policy trust" in run.err and not (box.base / "ran").exists(), run


def test_no_program_is_guessed(user_box):
    for argv, word in (([], "command: {argv:"), (["./x"], "absolute"), (["no-such-program"], "no such program"), (["/nonexistent/x"], "No such file")):
        run = user_box.run("true", policy=policy(argv))
        assert run.status == 125 and word in run.err, run
    assert "command: {argv:" in user_box.run("true", flags=["--backend", "command"]).err


def test_the_program_gets_three_streams_and_little_else(user_box):
    box = user_box
    argv = scripted(box, f"""
        told = {{"env": dict(os.environ), "cwd": os.getcwd(), "fds": sorted(map(int, os.listdir("/proc/self/fd")))[:-1],
                 "session": os.getsid(0) == os.getpid(), "blocked": open("/proc/self/status").read().partition("SigBlk:\\t")[2][:16],
                 "ignored": signal.getsignal(signal.SIGHUP) == signal.SIG_DFL}}
        import json; json.dump(told, open({str(box.base / 'told')!r}, "w"))
        """)
    with open_ends() as (leaked, _):
        os.set_inheritable(leaked, True)
        box.run("true", policy=policy(argv), env={"SECRET": "s", "CAISSON_BACKEND": ""}, pass_fds=[leaked])
    told = json.loads((box.base / "told").read_text())
    assert set(told["env"]) - {"LC_CTYPE"} == {"PATH", "HOME", "LANG"}, told
    assert told["fds"] == [0, 1, 2] and told["cwd"] == "/" and told["session"] and told["ignored"], told
    assert told["blocked"] == "0" * 16, told


ENDS = {
    "silence": ("sys.exit(3)", "ended without a word"),
    "complaint": (r"print('one\nno \x1b[31msuch\tway\n', file=sys.stderr); sys.exit(3)", "it said: no ?[31msuch?way"),
    "garbage": ("os.write(1, b'Last login: today\\n'); time.sleep(9)", ""),
    "a frame too long": ("os.write(1, b'\\x7f\\xff\\xff\\xff'); time.sleep(9)", ""),
    "a reply to nobody": ("send('ready', READY); send('reply', 77, {}); time.sleep(9)", "out of turn"),
    "a message of ours": ("send('init', {}); time.sleep(9)", ""),
    "a flood of stderr": ("import os\nwhile True:\n    try: os.write(2, b'x' * 65536)\n    except OSError: break\nsys.exit(3)", "it said: xxx"),
}


@pytest.mark.parametrize("name", ENDS)
def test_nothing_it_says_is_believed(box, name):
    text, sentence = ENDS[name]
    run = box.run("true", policy=policy(scripted(box, text)))
    assert run.status == 125 and run.reason in ("lost", "start_failed") and sentence in run.err, run
    assert run.seconds < 5 and len(run.err) < 700 and not processes_of(box), run


def test_one_that_never_says_ready(user_box):
    box = user_box
    argv = scripted(box, "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nif os.fork() == 0: os.setsid()\ntime.sleep(60)")
    run = box.run("true", policy=policy(argv, more="limits: {startup: 500ms}\n"))
    assert run.reason == "timeout" and run.clock == "startup" and run.seconds < 5 and not processes_of(box), run


DEAF = """
    import signal
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: time.sleep(60)
    receive(); send("ready", READY)
    time.sleep(60)
    """


def test_what_it_leaves_ends_with_the_sandbox(box):
    stay = Stay(box)
    argv = scripted(box, DEAF)
    assert stay.up(*box.policy(policy(argv))).returncode == 0 and processes_of(box)
    stay.down()
    assert wait_for(lambda: not processes_of(box), 3), processes_of(box)


def test_what_it_leaves_when_the_monitor_is_killed(box):
    stay = Stay(box)
    argv = scripted(box, "receive(); send('ready', READY)\ntime.sleep(60)")
    assert stay.up(*box.policy(policy(argv))).returncode == 0 and processes_of(box)
    os.kill(stay.monitor(), signal.SIGKILL)
    assert wait_for(lambda: not processes_of(box), 5), processes_of(box)


FACTS = """
    receive(); send("ready", READY)
    call = receive()
    for event in ("FilesystemWriteViolation", "NetworkAccessViolation", "TimeoutViolation", "Nonsense", "x" * 3000):
        send("fact", {"event": event.encode(), "ref": call[1], "path": b"/etc/\\x1bpasswd", "more": 7})
    send("fact", {"event": 7}) if len(sys.argv) > 1 else None
    send("fact", {}) if len(sys.argv) > 1 else None
    send("reply", call[1], DONE)
    receive()
    """


def test_facts_are_taken_as_declared(user_box):
    box = user_box
    argv = scripted(box, FACTS)
    run = box.run("true", policy=policy([*argv, "more"], observes=["FilesystemWriteViolation"]))
    assert run.status == 0 and [(f["event"], f["source"], f["certain"], f["detail"]["path"], f["rule"]) for f in run.facts] == [
        ("FilesystemWriteViolation", "agent", False, "/etc/?passwd", "command.observes")], run
    assert box.run("true", policy=policy(argv)).facts == [], "nobody declared that it tells, nor that its peak is ours"
    stay = Stay(box)
    assert stay.up(*box.policy(policy(argv, observes=["FilesystemWriteViolation", "NetworkAccessViolation"]))).returncode == 0
    done = stay.client().call("exec", argv=[b"true"])[0][2]
    stay.down()
    assert sorted(f["event"] for f in done["violations"]) == [b"FilesystemWriteViolation", b"NetworkAccessViolation"], done


def test_the_agent_alone(caisson):
    folder = pathlib.Path(caisson).parent
    agent = next(path for path in (folder / "../libexec/caisson/caisson-agent", folder / "../agent/caisson-agent") if path.exists())
    done = subprocess.run([agent, "--stdio"], input=b"", capture_output=True, timeout=10)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b""), "it ends with its stream"
    done = subprocess.run(["prlimit", "--nofile=6", agent, "--stdio"], input=b"", capture_output=True, timeout=10)
    assert done.returncode == 1 and done.stderr == b"caisson-agent: descriptors: No file descriptors available\n", "half a lockdown is none"
    with open_ends() as (out, _):
        process = subprocess.Popen([agent, "--stdio"], stdin=out, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.3)
        found = {int(p.name): os.readlink(p) for p in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()} if os.geteuid() == 0 else {}
        process.kill()
        process.wait()
    assert all(found[fd] == "/dev/null" for fd in range(3, 9) if found), found


def test_a_callers_priority_is_not_lent(root_box):
    def taken():
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    run = root_box.python("import os; print(os.sched_getscheduler(0))", policy=policy(AGENT), preexec_fn=taken)
    assert (run.status, run.text) == (0, f"{os.SCHED_OTHER}\n"), run
