"""Looking after sandboxes that stay: ps, stats, gc, logs and wait as a person types them."""
import fcntl
import itertools
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import subprocess
import time

import pytest
from run_fixtures import *  # noqa: F403
from test_stay import Atom, alive, children, stay  # noqa: F401

WAIT = 20


@pytest.fixture
def typed(stay):
    """Types a command as the sandboxes' owner; what is still up at the end is ended."""
    def run(*words, **more):
        return subprocess.run([stay.box.caisson, *map(str, words)], cwd=stay.box.ws, text=True, timeout=WAIT,
                              capture_output=True, stdin=subprocess.DEVNULL, env=environment(stay), **stay.box.as_owner(), **more)
    yield run
    for name in run("ps", "-q").stdout.split():
        run("down", name)


def environment(stay):
    return stay.box.env | {"XDG_RUNTIME_DIR": str(stay.runtime)}


def listed(typed):
    return {row["name"]: row for row in json.loads(typed("ps", "--json").stdout)["sandboxes"]}


def at_terminal(stay, *words, columns=80):
    """What a person sees there, without colours."""
    shown, ours = pty.openpty()
    process = subprocess.Popen([stay.box.caisson, *words], stdin=ours, stdout=ours, stderr=ours,
                               env=environment(stay) | {"NO_COLOR": "1"}, **stay.box.as_owner())
    os.close(ours)
    text = b""
    while select.select([shown], [], [], WAIT)[0]:
        try:
            text += os.read(shown, 65536)
        except OSError:
            break
    os.close(shown)
    process.wait(WAIT)
    return text.decode().replace("\r\n", "\n")


# ---- who looks ----------------------------------------------------------------------------------

def test_to_look_keeps_no_sandbox(stay, typed):
    stay.started("-l", "idle=2s")
    began = time.monotonic()
    idle = []
    while time.monotonic() - began < 4 and "t" in (rows := listed(typed)):
        idle += [rows["t"]["stats"]["idle_ms"]] if rows["t"]["stats"] else []
        time.sleep(0.1)
    assert time.monotonic() - began < 3.5, "it was kept by those who looked"
    assert idle == sorted(idle) and idle[-1] >= 1000, idle


def test_a_call_does_keep_it(stay, typed):
    client = stay.started("-l", "idle=2s").client()
    for ref in range(6):
        time.sleep(0.5)
        assert client.call("stat", ref, path=b".")[0][0] == "reply"
    assert listed(typed)["t"]["stats"]["idle_ms"] < 2000


# ---- ps -----------------------------------------------------------------------------------------

def test_states(stay, typed):
    stay.started(name="quiet").started("--rw", "-l", "memory=300MiB", name="works").started(name="stops")
    stay.box.started += 1
    assert typed("exec", "works", "--detach", "--tag", "a", "--", "sleep", "60").returncode == 0
    os.kill(stay.monitor("stops"), signal.SIGSTOP)
    try:
        rows = listed(typed)
        text = typed("ps").stdout.splitlines()
    finally:
        os.kill(stay.monitor("stops"), signal.SIGCONT)
    assert {name: row["state"] for name, row in rows.items()} == {"quiet": "idle", "works": "busy", "stops": "silent"}
    assert list(rows) == ["quiet", "works", "stops"], "oldest first"
    assert rows["stops"]["stats"] is None and rows["works"]["stats"]["mem_limit"] == 300 << 20
    assert rows["works"]["stats"]["commands"] == 1 and rows["works"]["stats"]["mode"] == "rw"
    assert [line.split()[:3] for line in text] == [["quiet", "idle", "balanced"], ["works", "busy", "balanced"], ["stops", "silent", "-"]]
    assert re.search(r" \d+s  \S+/300MiB +\d+/\d+$", text[1]), text
    assert typed("ps", "-q").stdout.split() == ["quiet", "works", "stops"]
    assert wait_for(lambda: listed(typed)["stops"]["state"] == "idle", 5)
    typed("kill", "works", "a")
    assert wait_for(lambda: listed(typed)["works"]["state"] == "idle", 5)


def test_silent_ones_cost_their_patience_once(stay, typed):
    pids = [stay.started(name=f"s{i}").monitor(f"s{i}") for i in range(4)]
    stay.started(name="answers")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        rows = listed(typed)
        seconds = time.monotonic() - began
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert [row["state"] for row in rows.values()] == ["silent"] * 4 + ["idle"], rows
    assert 0.4 < seconds < 1.2, seconds


def test_one_that_starts(stay, typed):
    """Its lock is held and nothing is noted in it: it is not asked, so nobody waits for it."""
    stay.started(name="up")
    folder = stay.path().parent
    assert (folder / "up.lock").read_text() == "up\n"
    (folder / "up.lock").write_text("")
    assert listed(typed)["up"]["state"] == "starting"
    os.kill(stay.monitor("up"), signal.SIGSTOP)
    try:
        began = time.monotonic()
        assert listed(typed)["up"]["state"] == "starting" and time.monotonic() - began < 0.4
    finally:
        os.kill(stay.monitor("up"), signal.SIGCONT)


def test_at_a_terminal(stay, typed):
    assert at_terminal(stay, "ps").startswith("caisson: no sandbox stays")
    stay.started(name="n" * 20)
    head, row = at_terminal(stay, "ps").splitlines()
    assert head.split() == ["NAME", "STATE", "TIER", "AGE", "MEMORY", "PROCESSES"] and len(row) <= 80, row
    for word, column in zip(row.split(), head.split()):
        assert row.index(word) == head.index(column), (head, row)


class Liar:
    """Something of the same owner's that listens as a sandbox does."""

    def __init__(self, stay, name):
        folder = stay.path().parent
        self.lock = subprocess.Popen(["flock", folder / f"{name}.lock", "sh", "-c", f"echo up >{folder}/{name}.lock; echo; exec sleep 60"],
                                     stdout=subprocess.PIPE, **stay.box.as_owner())
        self.lock.stdout.readline()
        self.socket = socket.socket(socket.AF_UNIX)
        os.seteuid(stay.box.uid)
        try:
            self.socket.bind(str(folder / f"{name}.sock"))
            self.socket.listen()
        finally:
            os.seteuid(0 if os.getuid() == 0 else os.geteuid())

    def say(self, data):
        peer = self.socket.accept()[0]
        peer.sendall(data)
        return peer

    def end(self):
        self.socket.close()
        self.lock.kill()
        self.lock.wait()


@pytest.mark.parametrize("words", [b"\xff" * 4, b"\x00\x00\x00\x01\x83", b"\x00" * 4, b"\x00\x10\x00\x00" + b"x" * 100, b""])
def test_nonsense_ends_nothing(stay, typed, words):
    stay.started(name="good")
    liar = Liar(stay, "liar")
    process = subprocess.Popen([stay.box.caisson, "ps", "--json"], stdout=subprocess.PIPE, text=True, env=environment(stay),
                               **stay.box.as_owner())
    try:
        peer, began = liar.say(words), time.monotonic()
        rows = {row["name"]: row["state"] for row in json.loads(process.communicate(timeout=WAIT)[0])["sandboxes"]}
        assert not words or time.monotonic() - began < 0.4, "who lies is not waited for"
        peer.close()
    finally:
        liar.end()
    assert rows == {"good": "idle", "liar": "silent"}, rows


# ---- stats --------------------------------------------------------------------------------------

def test_stats_says_all(stay, typed):
    stay.started("--rw", "-l", "memory=300MiB", "-l", "processes=50")
    typed("exec", "t", "--detach", "--tag", "a", "--", "sh", "-c", "head -c 40000000 /dev/zero >/tmp/f; sleep 60")
    assert wait_for(lambda: json.loads(typed("stats", "t", "--json").stdout)["scratch_bytes"] >= 40000000, 5)
    told = json.loads(typed("stats", "t", "--json").stdout)
    assert set(told) == {"name", "sandbox_id", "tier", "backend", "workspace", "mode", "started_ms", "commands", "idle_ms",
                         "idle_limit_ms", "means", "mem_bytes", "mem_limit", "processes", "processes_limit", "cpu_us",
                         "scratch_bytes", "scratch_limit"}
    assert (told["name"], told["mode"], told["workspace"], told["commands"]) == ("t", "rw", str(stay.box.ws), 1), told
    assert told["idle_limit_ms"] == 30 * 60000 and told["mem_limit"] == 300 << 20 and told["processes_limit"] == 50
    rows = dict(re.split(r"  +", line, maxsplit=1) for line in typed("stats", "t").stdout.splitlines())
    assert rows["workspace"] == f"{stay.box.ws}, rw" and rows["commands"] == "1" and rows["record"] == told["sandbox_id"], rows
    assert re.fullmatch(r"\d+(\.\d)?MiB/300MiB", rows["memory"]) and re.fullmatch(r"\d+/50", rows["processes"]), rows
    assert rows["scratch"] == "38MiB/512MiB" and rows["wall"] == "process" and rows["tier"] == "balanced", rows
    assert rows["means"].startswith(told["means"]) and (told["means"] != "sampled" or "no control group" in rows["means"]), rows
    assert re.fullmatch(r"\d+s; ends after 30m", rows["silent for"]), rows


def test_stats_of_nobody(typed):
    done = typed("stats", "nobody")
    assert done.returncode == 1 and done.stderr == "caisson: there is no sandbox named nobody; `caisson ps` lists them\n", done



# ---- gc -----------------------------------------------------------------------------------------

def parts(stay, name):
    """The processes of a sandbox that know what it made."""
    monitor = stay.monitor(name)
    found = {"monitor": monitor}
    for pid in children(monitor):
        comm = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
        if comm in ("caisson-cleaner", "caisson-agent"):
            found.setdefault(comm.removeprefix("caisson-"), pid)
    return found, [monitor, *children(monitor)]


def slain(stay, name, order):
    """Kills the named parts at one instant, in that order; its processes."""
    found, everyone = parts(stay, name)
    doomed = [found[part] for part in order if part in found]
    for pid in doomed:
        os.kill(pid, signal.SIGSTOP)
    for pid in doomed:
        os.kill(pid, signal.SIGKILL)
    return everyone


def traces(stay, ids):
    """What is left of those sandboxes on the host."""
    left = [path for sandbox in ids for path in pathlib.Path("/tmp").glob(f"caisson-{sandbox}")]
    left += [path for sandbox in ids for path in pathlib.Path("/sys/fs/cgroup").glob(f"*/caisson/{sandbox}")]
    left += [path for path in (stay.box.runs / ".pending").glob("*") if path.name in ids]
    return left + [*stay.box.ws.iterdir()]


@pytest.mark.parametrize("wall", ["process", "landlock"])
def test_gc_takes_what_any_order_of_kills_left(stay, typed, wall):
    folder = stay.box.home / "other"
    folder.mkdir()
    stay.started("-w", f"{folder}:rw", "-l", "processes=50", name="lives")
    stay.box.started += 1
    typed("exec", "lives", "--detach", "--tag", "a", "--", "sleep", "60")
    policy = LANDLOCK + f"workspace: {{path: {stay.box.ws}, at: host, mode: rw}}\n" if wall == "landlock" else None
    orders = [*itertools.permutations(["monitor", "cleaner", "agent"]), ["monitor"], ["monitor", "cleaner"]]
    for i in range(len(orders)):
        stay.started(*([] if policy else ["--rw"]), name=f"dies{i}", policy=policy)
        typed("exec", f"dies{i}", "--detach", "--tag", "a", "-c", "setsid sleep 60 & echo x >/tmp/f; sleep 60")
    rows = listed(typed)
    ids = [rows[f"dies{i}"]["stats"]["sandbox_id"] for i in range(len(orders))]
    everyone = [pid for i, order in enumerate(orders) for pid in slain(stay, f"dies{i}", order)]
    mine = stay.path().parent
    assert (mine / "dies0.sock").exists() and traces(stay, ids)
    living = sorted(os.listdir(folder))
    told = json.loads(typed("gc", "--json").stdout)["removed"]
    assert wait_for(lambda: not alive(everyone), 5), alive(everyone)
    typed("gc")  # what a cleaner was at meanwhile
    assert traces(stay, ids) == [] and sorted(path.name for path in mine.iterdir()) == ["lives.lock", "lives.sock"]
    assert {"kind": "name", "what": "dies0"} in told and not any(row["what"] == "lives" for row in told), told
    assert sorted(os.listdir(folder)) == living
    row = listed(typed)["lives"]
    assert row["state"] == "busy" and row["stats"]["processes"] >= 1, row
    assert typed("exec", "lives", "--", "echo", "well").stdout == "well\n"


def test_gc_finds_nothing_where_nothing_was(user_box):
    """As a user: root's groups are those of every run on this machine."""
    (user_box.base / "runtime").mkdir(mode=0o700)
    user_box.give()
    own = {"XDG_RUNTIME_DIR": str(user_box.base / "runtime")}
    assert wait_for(lambda: user_box.cli("gc", env=own).text == "nothing was left\n", 5), "another test's crash"
    assert user_box.cli("gc", "-q", env=own).text == ""
    assert json.loads(user_box.cli("gc", "--json", env=own).text) == {"removed": []}


def test_gc_ends_what_was_half_done(stay, typed):
    """A root tree whose maker was killed, a record that was being removed."""
    stay.started()
    assert typed("down", "t").returncode == 0
    made, gone = stay.box.runs / ".roots" / ".new-0123456789abcdef", stay.box.runs / ".gone-20260102-030405-0123456789ab"
    for folder in (made, gone):
        (folder / "tree").mkdir(parents=True)
    stay.box.give()
    held = os.open(made, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    os.utime(made, (time.time() - 60,) * 2)
    assert "removed the rest of the record 20260102-030405-0123456789ab\n" in typed("gc").stdout and made.exists()
    os.close(held)
    assert "removed the unused root tree .new-0123456789abcdef\n" in typed("gc").stdout
    assert not made.exists() and not gone.exists()


# ---- logs, wait, kill ---------------------------------------------------------------------------

COUNTS = "for i in 1 2 3; do echo $i; echo e$i >&2; sleep 0.3; done; exit 3"


def detached(typed, tag, *words):
    assert typed("exec", "t", "-q", "--detach", "--tag", tag, *words).returncode == 0


def test_logs_follow_to_the_end(stay, typed):
    stay.started()
    detached(typed, "a", "-c", COUNTS)
    began = time.monotonic()
    done = typed("logs", "t", "a", "--follow")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n2\n3\n", "e1\ne2\ne3\n") and time.monotonic() - began > 0.5, done
    told = json.loads(typed("logs", "t", "a", "--json").stdout)
    assert told == {"output": "1\n2\n3\n", "errors": "e1\ne2\ne3\n", "bytes": 15, "cut_bytes": 0, "running": False}
    detached(typed, "long", "-c", "head -c 1500000 /dev/zero; printf '\\377end'")
    assert typed("wait", "t", "long").returncode == 0
    done = subprocess.run([stay.box.caisson, "logs", "t", "long"], capture_output=True, env=environment(stay), timeout=WAIT,
                          **stay.box.as_owner())
    cut = 1500004 - len(done.stdout)
    assert done.stdout[-4:] == b"\xffend" and cut > 0, len(done.stdout)
    assert done.stderr == f"caisson: {cut} bytes before are not kept any more, only the last MiB is\n".encode(), done.stderr


def test_wait_says_what_came_of_it(stay, typed):
    stay.started("-n", "loopback")
    detached(typed, "a", "-c", COUNTS)
    assert typed("wait", "t", "a", "--line", "^2$", "--timeout", "9s").returncode == 0
    assert json.loads(typed("wait", "t", "a", "--line", "^[0-9]$", "--json").stdout)["line"] == "1"
    assert typed("wait", "t", "a").returncode == 3
    told = json.loads(typed("wait", "t", "a", "--json").stdout)
    assert told == {"reached": True, "timed_out": False, "running": False, "exit_code": 3, "signal": None, "line": None}
    for flags, sentence in [(["--line", "x"], "the command ended and wrote no such line"),
                            (["--port", "8125"], "the command ended and listened on no such port")]:
        done = typed("wait", "t", "a", *flags)
        assert (done.returncode, done.stderr) == (1, f"caisson: {sentence}; what it wrote: caisson logs t a\n"), done
    detached(typed, "b", "--", "sleep", "60")
    done = typed("wait", "t", "b", "--port", "8125", "--timeout", "200ms")
    assert done.returncode == 1 and done.stderr.startswith("caisson: the time is over; the command goes on; "), done
    assert json.loads(typed("wait", "t", "b", "--timeout", "100ms", "--json").stdout)["timed_out"] is True


@pytest.mark.parametrize("words, sentence", [
    (["wait", "t", "a", "--port", "0"], "--port takes a port, 1 to 65535"), (["wait", "t", "a", "--port", "70000"], "1 to 65535"),
    (["wait", "t", "a", "--port", "1", "--line", "x"], "one of them"), (["wait", "t", "a", "--line", "("], "no POSIX extended one"),
    (["wait", "t", "a", "--timeout", "soon"], "--timeout takes a time"), (["kill", "t", "a", "0"], "1 to 64"),
    (["kill", "t", "a", "65"], "1 to 64"), (["kill", "t", "a", "TREM"], "1 to 64")])
def test_flags_that_make_no_sense(stay, typed, words, sentence):
    stay.started()
    detached(typed, "a", "--", "sleep", "60")
    done = typed(*words)
    assert done.returncode in (1, 2) and sentence in done.stderr and done.stderr.startswith("caisson: "), done
    assert listed(typed)["t"]["stats"]["commands"] == 1


def test_a_tag_that_nobody_has(stay, typed):
    stay.started()
    for verb in ("logs", "wait", "kill"):
        done = typed(verb, "t", "web")
        assert done.returncode == 1 and done.stderr == ("caisson: no detached command of t has the tag web; none has one: caisson "
                                                        "exec --detach --tag TAG gives one\n"), done
    detached(typed, "a", "--", "sleep", "60")
    detached(typed, "b\x1b[2J", "--", "sleep", "60")
    detached(typed, "c", "--", "true")
    typed("wait", "t", "c")
    done = typed("logs", "t", "w\x1beb")
    assert done.stderr == "caisson: no detached command of t has the tag w\\x1beb; running: a, b\\x1b[2J; ended: c\n", done


@pytest.mark.parametrize("words", [["logs", "t", "a", "-f"], ["wait", "t", "a"], ["wait", "t", "a", "--line", "never"]])
def test_who_interrupts_leaves_the_command_alone(stay, typed, words):
    stay.started()
    detached(typed, "a", "-c", "echo begun; sleep 60")
    pid = stay.monitor()
    time.sleep(0.1)  # until it knows that we only knocked
    before = len(os.listdir(f"/proc/{pid}/fd"))
    process = subprocess.Popen([stay.box.caisson, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(stay),
                               **stay.box.as_owner())
    assert words[0] == "wait" or process.stdout.readline() == b"begun\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WAIT)
    assert (process.returncode, out, err) == (-signal.SIGINT, b"", b"")
    assert wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= before, 3)
    assert listed(typed)["t"]["stats"]["commands"] == 1 and typed("logs", "t", "a").stdout == "begun\n"
    assert typed("kill", "t", "a").returncode == 0 and typed("wait", "t", "a").returncode == 143
