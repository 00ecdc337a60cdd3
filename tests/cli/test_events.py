"""Each event that the process wall and the landlock wall can have: as root's and as a user's, with the whole of its entry."""
import json
import re
import shutil

import pytest

from run_fixtures import *

WALLS = {"process": "version: 1\n", "landlock": LANDLOCK}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture(params=WALLS)
def wall(request):
    return WALLS[request.param]


def is_landlock(wall):
    return wall == LANDLOCK


def whole(fact):
    """What every entry has, and nothing left open in its sentence."""
    assert TIME.fullmatch(fact["time"]) and fact["count"] >= 1 and isinstance(fact["certain"], bool), fact
    assert fact["rule"] and isinstance(fact["detail"], dict) and fact["detail"], fact
    say = fact["say"]
    assert 20 < len(say) < 448 and say[0].isupper() | (say[0] == "/") and say.endswith(".") and "(null)" not in say, say
    return fact


def only(run, event, source):
    """The one fact of a run."""
    [fact] = run.facts
    assert fact["event"] == event and fact["source"] == source, run
    return whole(fact)


def attempts(text, *more):
    """A Python text in which deny(call, …) swallows what the kernel says to it."""
    return f"""
import ctypes, os, socket, sys
def deny(call, *args):
    try:
        return call(*args)
    except OSError:
        return None
{text}
"""


# ---- network ---------------------------------------------------------------------------------

@pytest.mark.parametrize("text, address", [
    ("deny(socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect, ('198.51.100.7', 443))", "198.51.100.7"),
    ("deny(socket.socket(socket.AF_INET6, socket.SOCK_STREAM).connect, ('2001:db8::7', 443))", "2001:db8::7"),
    ("deny(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto, b'x', ('198.51.100.7', 443))", "198.51.100.7"),
    ("deny(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg, [b'x'], [], 0, ('198.51.100.7', 443))", "198.51.100.7"),
    ("deny(socket.socket(socket.AF_INET, socket.SOCK_STREAM).bind, ('127.0.0.1', 443))", "127.0.0.1"),
])
def test_addresses(box, text, address):
    fact = only(box.python(attempts(text)), "NetworkAccessViolation", "seccomp")
    assert (fact["detail"]["address"], fact["detail"]["port"]) == (address, 443) and address in fact["say"], fact
    assert fact["comm"].startswith("python") and fact["pid"] > 0, fact


def test_a_bind_is_told_as_it_was(box):
    """A bind without a network succeeds: the sentence must not say that it was refused."""
    run = box.python(attempts("server = socket.create_server(('127.0.0.1', 8000)); print('bound')"))
    fact = only(run, "NetworkAccessViolation", "seccomp")
    assert run.text == "bound\n" and fact["say"].startswith("A server was to listen at 127.0.0.1 port 8000: bound or not, nothing can reach it"), fact
    assert "--network loopback" in fact["say"] and "not permitted" not in fact["say"], fact


def test_a_connect_is_certain(box):
    """It was made by the monitor or not at all: nothing could race."""
    run = box.python(attempts("deny(socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect, ('198.51.100.7', 443))"))
    assert only(run, "NetworkAccessViolation", "seccomp")["certain"] is True


def test_a_socket_of_the_hosts_network(box):
    """The landlock wall has the host's interfaces, so the socket itself is refused."""
    fact = only(box.python(attempts("deny(socket.socket, socket.AF_INET, socket.SOCK_STREAM)"), policy=LANDLOCK),
                "NetworkAccessViolation", "seccomp")
    assert fact["detail"]["syscall"] == "socket" and fact["detail"]["args"][0] == "0x2" and fact["certain"] is True


def test_the_name_that_was_looked_up(box):
    run = box.python(attempts("deny(socket.getaddrinfo, 'telemetry.example.org', 443)"))
    fact = only(run, "NetworkAccessViolation", "seccomp")
    assert fact["detail"]["host"] == "telemetry.example.org" and "telemetry.example.org" in fact["say"], fact
    assert run.seconds < 2, "a look-up fails at once"


def test_a_look_up_behind_landlock_is_seen_and_quick(box):
    run = box.python(attempts("deny(socket.getaddrinfo, 'telemetry.example.org', 443)"), policy=LANDLOCK)
    assert run.events == {"NetworkAccessViolation"} and run.seconds < 2, run
    assert all(whole(fact)["detail"]["syscall"] == "socket" for fact in run.facts), run


def test_loopback_is_no_way_out(box):
    text = attempts("""
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen()
socket.create_connection(server.getsockname(), 2)
deny(socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect, ('198.51.100.7', 443))""")
    fact = only(box.python(text, flags=["-n", "loopback"]), "NetworkAccessViolation", "seccomp")
    assert fact["detail"]["address"] == "198.51.100.7" and "127.0.0.1 and ::1" in fact["say"], fact


# ---- files -----------------------------------------------------------------------------------

WRITES = {
    "open": ("deny(os.open, ws + '/new', os.O_CREAT | os.O_WRONLY)", "/new"), "truncate": ("deny(os.truncate, ws + '/f', 0)", "/f"),
    "append": ("deny(os.open, ws + '/f', os.O_WRONLY | os.O_APPEND)", "/f"), "mkdir": ("deny(os.mkdir, ws + '/d')", "/d"),
    "unlink": ("deny(os.unlink, ws + '/f')", "/f"), "rmdir": ("deny(os.rmdir, ws + '/e')", "/e"),
    "rename": ("deny(os.rename, ws + '/f', ws + '/g')", "/f"), "link": ("deny(os.link, ws + '/f', ws + '/g')", "/g"),
    "symlink": ("deny(os.symlink, 'x', ws + '/l')", "/l"), "chmod": ("deny(os.chmod, ws + '/f', 0o777)", "/f"),
    "fifo": ("deny(os.mkfifo, ws + '/p')", "/p"),
}


@pytest.mark.parametrize("name", WRITES)
def test_changes_of_files(far_box, wall, name):
    text, path = WRITES[name]
    far_box.file("f", "x")
    (far_box.ws / "e").mkdir()
    ws = str(far_box.ws) if is_landlock(wall) else "/workspace"
    run = far_box.python(attempts(f"ws = {ws!r}\n{text}"), policy=wall)
    fact = only(run, "FilesystemWriteViolation", "seccomp")
    assert fact["detail"]["path"] == ws + path and fact["rule"] == "workspace.mode: ro" and "workspace.mode=rw" in fact["say"], fact
    assert (far_box.ws / "f").read_text() == "x" and sorted(p.name for p in far_box.ws.iterdir())[-2:] == ["e", "f"]
    if name == "rename":
        assert fact["detail"]["to"] == ws + "/g"


def test_a_path_that_could_race_is_not_certain(far_box):
    far_box.file("f", "x")
    run = far_box.python(attempts("deny(os.open, '/workspace/f', os.O_WRONLY)"))
    assert only(run, "FilesystemWriteViolation", "seccomp")["certain"] is False


def test_outside_of_everything(box, wall):
    run = box.python(attempts("deny(os.mkdir, '/usr/x')"), policy=wall)
    fact = only(run, "FilesystemWriteViolation", "seccomp")
    assert fact["detail"]["path"] == "/usr/x" and "read-only root" in fact["rule"] and "/tmp" in fact["say"], fact


def test_mounts_name_themselves(far_box):
    far_box.file(far_box.home / "data" / "f", "x")
    flags = ["-m", f"{far_box.home}/data:/data"]
    fact = only(far_box.python(attempts("deny(os.open, '/data/f', os.O_WRONLY)"), flags=flags), "FilesystemWriteViolation", "seccomp")
    assert fact["rule"] == "mounts: /data ro" and "--mount" in fact["say"], fact


@pytest.mark.parametrize("name", ["__pycache__/x.pyc", ".git/index.lock", ".pytest_cache/x"])
def test_well_known_noise_is_folded_as_expected(far_box, wall, name):
    (far_box.ws / name).parent.mkdir()
    ws = str(far_box.ws) if is_landlock(wall) else "/workspace"
    run = far_box.python(attempts(f"for n in range(3): deny(os.open, '{ws}/{name}', os.O_CREAT | os.O_WRONLY)"),
                         policy=wall + "on_violation: kill\n")
    assert run.status == 0 and run.facts == [], run
    [fact] = run.result["violations"]
    assert fact["expected"] is True and fact["count"] == 3 and fact["last_time"] >= fact["time"], fact


# ---- reads -----------------------------------------------------------------------------------

READS = "observe: [reads]\n"


def test_reads_are_not_traced_unasked(far_box, wall):
    far_box.file(".env", "TOKEN=x")
    run = far_box.python(attempts("deny(open, '.env')\ndeny(open, '/home/bob/.ssh/id_rsa')"), policy=wall)
    assert run.facts == [] and "FilesystemReadViolation" in run.result["not_observed"], run


def test_a_hidden_file(far_box, wall):
    far_box.file(".env", "TOKEN=secret")
    far_box.file("seen", "x")
    ws = str(far_box.ws) if is_landlock(wall) else "/workspace"
    run = far_box.python(attempts("for n in range(4): deny(open, '.env')\nprint(open('seen').read())"), policy=wall + READS)
    fact = only(run, "FilesystemReadViolation", "seccomp")
    assert fact["detail"]["path"] == f"{ws}/.env" and fact["rule"] == "workspace.hide" and fact["certain"] is False, fact
    assert fact["count"] == 4 and "workspace.hide" in fact["say"] and run.text == "x\n", run


@pytest.mark.parametrize("path", ["/home/bob/.ssh/id_rsa", "/root/.ssh/id_rsa", "{other}"])
def test_what_is_not_in_view(far_box, wall, path):
    other = far_box.file(far_box.base / "other" / "key", "secret")
    path = path.format(other=other)
    run = far_box.python(attempts(f"for n in range(4): deny(open, {path!r})"), policy=wall + READS)
    fact = only(run, "FilesystemReadViolation", "seccomp")
    assert fact["detail"]["path"] == path and fact["rule"] == "built-in: not in view" and fact["certain"] is False, fact
    assert fact["count"] == 4 and "--mount" in fact["say"] and path in fact["say"], fact


def test_folders_are_read_too(far_box, wall):
    far_box.file(far_box.base / "other" / "key", "secret")
    run = far_box.python(attempts(f"deny(os.listdir, '{far_box.base}/other')"), policy=wall + READS)
    assert only(run, "FilesystemReadViolation", "seccomp")["detail"]["path"] == f"{far_box.base}/other", run


def test_what_is_lent_is_in_view(far_box, wall):
    """Workspace, mounts, scratch, system, and looking for a file in the folders above."""
    data = far_box.file(far_box.home / "data" / "f", "x").parent
    above = f"{far_box.base}/none.toml" if is_landlock(wall) else "/none.toml"
    run = far_box.python(attempts(f"""
for path in ("{data}/f", "/etc/hostname", os.environ["TMPDIR"], "{above}", "/sys/devices/system/cpu/online"):
    deny(os.open, path, os.O_RDONLY)
with open(os.environ["TMPDIR"] + "/x", "w+") as file:
    os.unlink(file.name)
    open(f"/dev/fd/{{file.fileno()}}").close()
open("/dev/stdin").close()
"""), policy=wall + READS + f"mounts: [{{host: {data}, at: {data}}}]\n")
    assert run.status == 0 and run.facts == [], run


INNOCENT = {
    "python": f"{PYTHON} -c 'import json, ssl, sqlite3, email, subprocess; subprocess.run([\"true\"], check=True)'",
    "shell": "find . | sort | head -3; grep -r x . ; ls -la /usr /tmp >/dev/null; cat /etc/passwd /proc/self/status >/dev/null",
    "git": "git -c core.pager=cat log --oneline; git status --short; true",
    "make": "printf 'all:\\n\\t@echo made\\n' >$TMPDIR/m; make -f $TMPDIR/m",
}


@pytest.mark.parametrize("name", INNOCENT)
def test_innocent_reads(far_box, wall, name):
    far_box.file("a.txt", "x\n")
    if name == "git":
        for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "first"]):
            far_box.host("git", *words)
    run = far_box.sh(INNOCENT[name], policy=wall + READS)
    assert run.status == 0 and run.facts == [], run


# ---- system calls ----------------------------------------------------------------------------

SYSCALLS = {
    "socket": ("deny(socket.socket, socket.AF_PACKET, socket.SOCK_RAW)", "0x11"),
    "ptrace": ("ctypes.CDLL(None).ptrace(0, 0, 0, 0)", "0x0"),
    "unshare": ("ctypes.CDLL(None).unshare(0x10000000)", "0x10000000"),
    "mount": ("ctypes.CDLL(None).mount(0, 0, 0, 0, 0)", "0x0"),
}


@pytest.mark.parametrize("name", SYSCALLS)
def test_system_calls(box, wall, name):
    text, first = SYSCALLS[name]
    fact = only(box.python(attempts(text), policy=wall), "SyscallViolation", "seccomp")
    assert fact["detail"]["syscall"] == name and fact["detail"]["args"][0] == first and fact["certain"] is True, fact
    assert fact["rule"].startswith("profile ") and name in fact["say"], fact


# ---- clocks and limits -----------------------------------------------------------------------

def test_timeout(box, wall):
    run = box.run("sleep", "5", policy=wall, flags=["--timeout", "200ms"])
    fact = only(run, "TimeoutViolation", "clock")
    assert fact["rule"] == "limits.command: 200ms" and "200ms" in fact["say"] and fact["certain"] is True and run.status == 124


def test_output(box, wall):
    run = box.run("yes", policy=wall, flags=["-l", "output=8KiB"])
    fact = only(run, "OutputLimitViolation", "counter")
    assert "8KiB" in fact["say"] and fact["certain"] is True and run.status == 137, fact


FORKS = """
import os, time
for _ in range(60):
    try:
        if os.fork() == 0:
            time.sleep(0.5); os._exit(0)
    except OSError: pass
time.sleep(0.3)
"""


def test_processes(box, wall):
    run = box.python(FORKS, policy=wall, flags=["-l", "processes=20"])
    is_counted = run.result["limits"]["means"]["processes"] == "cgroup"
    fact = only(run, "ProcessLimitViolation", "cgroup" if is_counted else "monitor")
    assert fact["certain"] is is_counted and "20" in fact["detail"]["text"] and "--limit processes" in fact["say"], fact
    assert not is_counted or fact["count"] >= 30, "each refused fork counts"


TREE = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        keep = bytearray(b'x') * (60 << 20); time.sleep(20); os._exit(0)
time.sleep(5)
"""


def test_memory_of_a_tree(box, wall):
    run = box.python(TREE, policy=wall, flags=["--memory", "96MiB"])
    is_counted = run.result["limits"]["means"]["memory"] == "cgroup"
    fact = only(run, "MemoryLimitViolation", "cgroup" if is_counted else "monitor")
    assert fact["certain"] is is_counted and "96MiB" in fact["say"] and run.reason == "memory", run


PEAK = """
keep = []
try:
    while True: keep.append(bytearray(b'x') * (1 << 20))
except MemoryError:
    keep = None
    print("handled")
"""


def test_a_peak_is_a_fact_and_no_end(user_box, wall):
    """Without a controller: one process that met the limit, dealt with it and ended well."""
    for _ in range(5):  # two samples in a row may catch it first, and that ends it
        run = user_box.python(PEAK, policy=wall, flags=["--memory", "64MiB"])
        if run.result["limits"]["means"]["memory"] == "cgroup":
            pytest.skip("sampling: this user has a memory controller")
        assert run.events == {"MemoryLimitViolation"} and whole(run.facts[0])["certain"] is False, run
        if run.reason == "exited":
            break
    assert run.status == 0 and run.text == "handled\n" and len(run.facts) == 1, run
    assert "sampled peak of one process" in run.facts[0]["detail"]["text"], run


def test_scratch(box):
    run = box.sh("head -c 9M /dev/zero >/tmp/x; sleep 0.2", policy="version: 1\nscratch: {size: 4MiB}\n")
    fact = only(run, "ScratchLimitViolation", "monitor")
    assert fact["certain"] is False and "4MiB" in fact["say"] and run.reason == "exited", run


# ---- strict, and the file's own --------------------------------------------------------------

@pytest.mark.parametrize("policy, flags, event, rule", [
    ("tier: strict", [], "StrictModeRequired", ":2:7"), ("strict_when: [{command: 'true*'}]", [], "StrictModeRequired", ":2:"),
    ("strict_when: [{tag: payments}]", ["--tag", "payments"], "StrictModeRequired", ":2:"),
    ("tier: balanced", ["--tier", "strict"], "StrictModeUnavailable", "--tier"),
])
def test_strict_that_cannot_be_had(box, policy, flags, event, rule):
    run = box.run("true", policy=f"version: 1\n{policy}\n", flags=flags)
    fact = only(run, event, "monitor")
    assert run.status == 125 and rule in fact["rule"] and "nothing was run" in fact["say"], fact
    assert run.result["error"]["text"].startswith(event), run


def test_strict_that_nobody_asked_for(box):
    run = box.run("true", policy="version: 1\nbackend: docker\n")
    assert run.status == 125 and run.result["violations"] == [], run


def test_overrides_are_recorded_at_every_start(box):
    policy = "version: 1\nlimits: {command: 10m}\nnetwork: {mode: loopback}\n"
    for _ in range(2):
        run = box.run("true", policy=policy)
        lines = (box.record(run.result["run_id"]) / "logs" / "events.jsonl").read_text().splitlines()
        told = {e["payload"]["what"]: e["payload"] for e in map(json.loads, lines) if e["event"] == "PolicyOverride"}
        assert {"limits.command", "network.mode"} <= set(told), told
        assert (told["limits.command"]["old"], told["limits.command"]["now"]) == ("45s", "10m")
        assert ":2:" in told["limits.command"]["where"] and told["limits.command"]["digest"] == run.result["policy"]["sha256"]


# ---- words, silence, floods ------------------------------------------------------------------

def test_words_are_never_read(box, wall):
    run = box.sh("echo 'touch: /etc/x: Permission denied' >&2; echo Killed; exit 1", policy=wall)
    assert run.status == 1 and run.result["violations"] == [], run


def test_silence_hides_nothing(far_box, wall):
    ws = str(far_box.ws) if is_landlock(wall) else "/workspace"
    run = far_box.python(attempts(f"""
deny(os.open, {ws!r} + "/new", os.O_CREAT | os.O_WRONLY)
deny(os.mkdir, "/usr/x")
deny(socket.create_connection, ("203.0.113.9", 443), 1)
deny(socket.socket, socket.AF_PACKET, socket.SOCK_RAW)
"""), policy=wall)
    assert run.status == 0 and run.out == b"" and not run.err.startswith("Traceback"), run
    assert run.events == {"FilesystemWriteViolation", "NetworkAccessViolation", "SyscallViolation"}, run
    assert len([whole(fact) for fact in run.facts]) == 4, run


def test_a_flood_is_slowed_and_counted(box, wall):
    """Far more than a bucket holds: every one is counted, in one entry, and the run takes its time."""
    run = box.python("""
import os
denied = 0
for n in range(4000):
    try:
        os.open("/usr/same", os.O_CREAT | os.O_WRONLY)
    except OSError:
        denied += 1
print(denied)
""", policy=wall)
    fact = only(run, "FilesystemWriteViolation", "seccomp")
    assert fact["count"] == 4000 and run.text == "4000\n", run
    assert 1.5 < run.seconds < 8, "2,000 facts at once, then 1,000 a second"
    log = (box.record() / "logs" / "events.jsonl").read_text()
    assert log.count('"Violation"') == 1, "folded before it is logged"


def test_the_log_has_each_kind_once(box, wall):
    run = box.sh("for n in 1 2 3; do mkdir /usr/x$n; mkdir /usr/x$n; done; exit 0", policy=wall)
    lines = [json.loads(line) for line in (box.record() / "logs" / "events.jsonl").read_text().splitlines()]
    told = [line["payload"]["detail"]["path"] for line in lines if line["event"] == "Violation"]
    assert told == ["/usr/x1", "/usr/x2", "/usr/x3"] and [fact["count"] for fact in run.facts] == [2, 2, 2], run
    assert box.cli("runs", "verify", run.result["run_id"]).status == 0


# ---- the log's own events --------------------------------------------------------------------

def test_start_and_exit_carry_the_terms(box, wall):
    """What the run was lent and how it ended, in the log itself: names of variables, never values."""
    flags = ["--tag", "one", "-e", "TOKEN", "--network", "none"]
    run = box.run("sh", "-c", "exit 3", policy=wall + "env: {pass: [TOKEN]}\n", flags=flags, env={"TOKEN": "hunter2"})
    text = (box.record() / "logs" / "events.jsonl").read_text()
    told = {line["event"]: line["payload"] for line in map(json.loads, text.splitlines())}
    for event in ("RunStarted", "RunExited"):
        terms = told[event]
        assert terms["runtime"] == run.result["backend"] and terms["mounts"] == run.result["mounts"], terms
        assert (terms["network"], terms["permission_mode"], terms["image"]) == ("none", "none", None), terms
    assert told["RunStarted"]["env_passed"] == ["TOKEN"] and "hunter2" not in text
    assert told["RunStarted"]["policy_sha256"] == run.result["policy"]["sha256"]
    assert told["ExecStarted"]["tags"] == ["one"] and told["ExecEnded"]["usage"]["wall_ms"] > 0
    assert told["RunExited"]["status"] == 3 and told["RunExited"]["termination"]["exit_code"] == 3


@pytest.mark.parametrize("mode", ["cow", "ro"])
def test_a_start_that_fails_has_a_beginning(box, mode):
    """A copy-on-write workspace opens the record before the wall starts; the agent is missing here."""
    alone = box.base / "alone" / "caisson"
    alone.parent.mkdir()
    alone.parent.chmod(0o755)
    shutil.copy(box.caisson, alone)
    box.caisson = alone
    run = box.run("true", flags=["-w", f"{box.ws}:{mode}"])
    assert run.status == 125 and "caisson-agent is missing" in run.err, run
    if mode == "cow":
        lines = (box.record() / "logs" / "events.jsonl").read_text().splitlines()
        told = [json.loads(line)["event"] for line in lines]
        assert told[-2:] == ["RunStarted", "RunExited"] and "ExecEnded" not in told, told
        assert box.cli("runs", "verify", box.record().name).status == 0
