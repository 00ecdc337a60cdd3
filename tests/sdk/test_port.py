"""`caisson port`: who asks decently is served, who does not is told and ended, and nothing is left."""
import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time

import pytest
from ports import WAIT, Atom, Port, alive, encode, tree
from run_fixtures import *  # noqa: F403


@pytest.fixture
def port(box):
    made = Port(box)
    yield made
    made.done()


def policy(box, text):
    return box.policy("version: 1\n" + text)[1]


def framed(term):
    data = encode(term)
    return struct.pack(">I", len(data)) + data


# ---- opened ---------------------------------------------------------------------------------------


def test_open_says_what_the_sandbox_is(port, box):
    said = port.opened(tier="balanced", workspace=f"{box.ws}:rw", tags=["a", "b"], limits=["memory=256MiB"])
    version = subprocess.run([box.caisson, "version"], capture_output=True, text=True).stdout
    assert said["caisson"].decode() in version and said["protocol"] == 1
    assert {"exec", "read", "stats"} <= set(said["verbs"]) and "fs-write" in said["enforces"]
    assert (said["tier"], said["backend"], said["mode"], said["at"], said["network"]) == (b"balanced", b"process", b"rw", b"/workspace", b"none")
    assert said["workspace"].decode() == os.path.realpath(box.ws)
    assert said["warnings"] == [] and said["protect_not_enforced"] == []
    assert port.call("stats")[0][2]["mem_limit"] == 256 << 20


def test_a_wall_that_does_less_says_so(port, box):
    said = port.opened(policy=policy(box, "tier: auto\nbackend: landlock\nworkspace: {mode: rw}"), at="/elsewhere", limits=["idle=9s"])
    assert said["backend"] == b"landlock" and any(text.startswith(b"workspace.at: ") for text in said["warnings"]), said
    assert b".git/hooks" in said["protect_not_enforced"]
    assert not any(b"limits.idle" in text for text in said["warnings"])


def test_calls_facts_and_the_result(port, box):
    box.file("a.txt", "one\n")
    opened = port.opened()
    assert port.call("read", path="a.txt")[0][2] == {"bytes": b"one\n", "size": 4}
    frame, out, facts = port.call("exec", command="echo hi; echo no >&2; echo x >/etc/nowhere; exit 3")
    assert (frame[2]["exit_code"], out["stdout"]) == (3, b"hi\n") and b"no\n" in out["stderr"]
    assert facts[0]["path"] == b"/etc/nowhere" and frame[2]["violations"][0]["event"] == b"FilesystemWriteViolation"
    said = port.close()
    assert (said["reason"], said["sandbox_id"], said["recorded"]) == ("cancelled", opened["sandbox_id"], True)
    assert port.end() == (0, "")
    written = json.loads((box.record() / "result.json").read_text())
    assert said["result"]["violations"][0]["detail"]["path"].decode() == written["violations"][0]["detail"]["path"]
    assert set(said["result"]) == set(written) and said["result"]["usage"]["cpu_ms"] == written["usage"]["cpu_ms"]


def test_no_record(port, box):
    port.opened(record=False)
    assert port.close()["recorded"] is False and port.end() == (0, "")
    assert not box.runs.exists() or not [path for path in box.runs.iterdir() if path.name[0] == "2"]


def test_frames_that_came_early_are_answered(port):
    """As many as fit: nobody has to wait for the answer to `open`."""
    port.raw(b"".join(framed(t) for t in [(Atom("open"), 1, {}), (Atom("call"), 2, Atom("exec"), {"argv": ["true"]})]))
    assert port.frame()[:2] == ("reply", 1)
    assert port.answer(2)[0][2]["exit_code"] == 0


def test_the_caller_names_the_wall_by_a_variable(box):
    port = Port(box, env={"CAISSON_BACKEND": "landlock"})
    assert port.opened(policy=policy(box, "tier: auto"))["backend"] == b"landlock"
    port.done()


# ---- not opened -----------------------------------------------------------------------------------


@pytest.mark.parametrize("options, reason, text", [
    ({"tier": "stricter"}, "einval", b"usage: --tier stricter: there is no such tier"),
    ({"backend": "qemu"}, "TierUnavailable", b"qemu"),
    ({"frobnicate": "x"}, "invalid", b"frobnicate is an unknown key"),
    ({"tier": 7}, "invalid", b"tier is not a binary"),
    ({"mounts": "/a:/b"}, "invalid", b"mounts is not a list"),
    ({"record": "no"}, "invalid", b"record is not a boolean"),
    ({"policy": ""}, "invalid", b"policy is not a path"),
    ({"env": ["A=" + "x" * (1 << 20)]}, "invalid", b"env is too large"),
    ({"tags": ["x"] * 2000}, "e2big", b"too many options: 2000"),
    ({"limits": ["memory=1GiB", "memory=2GiB"]}, "einval", b"given twice"),
    ({"attach": "nobody"}, "enoent", b"there is no sandbox named nobody"),
    ({"attach": "../x"}, "einval", b"is no name"),
    ({"attach": "x", "tier": "auto"}, "einval", b"`attach` joins a sandbox as it is"),
    ({"limits": ["startup=1ms"]}, "etimedout", b"startup: the sandbox was not ready within 1 ms"),
    ({"workspace": "/nonexistent"}, "enoent", b"/nonexistent"),
])
def test_an_open_that_fails_says_why_and_another_may_follow(user_box, options, reason, text):
    port = Port(user_box)
    name, ref, why, detail = port.open(ref=5, **options)
    assert (name, ref, why) == ("failed", 5, reason) and text in detail and re.match(rb"[a-z.]+: ", detail), detail
    port.opened()
    assert port.sh("echo up")["out"] == b"up\n"
    pids = tree(port.process.pid)
    port.close()
    assert port.end() == (0, "") and not alive(pids)


def test_none_was_opened(port):
    port.open(tier="x")
    port.input.close()
    assert port.end() == (125, "")


def test_nobody_said_anything(port):
    port.input.close()
    assert port.end() == (0, "")


# ---- nonsense -------------------------------------------------------------------------------------

CALL = framed((Atom("call"), 1, Atom("exec"), {"argv": ["true"]}))
NONSENSE = {
    "garbage": b"\xff" * 64,
    "no length": struct.pack(">I", 0) + CALL,
    "100 MB": struct.pack(">I", 100 << 20) + b"x" * 100,
    "no term": struct.pack(">I", 4) + b"abcd",
    "compressed": struct.pack(">I", 12) + b"\x83P" + b"x" * 10,
    "agent's": framed((Atom("ready"), {})),
    "unknown": framed((Atom("frob"), 1)),
    "negative": framed((Atom("close"), -1)),
    "too deep": struct.pack(">I", 4 + 5 * 1000) + b"\x83h\x03" + b"l\0\0\0\x01" * 1000 + b"j",
}


@pytest.mark.parametrize("what", [*NONSENSE, "out of turn", "closed"])
def test_nonsense_before_a_sandbox(user_box, what):
    port = Port(user_box)
    port.raw({"out of turn": CALL, "closed": framed((Atom("close"), 3))}.get(what) or NONSENSE[what])
    frame = port.frame()
    assert frame[:3] == ("failed", 0, "invalid") and frame[3].startswith(b"wire: "), frame
    status, said = port.end()
    assert status == 125 and said.startswith("caisson: ") and said.count("\n") == 1, said


@pytest.mark.parametrize("what", [*NONSENSE, "second open"])
def test_nonsense_ends_the_sandbox_as_lost(user_box, what):
    port = Port(user_box)
    port.opened()
    port.send("call", 7, Atom("exec"), {"command": "echo up; sleep 60"})
    assert port.frame()[0] == "data"
    pids = tree(port.process.pid)
    port.raw(framed((Atom("open"), 8, {})) if what == "second open" else NONSENSE[what])
    frame = port.frame()
    assert frame[:3] == ("failed", 0, "invalid"), frame
    frame = port.frame()
    while frame[0] == "reply":
        frame = port.frame()
    assert frame[0] == "bye" and (frame[1]["reason"], frame[1]["stage"]) == (b"lost", b"wire"), frame
    status, said = port.end()
    assert status == 125 and "caisson: " in said
    assert not alive(pids) and json.loads((user_box.record() / "result.json").read_text())["termination"]["reason"] == "lost"


def test_half_a_frame_and_the_end(user_box):
    for size in (2, 10):
        port = Port(user_box)
        port.raw(CALL[:size])
        port.input.close()
        assert b"not finished" in port.frame()[3] and port.end()[0] == 125


def test_half_a_frame_and_silence(user_box):
    port = Port(user_box)
    port.raw(framed((Atom("open"), 1, {}))[:6])
    started = time.monotonic()
    frame = port.frame(wait=WAIT)
    assert b"within 5 s" in frame[3] and 4 < time.monotonic() - started < 14
    assert port.end()[0] == 125


# ---- ends -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["end of input", "killed", "stop", "no reader", "half a frame and the end"])
def test_nothing_is_left(port, how):
    port.opened()
    port.send("call", 7, Atom("exec"), {"command": "setsid sleep 600 & echo up; sleep 600"})
    assert port.frame()[0] == "data"
    pids = tree(port.process.pid)
    assert len(pids) >= 4
    if how == "killed":
        os.kill(port.process.pid, signal.SIGKILL)
    elif how == "stop":
        port.send("stop")
    elif how == "no reader":
        port.output.close()
        port.send("call", 8, Atom("ps"), {})
    else:
        port.raw(CALL[:9] if "half" in how else b"")
        port.input.close()
    status = port.process.wait(WAIT)
    assert status == {"killed": -9}.get(how, 0), (status, port.process.stderr.read())
    assert wait_for(lambda: not alive(pids), 5), alive(pids)


def test_silence_is_told(user_box):
    port = Port(user_box)
    port.opened(limits=["idle=300ms"])
    frame = port.frame()
    assert frame[0] == "bye" and frame[1]["reason"] == b"timeout"
    status, said = port.end()
    assert status == 125 and "timeout" in said, said


def test_who_does_not_read_stalls_his_own_call(user_box):
    """64 KiB fit in the pipe and 256 KiB in the window; the sandbox goes on, its clocks hold."""
    port = Port(user_box)
    port.opened(policy=policy(user_box, "limits: {output: 1GiB}"))
    port.send("call", 7, Atom("exec"), {"command": "cat /dev/zero", "timeout_ms": 1500})
    port.send("call", 8, Atom("exec"), {"command": "echo y >done"})
    port.send("call", 9, Atom("exec"), {"command": "echo x >/tmp/x; sleep 1", "timeout_ms": 9000})
    time.sleep(2.5)
    ended = {}
    while len(ended) < 3:
        frame = port.frame()
        if frame[0] == "reply":
            ended[frame[1]] = frame[2]
    assert ended[7]["reason"] == "timeout" and ended[7]["wall_us"] < 2_400_000, ended
    assert ended[9]["exit_code"] == 0
    port.close()
    assert port.end() == (0, "")


def test_the_callers_files_stay_as_they_are(box):
    """A pipe that others have open as well does not become non-blocking for them; one that another user made only meanwhile."""
    is_same_user = box.uid == os.geteuid()
    with open_ends() as (theirs, ours), open_ends() as (ours_out, theirs_out):
        port = Port(box, stdin=theirs, stdout=theirs_out)
        data = framed((Atom("open"), 1, {}))
        os.write(ours, data)
        port.output = os.fdopen(os.dup(ours_out), "rb", 0)
        assert port.frame()[0] == "reply"
        blocks = [not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK for fd in (theirs, theirs_out)]
        assert blocks == [is_same_user, is_same_user]
        os.write(ours, framed((Atom("close"), 2)))
        assert port.frame()[:2] == ("reply", 2)
        assert port.process.wait(WAIT) == 0
        assert not any(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK for fd in (theirs, theirs_out))
        port.done()


def test_one_socket_for_both(box):
    ours, its = socket.socketpair()
    port = Port(box, stdin=its, stdout=its)
    its.close()
    port.input = port.output = ours.makefile("rwb", 0)
    ours.settimeout(WAIT)
    port.opened()
    assert port.sh("echo hi")["out"] == b"hi\n"
    port.close()
    assert port.end() == (0, "")
    port.done()


# ---- joined ---------------------------------------------------------------------------------------


@pytest.fixture
def runtime(box):
    folder = box.base / "runtime"
    folder.mkdir(mode=0o700)
    box.give()
    env = {"XDG_RUNTIME_DIR": str(folder)}
    assert box.cli("up", "--rw", "t", env=env).status == 0
    yield env
    box.cli("down", "t", env=env)


def test_a_sandbox_that_is_there_is_joined(box, runtime):
    port = Port(box, env=runtime)
    said = port.opened(attach="t")
    assert (said["name"], said["backend"], said["mode"]) == (b"t", b"process", b"rw") and "exec" in said["verbs"]
    assert len(port.sh("head -c 1000000 /dev/zero", ref=1)["out"]) == 1000000
    port.send("call", 2, Atom("write"), {"path": "big", "stdin": True})
    content, at, room = os.urandom(700_000), 0, 256 << 10
    while at < len(content):
        piece = content[at:at + min(65536, room)]
        port.send("data", 2, Atom("stdin"), piece)
        at, room = at + len(piece), room - len(piece)
        while room < 65536 and at < len(content):
            frame = port.frame()
            assert frame[:2] == ("window", 2), frame
            room += frame[2]
    port.send("data", 2, Atom("stdin"), Atom("eof"))
    while (frame := port.frame())[0] == "window":
        pass
    assert frame[:2] == ("reply", 2) and (box.ws / "big").read_bytes() == content
    assert port.close() == {"reason": "detached"} and port.end() == (0, "")
    assert box.cli("exec", "t", "--", "echo", "still", env=runtime).out == b"still\n"


def test_who_leaves_one_he_joined_takes_his_calls_along(box, runtime):
    port = Port(box, env=runtime)
    port.opened(attach="t")
    port.send("call", 3, Atom("exec"), {"command": "echo up; exec sleep 600"})
    assert port.frame()[0] == "data"
    port.input.close()
    assert port.process.wait(WAIT) == 0
    assert wait_for(lambda: b"sleep" not in box.cli("exec", "t", "--", "ps", "-ef", env=runtime).out, 5)


@pytest.mark.parametrize("what", ["garbage", "100 MB", "second open"])
def test_nonsense_to_one_that_was_joined(box, runtime, what):
    port = Port(box, env=runtime)
    port.opened(attach="t")
    port.raw(framed((Atom("open"), 8, {})) if what == "second open" else NONSENSE[what])
    frame = port.frame()
    assert frame[:3] == ("failed", 0, "invalid"), frame
    assert port.end()[0] == 125
    assert box.cli("exec", "t", "--", "echo", "still", env=runtime).out == b"still\n"


def test_one_that_was_joined_ends(box, runtime):
    port = Port(box, env=runtime)
    port.opened(attach="t")
    assert box.cli("down", "t", env=runtime).status == 0
    frame = port.frame()
    assert frame[0] == "bye" and frame[1]["reason"] == b"cancelled"
    assert port.end()[0] == 125


# ---- from a pool ----------------------------------------------------------------------------------


@pytest.fixture
def pool(box):
    """(options, env, status()) of a pool with one prepared sandbox."""
    folder = box.base / "runtime"
    folder.mkdir(mode=0o700)
    file = policy(box, f"workspace: {{path: {box.ws}, mode: rw}}")
    box.give()
    env = {"XDG_RUNTIME_DIR": str(folder)}

    def status():
        return json.loads(box.cli("pool", "status", "--json", env=env).text)

    done = box.cli("pool", "start", "--size", 1, "--policy", file, env=env)
    assert done.status == 0, done
    assert wait_for(lambda: status()["ready"] == 1, seconds=WAIT)
    yield {"pool": "pool", "policy": str(file)}, env, status
    box.cli("pool", "stop", env=env)


def sleepers():
    return subprocess.run(["pgrep", "-fx", "sleep 999.5"], capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("how", ["close", "stop", "eof", "kill"])
def test_one_from_a_pool_ends_with_the_port(pool, box, how):
    options, env, status = pool
    port = Port(box, env=env | {"LANG": "takers."})
    said = port.opened(**options)
    assert (said["backend"], said["mode"]) == (b"process", b"rw") and "name" not in said, said
    assert wait_for(lambda: status()["taken"] == 1, seconds=WAIT), status()
    assert port.sh("echo $LANG; echo x >a; sleep 1000 & exec head -c 1000000 /dev/zero")["out"][:8] == b"takers.\n"
    port.send("call", 8, Atom("exec"), {"argv": ["sleep", "999.5"], "detach": True, "tag": "x"})
    assert port.answer(8)[0][2]["detached"] is True
    assert tree(port.process.pid) == [port.process.pid], "its monitor is the pool's"
    assert len(sleepers()) == 1
    if how == "close":
        assert port.close() == {"reason": "cancelled", "sandbox_id": said["sandbox_id"]} and port.end() == (0, "")
        assert not sleepers()
    elif how == "stop":
        port.send("stop")
        assert port.frame()[0] == "bye" and port.end() == (0, "")
    elif how == "eof":
        port.input.close()
        assert port.process.wait(WAIT) == 0
    else:
        port.process.kill()
        port.process.wait()
    result = box.runs / said["sandbox_id"].decode() / "result.json"
    assert wait_for(result.exists, seconds=WAIT)
    assert not sleepers() and json.loads(result.read_text())["termination"]["reason"] == "cancelled" and (box.ws / "a").exists()


def test_what_a_pool_refuses_or_has_not(pool, box):
    options, env, status = pool
    port = Port(box, env=env)
    for more, why, text in [({"workspace": "/"}, "eperm", b"policy: "), ({"limits": ["memory=much"]}, "einval", b"policy: "),
                            ({"tier": "strict"}, "StrictModeUnavailable", b"backend: "), ({"attach": "t"}, "einval", b"open: ")]:
        frame = port.open(ref=5, **options, **more)
        assert frame[:3] == ("failed", 5, why) and frame[3].startswith(text), frame
    port.opened(**options, limits=["processes=77"])
    assert port.call("stats")[0][2]["processes_limit"] == 77
    assert wait_for(lambda: status()["missed"] == 4, seconds=WAIT), status()
    assert tree(port.process.pid) != [port.process.pid], "it is the monitor itself"
    port.close()
    assert port.end() == (0, "")
