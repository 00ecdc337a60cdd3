"""A sandbox that stays: its monitor, spoken to over its socket, frame by frame.

The monitor must serve who asks decently, outlive who doesn't, and leave nothing when it ends.
"""
import contextlib
import json
import os
import pathlib
import resource
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import time

import pytest
from run_fixtures import *  # noqa: F403

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "agent"))
from etf import Atom, decode, encode  # noqa: E402

WAIT = 15


def connected(path, uid):
    """As that user: the kernel tells the monitor who connects."""
    peer = socket.socket(socket.AF_UNIX)
    ours = os.geteuid()
    os.seteuid(uid)
    try:
        peer.connect(str(path))
    finally:
        os.seteuid(ours)
    peer.settimeout(WAIT)
    return peer


class Client:
    """One connection to a monitor."""

    def __init__(self, path, uid):
        self.socket = connected(path, uid)
        self.ready = self.frame()[1]

    def send(self, name, *rest):
        data = encode((Atom(name), *rest))
        self.socket.sendall(struct.pack(">I", len(data)) + data)

    def bytes(self, size):
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def frame(self):
        return decode(self.bytes(struct.unpack(">I", self.bytes(4))[0]))

    def answer(self, ref, window=True):
        """The end of a call: (frame, stdout, stderr)."""
        texts = {"stdout": b"", "stderr": b""}
        while True:
            frame = self.frame()
            if frame[0] == "data" and frame[1] == ref:
                texts[str(frame[2])] += frame[3]
                if window:
                    self.send("window", ref, len(frame[3]))
            elif frame[0] in ("reply", "failed") and frame[1] == ref:
                return frame, texts["stdout"], texts["stderr"]

    def call(self, verb, ref=1, **args):
        self.send("call", ref, Atom(verb), args)
        return self.answer(ref)

    def sh(self, text, ref=1, **args):
        frame, out, err = self.call("exec", ref, command=text.encode(), **args)
        assert frame[0] == "reply", frame
        return frame[2] | {"out": out, "err": err}


class Stay:
    def __init__(self, box):
        self.box = box
        self.runtime = box.base / "runtime"
        self.runtime.mkdir(mode=0o700)
        box.give()
        self.pid = None

    def up(self, *flags, name="t", policy=None):
        words = [self.box.caisson, "up", *flags, *(self.box.policy(policy) if policy else []), name]
        self.box.started += 1
        self.box.give()
        return subprocess.run(words, cwd=self.box.ws, capture_output=True, text=True, timeout=WAIT,
                              env=self.box.env | {"XDG_RUNTIME_DIR": str(self.runtime)}, **self.box.as_owner())

    def started(self, *flags, **more):
        done = self.up(*flags, **more)
        assert (done.returncode, done.stdout, done.stderr) == (0, more.get("name", "t") + "\n", ""), done
        return self

    def path(self, name="t"):
        return self.runtime / "caisson" / f"{name}.sock"

    def client(self, name="t"):
        return Client(self.path(name), self.box.uid)

    def monitor(self, name="t"):
        """The monitor's pid, from the socket's other end."""
        with connected(self.path(name), self.box.uid) as peer:
            return struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def down(self, name="t"):
        if self.path(name).exists():
            client = self.client(name)
            client.send("stop")
            with pytest.raises(EOFError):
                while client.frame()[0] != "bye":
                    pass
                client.frame()

    def last_result(self):
        path = max(self.box.runs.glob("2*/result.json"), key=lambda path: path.stat().st_mtime)
        return json.loads(path.read_text())


def working(pid):
    """children() without the pair that is forked ahead for the next command, and keepers between two."""
    def is_spare(child):
        try:
            names = [pathlib.Path(f"/proc/{who}/comm").read_text() for who in [child, *children(child)]]
        except OSError:  # it has just ended
            return False
        return names in (["caisson-agent\n", "caisson-spare\n"], ["caisson-spare\n"], ["caisson-idle\n"])

    return [child for child in children(pid) if not is_spare(child)]


def children(pid):
    """Of a process, and theirs, without dead ones."""
    found = []
    with contextlib.suppress(OSError):  # it goes while we look
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                found += [int(child), *children(child)]
    return alive(found)


def agent(pid):
    return next(child for child in children(pid) if b"caisson-agent" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes())


def alive(pids):
    found = []
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                found.append(pid)
    return found


@pytest.fixture
def stay(box):
    made = Stay(box)
    yield made
    if made.path().exists():
        try:
            os.kill(made.monitor(), signal.SIGKILL)
        except (ConnectionRefusedError, ProcessLookupError):
            pass


def test_up_says_its_name_and_serves(stay):
    stay.box.file("a.txt", "hello\n")
    stay.started()
    assert stay.path().stat().st_mode & 0o777 == 0o600 and stay.path().parent.stat().st_mode & 0o777 == 0o700
    client = stay.client()
    assert {"exec", "read", "write", "edit", "stat", "list"} <= set(map(str, client.ready["verbs"])), client.ready
    assert client.call("read", path=b"a.txt")[0][2]["bytes"] == b"hello\n"
    done = client.sh("echo out; echo err >&2; echo x >/etc/passwd; exit 3")
    assert (done["reason"], done["exit_code"], done["out"]) == ("exited", 3, b"out\n"), done
    facts = done["violations"]
    assert [(f["event"], f["path"], f["rule"]) for f in facts] == [
        (b"FilesystemWriteViolation", b"/etc/passwd", b"built-in: read-only root")], facts
    assert client.sh("true")["violations"] == [], "each command has a list of its own"


def test_glob_and_grep(stay):
    for name in ("a.py", "b/c.py", "b/d.txt"):
        stay.box.file(name, "one\ntwo\n")
    client = stay.started().client()
    found = client.call("glob", pattern=b"**/*.py")[0][2]
    assert (found["paths"], found["truncated"]) == ([b"a.py", b"b/c.py"], False), found
    found = client.call("grep", pattern=b"^tw", glob=b"*.py")[0]
    assert found[0] == "reply" and [(m["path"], m["line_number"]) for m in found[2]["matches"]] == [(b"a.py", 2), (b"b/c.py", 2)], found
    assert client.sh("ls -l /proc/self/fd | grep -c caisson-search")["out"] == b"0\n"


@pytest.mark.parametrize("policy, says", [("version: 1\n", "env.pass"), ("version: 1\noverrides: {per_request: true}\n", None)])
def test_which_variables_a_call_may_set(stay, policy, says):
    stay.started(policy=policy)
    frame, out, _ = stay.client().call("exec", argv=[b"env"], env={b"ANY": b"1"})
    assert (b"ANY=1" in out) == (says is None)
    assert says is None or (frame[2] == "eperm" and says.encode() in frame[3])


def test_the_environment_is_the_sandboxs_and_the_calls(stay):
    client = stay.started("-e", "LENT=1").client()
    done = client.sh("echo $LENT $MORE $USER", env={b"MORE": b"2", b"USER": b"me"})
    assert done["out"] == b"1 2 me\n", done
    assert client.sh("echo [$MORE]")["out"] == b"[]\n", "a call's variables are that call's"
    assert client.sh("cd /tmp; pwd")["out"] == b"/tmp\n" and client.sh("pwd")["out"] == b"/workspace\n"


def test_a_policy_file_decides_about_variables(stay):
    client = stay.started(policy=f"version: 1\nworkspace: {{path: {stay.box.ws}}}\n").client()
    frame, _, _ = client.call("exec", command=b"true", env={b"A": b"1"})
    assert frame[0] == "failed" and b"env.pass" in frame[3], frame


def test_two_clients_may_use_the_same_ref(stay):
    stay.started()
    one, two = stay.client(), stay.client()
    one.send("call", 7, Atom("exec"), {"command": b"sleep 0.4; echo one"})
    two.send("call", 7, Atom("exec"), {"command": b"echo two"})
    assert two.answer(7)[1] == b"two\n" and one.answer(7)[1] == b"one\n"
    one.send("call", 7, Atom("exec"), {"command": b"sleep 1"})
    one.send("call", 7, Atom("exec"), {"command": b"true"})
    assert one.frame()[:3] == ("failed", 7, "invalid")


def test_a_commands_clock_ends_it(stay):
    client = stay.started().client()
    before = time.monotonic()
    done = client.sh("trap '' TERM; sleep 30", timeout_ms=300)
    assert (done["reason"], done["clock"]) == ("timeout", "command") and time.monotonic() - before < 5, done
    assert [f["event"] for f in done["violations"]] == [b"TimeoutViolation"]
    assert client.sh("echo still here")["out"] == b"still here\n"


def test_output_beyond_the_cap_ends_the_command(stay):
    client = stay.started("-l", "output=100KiB").client()
    done = client.sh("yes")
    assert done["reason"] == "output" and len(done["out"]) <= 100 << 10, done["reason"]
    assert done["output_cut_bytes"] > 0 and [f["event"] for f in done["violations"]] == [b"OutputLimitViolation"]
    assert client.sh("echo fine")["out"] == b"fine\n"


def test_a_program_that_is_missing(stay):
    done = stay.started().client()
    frame, _, _ = done.call("exec", argv=[b"/no/such/program"])
    assert (frame[2]["reason"], frame[2]["error"]) == ("start_failed", "enoent"), frame


def test_input_goes_through(stay):
    client = stay.started().client()
    client.send("call", 1, Atom("exec"), {"command": b"wc -c", "stdin": True})
    for _ in range(3):
        client.send("data", 1, Atom("stdin"), b"x" * 50000)
    client.send("data", 1, Atom("stdin"), Atom("eof"))
    assert client.answer(1)[1].strip() == b"150000"


def test_input_waits_for_a_command_that_waits(stay):
    """Of many that are asked for at once most have not begun when their input comes."""
    client = stay.started().client()
    for ref in range(1, 13):
        client.send("call", ref, Atom("exec"), {"command": b"wc -c", "stdin": True})
        client.send("data", ref, Atom("stdin"), b"x" * 1000 * ref)
        client.send("data", ref, Atom("stdin"), Atom("eof"))
    outputs, ended = {}, 0
    while ended < 12:
        frame = client.frame()
        if frame[0] == "data":
            outputs[frame[1]] = int(frame[3])
        ended += frame[0] in ("reply", "failed")
    assert outputs == {ref: 1000 * ref for ref in range(1, 13)}


def test_who_sends_more_than_his_window_is_dropped(stay):
    client = stay.started().client()
    client.send("call", 1, Atom("exec"), {"command": b"sleep 30", "stdin": True})
    with pytest.raises((EOFError, OSError)):
        for _ in range(2000):
            client.send("data", 1, Atom("stdin"), b"x" * 60000)
        while True:
            client.frame()
    assert stay.client().sh("echo here")["out"] == b"here\n"


def test_a_reader_that_stops_stalls_its_own_call(stay):
    stay.started("-l", "command=20s")
    slow = stay.client()
    slow.send("call", 1, Atom("exec"), {"command": b"head -c 8000000 /dev/zero"})
    before = time.monotonic()
    assert stay.client().sh("echo quick")["out"] == b"quick\n" and time.monotonic() - before < 3
    done, out, _ = slow.answer(1)
    assert done[2]["reason"] == "exited" and len(out) == 8000000


@pytest.mark.parametrize("bytes", [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff" + b"x" * 100, struct.pack(">I", 5) + b"\x83\x68\x02\x61\x01",
                                   struct.pack(">I", 0), encode((Atom("init"), {}))],
                         ids=["http", "huge", "cut", "empty", "unframed"])
def test_garbage_is_hung_up_on(stay, bytes):
    stay.started()
    client = stay.client()
    client.socket.sendall(bytes)
    client.socket.shutdown(socket.SHUT_WR)
    with pytest.raises((EOFError, ConnectionResetError)):
        for _ in range(3):
            client.frame()
    assert stay.client().sh("echo here")["out"] == b"here\n"


@pytest.mark.parametrize("verb,args,reason", [
    ("nonsense", {}, "not_supported"), ("exec", {"argv": 1}, "invalid"), ("exec", {"last": True, "command": b"true"}, "invalid"),
    ("exec", {"profile": b"none", "command": b"true"}, "invalid"), ("exec", {}, "einval"), ("read", {"path": b"a\0b"}, "invalid"),
    ("read", {"path": b"missing"}, "enoent"), ("mount", {"host": b"/etc", "at": b"/x"}, "eperm"), ("snapshot", {}, "not_supported")])
def test_calls_that_make_no_sense(stay, verb, args, reason):
    frame, _, _ = stay.started().client().call(verb, **args)
    assert frame[0] == "failed" and frame[2] == reason, frame


def test_crowds_that_say_nothing(stay):
    stay.started()
    crowd = [connected(stay.path(), stay.box.uid) for _ in range(300)]
    assert stay.client().sh("echo here")["out"] == b"here\n" and crowd


def test_a_client_has_so_many_calls_at_once(stay):
    stay.started()
    client = stay.client()
    for ref in range(40):
        client.send("call", ref, Atom("exec"), {"command": b"sleep 3"})
    frame = client.frame()
    assert frame[0] == "failed" and frame[2] == "eagain", frame
    assert stay.client().sh("echo here")["out"] == b"here\n", "another client finds room"


def test_another_user_is_refused(stay):
    if os.geteuid() != 0:
        pytest.skip("root: nobody else to be")
    stay.started()
    for path in (stay.runtime, stay.path().parent):
        path.chmod(0o755)
    stay.path().chmod(0o666)
    code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(stay.path())!r}); print(s.recv(100))"
    seen = subprocess.run([PYTHON, "-c", code], user=USER_UID + 7, group=USER_UID + 7, extra_groups=[], capture_output=True)
    assert seen.stdout.strip() == b"b''", seen


def test_a_folder_of_somebody_else_is_refused(stay):
    (stay.runtime / "caisson").mkdir(mode=0o777)
    (stay.runtime / "caisson").chmod(0o777)
    done = stay.up()
    assert done.returncode == 125 and "closed to others" in done.stderr, done


def test_who_leaves_takes_his_commands_along(stay):
    stay.started()
    pid = stay.monitor()
    client = stay.client()
    client.send("call", 1, Atom("exec"), {"command": b"sleep 1000 & sleep 1000"})
    assert wait_for(lambda: len(working(pid)) >= 3, 5)
    client.socket.close()
    assert wait_for(lambda: len(working(pid)) <= 2, 3), working(pid)
    assert stay.client().sh("echo here")["out"] == b"here\n"


def test_stop_leaves_nothing(stay):
    stay.started()
    pid = stay.monitor()
    stay.client().send("call", 1, Atom("exec"), {"command": b"sleep 1000"})
    everyone = [pid, *children(pid)]
    stay.down()
    assert wait_for(lambda: not alive(everyone), 3)
    assert wait_for(lambda: not list(stay.path().parent.iterdir()), 2), list(stay.path().parent.iterdir())
    assert stay.last_result()["termination"]["reason"] == "cancelled"


@pytest.mark.parametrize("who", ["monitor", "agent"])
def test_kill_leaves_nothing(stay, who):
    stay.started()
    pid = stay.monitor()
    client = stay.client()
    client.send("call", 1, Atom("exec"), {"command": b"setsid sleep 1000 & sleep 1000"})
    assert wait_for(lambda: len(working(pid)) >= 3, 5)
    everyone = [pid, *children(pid)]
    os.kill(pid if who == "monitor" else agent(pid), signal.SIGKILL)
    assert wait_for(lambda: not alive(everyone), 3), alive(everyone)
    with pytest.raises((EOFError, ConnectionResetError)):
        while True:
            client.frame()
    stay.started()
    assert stay.client().sh("echo again")["out"] == b"again\n"


def test_a_name_is_one_sandboxs(stay):
    stay.started()
    done = stay.up()
    assert done.returncode == 125 and "caisson down t" in done.stderr, done
    for name in ("", ".", "../x", "a/b", "x" * 65, "-x"):
        done = stay.up("--", name=name) if name.startswith("-") else stay.up(name=name)
        assert done.returncode != 0 and done.stdout == "", (name, done)


def test_silence_ends_it(stay):
    stay.started("-l", "idle=2s")
    pid = stay.monitor()
    client = stay.client()
    assert client.sh("sleep 3; echo worked")["out"] == b"worked\n", "who waits for a command is not silent"
    assert wait_for(lambda: not alive([pid]), 6)
    result = stay.last_result()
    assert (result["termination"]["reason"], result["termination"]["clock"]) == ("timeout", "idle"), result["termination"]


def test_idle_0_is_never(stay):
    stay.started(policy=f"version: 1\nlimits: {{idle: 0}}\nworkspace: {{path: {stay.box.ws}}}\n")
    client = stay.client()
    assert client.call("stats")[0][2]["idle_limit_ms"] is None
    assert client.sh("true")["exit_code"] == 0
    done = stay.up("-l", "idle=0", name="other")
    assert done.returncode == 125 and "idle" in done.stderr, "to wait for ever is the policy's to permit"


def test_why_there_is_none(stay):
    done = stay.up("-w", "/no/such/folder")
    assert done.returncode == 125 and "/no/such/folder" in done.stderr and done.stdout == "", done
    assert not stay.path().exists()


def test_the_log_tells_of_each_command(stay):
    client = stay.started().client()
    client.sh("echo secret-is-hunter2", env={b"TOKEN": b"hunter2hunter2"})
    client.sh("exit 4; echo hunter2hunter2")
    stay.down()
    assert wait_for(lambda: not stay.path().exists(), 3)
    logs = max(stay.box.runs.glob("2*/logs/events.jsonl"), key=lambda path: path.stat().st_mtime)
    text = logs.read_text()
    events = [json.loads(line) for line in text.splitlines()]
    ended = [e["payload"]["termination"] for e in events if e["event"] == "ExecEnded" and "call" in e["payload"]]
    assert [e["exit_code"] for e in ended] == [0, 4] and "hunter2hunter2" not in text, text
    verify = subprocess.run([stay.box.caisson, "runs", "verify", logs.parents[1].name], env=stay.box.env, capture_output=True, text=True,
                            **stay.box.as_owner())
    assert verify.returncode == 0, verify


def test_the_landlock_wall_too(stay):
    client = stay.started(policy=LANDLOCK + f"workspace: {{path: {stay.box.ws}, at: host}}\n").client()
    done = client.sh("echo out; echo x >/etc/caisson-was-here; exit 5")
    assert (done["out"], done["exit_code"]) == (b"out\n", 5), done
    assert [f["event"] for f in done["violations"]] == [b"FilesystemWriteViolation"], done


def test_a_detached_command_outlives_its_client(stay):
    stay.started("-n", "loopback")
    client = stay.client()
    server = "import socket, time\ns = socket.socket(); s.bind(('127.0.0.1', 8123)); s.listen()\nprint('listening', flush=True)\ntime.sleep(60)"
    frame, _, _ = client.call("exec", argv=[PYTHON.encode(), b"-c", server.encode()], detach=True, tag=b"web")
    assert frame[0] == "reply" and (frame[2]["reason"], frame[2]["detached"]) == ("detached", True), frame
    client.socket.close()
    client = stay.client()
    assert client.call("wait", tag=b"web", line=b"listening", timeout_ms=5000)[0][0] == "reply"
    assert client.sh("echo x >/dev/tcp/127.0.0.1/8123 && echo reached")["out"] == b"reached\n"
    assert client.sh("sleep 30 & exit 0")["exit_code"] == 0
    logs = client.call("logs", tag=b"web")
    assert logs[0][0] == "reply" and logs[1] == b"listening\n", logs
    assert client.call("kill", tag=b"web")[0][0] == "reply"
    ended = client.call("wait", tag=b"web", timeout_ms=5000)
    assert ended[0][0] == "reply", ended


def test_what_a_detached_command_tries_does_not_hang(stay):
    """Its listener is answered after its call is over."""
    client = stay.started().client()
    client.call("exec", command=b"sleep 0.3; echo x >/etc/nowhere; echo over >/tmp/over", detach=True, tag=b"late")
    assert wait_for(lambda: client.call("read", path=b"/tmp/over")[0][0] == "reply", 4)


def test_a_deadline_spares_the_others(stay):
    client = stay.started().client()
    client.call("exec", command=b"sleep 60", detach=True, tag=b"stays")
    done = client.sh("(setsid sleep 50 &) ; sleep 50", timeout_ms=300)
    assert done["reason"] == "timeout", done
    listed = client.call("ps")[0][2]["commands"]
    assert [(c["tag"], c["state"]) for c in listed] == [(b"stays", "running")], listed


def test_ps_and_down(stay):
    def caisson(*words):
        return subprocess.run([stay.box.caisson, *words], capture_output=True, text=True, timeout=WAIT,
                              env=stay.box.env | {"XDG_RUNTIME_DIR": str(stay.runtime)}, **stay.box.as_owner())
    assert caisson("ps").stdout == ""
    stay.started(name="one").started(name="t")
    pids = [stay.monitor("one"), stay.monitor("t")]
    listed = json.loads(caisson("ps", "--json").stdout)["sandboxes"]
    assert [(s["name"], s["pid"], s["state"]) for s in listed] == [("one", pids[0], "idle"), ("t", pids[1], "idle")], listed
    everyone = [*pids, *children(pids[0]), *children(pids[1])]
    down = caisson("down", "one", "t")
    assert (down.returncode, down.stdout, down.stderr) == (0, "", ""), down
    assert not list(stay.path().parent.iterdir()) and wait_for(lambda: not alive(everyone), 1), alive(everyone)
    gone = caisson("down", "one")
    assert gone.returncode != 0 and "no sandbox named one" in gone.stderr, gone


def test_a_stopped_monitor_holds_up_nobody(stay):
    stay.started()
    pid = stay.monitor()
    os.kill(pid, signal.SIGSTOP)
    crowd = []
    try:
        for _ in range(200):
            peer = socket.socket(socket.AF_UNIX)
            peer.setblocking(False)
            crowd.append(peer)
            peer.connect(str(stay.path()))
    except BlockingIOError:
        pass
    try:
        before = time.monotonic()
        ps = subprocess.run([stay.box.caisson, "ps"], capture_output=True, text=True, timeout=WAIT,
                            env=stay.box.env | {"XDG_RUNTIME_DIR": str(stay.runtime)}, **stay.box.as_owner())
        assert ps.stdout.split()[:2] == ["t", "silent"] and time.monotonic() - before < 6, ps
    finally:
        os.kill(pid, signal.SIGCONT)


def test_what_a_crash_left_is_not_listed(stay):
    stay.started()
    os.kill(stay.monitor(), signal.SIGKILL)
    assert wait_for(lambda: subprocess.run([stay.box.caisson, "ps"], capture_output=True, text=True, env=stay.box.env | {
        "XDG_RUNTIME_DIR": str(stay.runtime)}, **stay.box.as_owner()).stdout == "", 3)
    assert not list(stay.path().parent.iterdir())


def test_calls_cancelled_while_they_start(stay):
    """A command may die between announcing its listener and the monitor taking it: no loss of the rest."""
    client = stay.started().client()
    for ref in range(300):
        client.send("call", ref, Atom("exec"), {"command": b"true"})
        time.sleep(ref % 60 / 10000)
        client.send("cancel", ref)
        client.answer(ref)
    assert client.sh("echo here")["out"] == b"here\n"


def test_who_waited_has_time_for_his_next_call(stay):
    client = stay.started("-l", "idle=1s").client()
    client.sh("sleep 1.5")
    time.sleep(0.3)
    assert client.sh("echo again")["out"] == b"again\n"


def test_who_waits_beside_a_detached_one_is_not_silent(stay):
    client = stay.started("-l", "idle=1s").client()
    client.call("exec", command=b"sleep 60", detach=True, tag=b"beside")
    assert client.sh("sleep 2; echo ok")["out"] == b"ok\n"
    assert client.call("wait", tag=b"beside", timeout_ms=2000)[0][2]["timed_out"] is True


def test_down_finds_a_place_among_clients_with_calls(stay):
    stay.started()
    pid = stay.monitor()
    crowd = [stay.client() for _ in range(64)]
    for client in crowd:
        client.send("call", 1, Atom("exec"), {"command": b"sleep 100"})
    assert wait_for(lambda: len(working(pid)) >= 2 * len(crowd), 10)
    down = subprocess.run([stay.box.caisson, "down", "t"], capture_output=True, text=True, timeout=WAIT,
                          env=stay.box.env | {"XDG_RUNTIME_DIR": str(stay.runtime)}, **stay.box.as_owner())
    assert down.returncode == 0 and wait_for(lambda: not alive([pid]), 2), down


def test_a_detached_command_that_is_brief(stay):
    client = stay.started().client()
    reasons = {client.call("exec", command=b":", detach=True, tag=b"t%d" % i)[0][2]["reason"] for i in range(100)}
    assert reasons == {"detached"}, reasons


def test_who_talks_nonsense_is_told(stay):
    client = stay.started().client()
    client.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert client.frame()[:3] == ("failed", 0, "invalid")


def test_a_cancel_finds_room_where_the_agent_does_not_read(stay):
    stay.started()
    pid = stay.monitor()
    client = stay.client()
    client.send("call", 1, Atom("exec"), {"command": b"trap '' USR1; sleep 1000"})
    assert wait_for(lambda: len(working(pid)) >= 3, 5)
    ours = agent(pid)
    piece = encode((Atom("signal"), 1, signal.SIGUSR1))
    os.kill(ours, signal.SIGSTOP)
    try:
        with pytest.raises(OSError):
            for _ in range(60):
                client.socket.sendall((struct.pack(">I", len(piece)) + piece) * 50000)
        client.socket.close()
    finally:
        os.kill(ours, signal.SIGCONT)
    assert wait_for(lambda: len(working(pid)) <= 2, WAIT), working(pid)

    def is_there():  # once the agent has read all that
        try:
            return stay.client().sh("echo here")["out"] == b"here\n"
        except AssertionError:
            return False
    assert wait_for(is_there, WAIT)


def test_the_same_variable_in_each_call_costs_nothing(stay):
    client = stay.started().client()
    pid = stay.monitor()

    def memory():
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096

    def calls(count):
        for _ in range(count):
            client.call("exec", argv=[b"/no/such/program"], env={b"A%d" % i: b"%d" % i * 1000 for i in range(1000, 1020)})
    calls(10)
    before = memory()
    calls(100)
    assert memory() - before < 2 << 20, memory() - before


def test_commands_that_hold_connects_exhaust_nothing(stay):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        stay.started(policy=f"version: 1\nworkspace: {{path: {stay.box.ws}}}\nlimits: {{processes: 1000}}\n")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    client = stay.client()
    holds = """
        import os, socket, threading, time
        path = f"/tmp/s{os.getpid()}"
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen(0)
        for _ in range(66):
            threading.Thread(target=lambda: socket.socket(socket.AF_UNIX).connect(path), daemon=True).start()
        print("held", flush=True)
        time.sleep(60)
        """
    for tag in (b"a", b"b", b"c", b"d", b"e"):
        client.call("exec", argv=[PYTHON.encode(), b"-c", textwrap.dedent(holds).encode()], detach=True, tag=tag)
        assert client.call("wait", tag=tag, line=b"held", timeout_ms=5000)[0][2]["reached"] is True
    time.sleep(0.3)
    assert stay.client().sh("echo here")["out"] == b"here\n"
