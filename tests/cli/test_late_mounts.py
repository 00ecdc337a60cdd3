"""Paths lent to a sandbox that runs: seen at once, no wider than at a start, on record, and nothing else.

Attackers here are a program inside, which may write in scratch and in what it is lent, and a program of
another run, which may write in a mount root on the host.
"""
import ctypes
import json
import os
import socket
import subprocess
import threading
import time

import pytest
from run_fixtures import *  # noqa: F403
from test_stay import Atom, Stay, stay  # noqa: F401

RENAME_EXCHANGE = 2


class Lender:
    """A sandbox whose policy has a mount root, `lent`, beside the workspace."""

    def __init__(self, stay):
        self.stay, self.box = stay, stay.box
        self.root = self.box.base / "lent"
        (self.root / "data" / "sub").mkdir(parents=True)
        (self.root / "data" / "f").write_text("lent\n")
        self.ref = 0

    def up(self, more="", roots=None, mode="rw"):
        roots = json.dumps([str(path) for path in (roots if roots is not None else [self.root])])
        policy = f"version: 1\nworkspace: {{path: {self.box.ws}, mode: {mode}}}\nmount_roots: {roots}\n{more}"
        self.stay.started(policy=policy)
        self.client = self.stay.client()
        return self

    def mount(self, host, at, mode=None, client=None):
        self.ref += 1
        args = {"host": str(host).encode(), "at": at.encode()} | ({"mode": Atom(mode)} if mode else {})
        return (client or self.client).call("mount", self.ref, **args)[0]

    def lend(self, *args, **more):
        frame = self.mount(*args, **more)
        assert frame[0] == "reply", frame
        assert frame[2] == {}

    def refused(self, host, at, mode=None):
        frame = self.mount(host, at, mode)
        assert frame[0] == "failed", (host, at, mode)
        return str(frame[2]), frame[3].decode()

    def sh(self, text):
        self.ref += 1
        return self.client.sh(text, self.ref)

    def out(self, text):
        told = self.sh(text)
        assert told["exit_code"] == 0, told
        return told["out"].decode()


@pytest.fixture
def lender(stay):
    return Lender(stay)


def test_it_is_seen_at_once_and_cannot_be_written(lender):
    lender.up()
    lender.client.send("call", 900, Atom("exec"), {"command": b"until cat /mnt/data/f; do sleep 0.01; done 2>/dev/null"})
    time.sleep(0.1)
    lender.lend(lender.root / "data", "/mnt/data")
    frame, out, _ = lender.client.answer(900)
    assert frame[0] == "reply" and out == b"lent\n"
    told = lender.sh("touch /mnt/data/new")
    assert told["exit_code"] == 1 and [v["event"] for v in told["violations"]] == [b"FilesystemWriteViolation"]
    assert told["violations"][0]["rule"] == b"mounts: /mnt/data ro"
    for text in ("touch /mnt/new", "touch /mnt/rw/new", "rmdir /mnt/rw", "mv /mnt/data /mnt/other", "mv /mnt/data/f /mnt/data/g",
                 "chmod 777 /mnt/data/f", "ln -s / /mnt/link", "mkfifo /mnt/data/p"):
        assert lender.sh(text)["exit_code"] != 0, text
    assert os.listdir(lender.root / "data") in (["sub", "f"], ["f", "sub"])
    flags = [line.split()[5] for line in lender.out("cat /proc/self/mountinfo").splitlines() if " /mnt/data " in line]
    assert {"ro", "nosuid", "nodev"} <= set(flags[0].split(","))


def test_rw_beneath_its_place(lender):
    lender.up()
    lender.lend(lender.root / "data", "/mnt/rw/deep/data", "rw")
    assert lender.sh("echo new > /mnt/rw/deep/data/new && mkdir /mnt/rw/deep/data/d && rm /mnt/rw/deep/data/f")["exit_code"] == 0
    new = lender.root / "data" / "new"
    assert new.read_text() == "new\n" and new.stat().st_uid == lender.box.uid and not (lender.root / "data" / "f").exists()
    assert not lender.sh("true")["violations"]
    for at in ("/mnt/x", "/tmp/x", "/workspace/x", "/mnt/rw", "/mnt/rwx/y", "/mnt/rw/../x"):
        reason, text = lender.refused(lender.root / "data", at, "rw")
        assert reason in ("eperm", "ebusy") and ("writable only beneath /mnt/rw" in text or "would cover" in text), (at, text)


def test_files_and_scratch(lender):
    (lender.box.ws / "there").mkdir()
    (lender.box.ws / "file").write_text("mine\n")
    lender.up()
    lender.lend(lender.root / "data" / "f", "/tmp/a/b/f")
    lender.lend(lender.root / "data" / "f", "/workspace/file")
    lender.lend(lender.root / "data", "/workspace/there")
    lender.lend(lender.root / "data" / "sub", "/mnt/a")
    lender.lend(lender.root / "data", "/mnt/a b:c")
    assert lender.out("cat /tmp/a/b/f /workspace/file /workspace/there/f '/mnt/a b:c/f'") == 4 * "lent\n"
    assert (lender.box.ws / "file").read_text() == "mine\n" and not list((lender.box.ws / "there").iterdir())
    for at, reason, word in (("/workspace/no", "exdev", "made only beneath /mnt"), ("/nowhere", "exdev", "made only"),
                             ("/workspace/there", "ebusy", "cover another mount"), ("/mnt/a/none", "exdev", "made only"),
                             ("/tmp/a/b", "ebusy", "cover another mount"), ("/tmp/a/b/f/g", "enotdir", "folder")):
        told = lender.refused(lender.root / "data", at)
        assert told[0] == reason and word in told[1], (at, told)
    assert lender.refused(lender.root / "data" / "f", "/tmp/a")[0] == "ebusy"
    lender.sh("mkdir /tmp/folder; echo x > /tmp/plain")
    assert lender.refused(lender.root / "data" / "f", "/tmp/folder")[0] == "eisdir"
    assert lender.refused(lender.root / "data", "/tmp/plain")[0] == "enotdir"


@pytest.mark.parametrize("at", ["/", "/proc", "/proc/self", "/sys", "/dev", "/dev/shm", "/etc/ssl", "/usr", "/run/x", "/tmp",
                                "/workspace", "/mnt", "relative", "host", "/../..", "/lib/x"])
def test_places_that_are_taken(lender, at):
    lender.up()
    reason, text = lender.refused(lender.root / "data", at)
    assert reason in ("einval", "ebusy", "invalid"), (reason, text)
    assert lender.out("ls /usr/bin/env") == "/usr/bin/env\n"


def test_sources_that_are_never_lent(lender):
    base = lender.box.base
    outside = base / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret\n")
    (lender.root / "link").symlink_to(outside)
    (lender.root / "deep").symlink_to("../outside/secret")
    (lender.root / "within").symlink_to("data/sub")
    os.mkfifo(lender.root / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(lender.root / "s"))
    (base / "rooted").symlink_to(outside)
    (base / "later").mkdir()
    lender.up(roots=[lender.root, base / "later", lender.box.home, lender.box.runs, "/proc", "/etc"])
    (base / "later").rmdir()
    (base / "later").symlink_to(outside)
    for host, reason, word in (
            (outside, "eperm", "mount_roots"), (lender.root / "link", "eperm", "leads out"),
            (lender.root / "link" / "secret", "eperm", "leads out"), (lender.root / "deep", "eperm", "leads out"),
            (lender.root / ".." / "outside", "eperm", "mount_roots"), (base / "later" / "secret", "eperm", "symbolic link"),
            (lender.root / "fifo", "eperm", "socket, a device or a pipe"), (lender.root / "s", "eperm", "socket"),
            (lender.root / "none", "enoent", "none"), (lender.box.home, "eperm", "home directory"),
            (lender.box.runs, "eperm", "run root"), (next(lender.box.runs.glob("2*")), "eperm", "run root"),
            ("/proc/1", "eperm", "kernel"), ("/proc/self/root", "eperm", ""), ("/", "eperm", "mount_roots"),
            ("relative", "invalid", ""), (lender.box.ws, "eperm", "workspace")):
        told = lender.refused(host, "/mnt/x")
        assert (told[0] in (reason, "einval") if reason == "invalid" else told[0] == reason) and word in told[1], (host, told)
    assert lender.refused("/etc", "/mnt/rw/x", "rw")[1].endswith("mount it ro")
    lender.lend(lender.root / "within", "/mnt/within")
    assert lender.out("ls /mnt /mnt/within") == "/mnt:\nrw\nwithin\n\n/mnt/within:\n"
    listener.close()


def test_what_the_workspace_hides_and_protects(lender):
    ws = lender.box.ws
    for name in ("open", "keys", "a/b"):
        (ws / name).mkdir(parents=True)
    (ws / "keys" / "k.pem").write_text("secret\n")
    (ws / "a" / "b" / ".env").write_text("secret\n")
    (ws / "vault").mkdir()
    (ws / "vault" / "key").write_text("secret\n")
    (ws / ".git" / "hooks").mkdir(parents=True)
    lender.up("", roots=[lender.root, ws])
    lender.stay.down()
    policy = (f"version: 1\nworkspace: {{path: {ws}, mode: rw, hide: ['*.pem', .env, vault], protect: [.git/hooks, open/rules]}}\n"
              f"mount_roots: ['{ws}', '{lender.root}']\n")
    lender.stay.started(policy=policy)
    lender.client = lender.stay.client()
    for host, mode in ((ws / "keys", None), (ws / "keys" / "k.pem", None), (ws / "a", None), (ws / "a/b", None), (ws / "a/b/.env", None),
                       (ws / "vault", None), (ws / "vault" / "key", None), (ws, None), (ws / ".git", "rw"),
                       (ws / ".git" / "hooks", "rw"), (ws / "open", "rw")):
        told = lender.refused(host, "/mnt/rw/x", mode)
        assert told[0] == "eperm" and ("hide" in told[1] or "hidden" in told[1] or "protect" in told[1]), (host, told)
    for at in ("/workspace/vault", "/workspace/vault/key", "/workspace/keys/k.pem", "/workspace/.git/hooks", "/workspace/.git",
               "/workspace/.git/hooks/x", "/workspace/open/rules", "/workspace/open"):
        assert lender.refused(lender.root / "data", at)[0] in ("eperm", "ebusy"), at
    lender.lend(ws / "open", "/mnt/open")
    assert "secret" not in lender.out("find / -xdev -name '*.pem' 2>/dev/null; cat /workspace/keys/k.pem /workspace/vault/key 2>&1; true")


def test_links_of_a_program_inside(lender):
    """A mount point behind a link would be at a place of the program's choice."""
    lender.up()
    lender.sh("mkdir -p /tmp/d; ln -s /workspace /tmp/link; ln -s d /tmp/soft; ln -s /usr /workspace/usr")
    for at in ("/tmp/link", "/tmp/link/x", "/tmp/soft/x", "/workspace/usr", "/workspace/usr/lib"):
        reason, text = lender.refused(lender.root / "data", at)
        assert reason == "eloop" and "symbolic link" in text, (at, reason)
    assert not (lender.box.ws / "x").exists()


def swap(one, other, until):
    libc = ctypes.CDLL(None, use_errno=True)
    while not until.is_set():
        for _ in range(20):
            libc.syscall(316, -100, str(one).encode(), -100, str(other).encode(), RENAME_EXCHANGE)
        time.sleep(0.0005)


@pytest.mark.parametrize("place", ["last", "middle"])
def test_a_source_that_is_swapped_for_a_link(lender, place):
    """Each mount shows what lies in the root, or is refused; never what the link leads to."""
    outside = lender.box.base / "outside"
    (outside / "sub").mkdir(parents=True)
    (outside / "f").write_text("secret\n")
    (outside / "sub" / "g").write_text("secret\n")
    (lender.root / "data" / "sub" / "g").write_text("lent\n")
    (lender.root / "evil").symlink_to(outside)
    lender.up()
    until = threading.Event()
    attacker = threading.Thread(target=swap, args=(lender.root / "data", lender.root / "evil", until))
    attacker.start()
    told = []
    try:
        for i in range(300):
            told.append(lender.mount(lender.root / "data" / ("sub" if place == "middle" else ""), f"/mnt/m{i}")[0])
            if told.count("reply") == 8 and i >= 60:
                break
    finally:
        until.set()
        attacker.join()
    assert "reply" in told and "secret" not in lender.out("cat /mnt/m*/[fg] 2>&1; true")


def test_a_mount_point_that_is_swapped_for_a_link(lender):
    """What is mounted appears where it was asked for or not at all: not over /workspace."""
    lender.up()
    lender.client.send("call", 901, Atom("exec"), {"command": b"""
        mkdir -p /tmp/a; ln -s /workspace /tmp/b; echo go
        exec python3 -c 'import ctypes
while 1: ctypes.CDLL(None).syscall(316, -100, b"/tmp/a", -100, b"/tmp/b", 2)'"""})
    other = lender.stay.client()
    time.sleep(0.3)
    told = [lender.mount(lender.root / "data", f"/tmp/a/m{i}", client=other)[0] for i in range(40)]
    assert "reply" in told
    assert not list(lender.box.ws.glob("m*"))
    other.send("stop")


def test_the_record(lender):
    lender.up()
    lender.lend(lender.root / "data", "/mnt/data")
    lender.lend(lender.root / "data", "/mnt/rw/data", "rw")
    lender.refused(lender.root / "data", "/workspace/none")
    lender.refused("/etc", "/mnt/etc")
    lender.stay.down()
    result = lender.stay.last_result()
    late = [m for m in result["mounts"] if not m.get("workspace")]
    root = str(lender.root / "data")
    assert late == [{"host": root, "at": "/mnt/data", "mode": "ro"}, {"host": root, "at": "/mnt/rw/data", "mode": "rw"}]
    events = [json.loads(line) for line in (next(lender.box.runs.glob("2*")) / "logs" / "events.jsonl").read_text().splitlines()]
    grants = [e["payload"] for e in events if e["event"] == "Grant" and e["payload"]["where"].startswith("mount")]
    assert [(g["old"], g["now"]) for g in grants] == [
        ("", f"{root}:/mnt/data:ro"), ("", f"{root}:/mnt/rw/data:rw"),
        ("", f"{root}:/workspace/none:ro"), (f"{root}:/workspace/none:ro", "")]
    exited = [e for e in events if e["event"] == "RunExited"][0]["payload"]
    assert [m["at"] for m in exited["mounts"]] == ["/workspace", "/mnt/data", "/mnt/rw/data"]
    assert lender.box.cli("runs", "verify", result["run_id"]).status == 0


def test_their_number_is_bounded(lender):
    lender.up()
    for i in range(64):
        lender.lend(lender.root / "data", f"/mnt/m{i}")
    reason, text = lender.refused(lender.root / "data", "/mnt/more")
    assert reason == "e2big" and "64" in text


def test_a_policy_without_roots_lends_nothing(lender):
    lender.up(roots=[])
    reason, text = lender.refused(lender.root / "data", "/tmp/x")
    assert reason == "eperm" and "mount_roots" in text
    assert lender.sh("test -e /mnt")["exit_code"] == 1


@pytest.mark.parametrize("policy", [LANDLOCK, LOCAL], ids=["landlock", "local"])
def test_other_walls_say_so(lender, policy):
    flags = [] if "local" in policy else ["--backend", "landlock"]
    lender.stay.started(*flags, policy=policy + f"mount_roots: ['{lender.root}']\n")
    lender.client = lender.stay.client()
    assert "mount" not in lender.client.ready["verbs"]
    reason, text = lender.refused(lender.root / "data", "/mnt/x")
    assert reason == "not_supported" and "process wall" in text


def test_a_start_mount_may_lie_there_too(lender):
    lender.up(f"mounts: [{{host: '{lender.root}/data', at: /mnt/start}}]\n")
    assert lender.out("cat /mnt/start/f") == "lent\n"
    lender.lend(lender.root / "data", "/mnt/late")
    assert lender.refused(lender.root / "data", "/mnt/start")[0] == "ebusy"
    lender.stay.down()
    lender.up(f"mounts: [{{host: '{lender.root}/data', at: /mnt}}]\n")
    assert lender.out("cat /mnt/f; ls -d /mnt/rw 2>/dev/null; true") == "lent\n"
    assert lender.refused(lender.root / "data", "/mnt/rw/x", "rw")[0] == "eperm"


def test_the_command(lender):
    box = lender.box
    lender.up()
    env = {"XDG_RUNTIME_DIR": str(lender.stay.runtime)}
    os.symlink(lender.root, box.ws / "to")
    done = box.cli("mount", "t", "to/data:/mnt/rw/data:rw", env=env)
    assert (done.status, done.text, done.err) == (0, "", "")
    assert lender.out("cat /mnt/rw/data/f") == "lent\n"
    done = box.cli("mount", "t", "/etc:/mnt/etc", env=env)
    assert done.status == 1 and "mount_roots: [/etc]" in done.err, done
    for text in ("nothing", ":/mnt/x", "a:b"):
        done = box.cli("mount", "t", text, env=env)
        assert done.status in (1, 2) and "HOST:AT" in done.err, (done.status, done.err)


def test_nothing_is_left_of_it(lender):
    before = subprocess.run(["cat", "/proc/self/mountinfo"], capture_output=True, check=True).stdout
    lender.up()
    for i in range(8):
        lender.lend(lender.root / "data", f"/mnt/m{i}")
    assert subprocess.run(["cat", "/proc/self/mountinfo"], capture_output=True, check=True).stdout == before
    lender.stay.down()
    skeletons = list(lender.box.runs.glob(".roots/*/tree"))
    assert skeletons and all(not list((tree / "mnt").iterdir()) for tree in skeletons)


def test_the_sockets_of_sandboxes_are_never_lent(lender):
    """Whoever connects there as the caller is believed to be him: a command inside could lend itself more."""
    box, runtime = lender.box, lender.stay.runtime
    lender.up(roots=[box.base])
    for host, word in ((runtime / "caisson", "lies among the sockets"), (runtime, "contains the sockets"),
                       (runtime / "caisson" / "t.lock", "lies among the sockets")):
        for mode in (None, "rw"):
            reason, text = lender.refused(host, "/mnt/rw/x", mode)
            assert reason == "eperm" and word in text, text
    done = lender.stay.up("-m", f"{runtime}:/mnt/run", name="other")
    assert done.returncode == 125 and "contains the sockets of sandboxes that stay" in done.stderr, done
    done = lender.stay.up("-w", str(runtime / "caisson"), name="other")
    assert done.returncode == 125 and "lies among the sockets of sandboxes that stay" in done.stderr, done


@pytest.mark.parametrize("backend", ["process", "landlock"])
def test_a_workspace_does_not_show_them(stay, backend):
    """A user without XDG_RUNTIME_DIR has them beneath /tmp, where workspaces are too."""
    inside = stay.box.ws / "runtime"
    inside.mkdir(mode=0o700)
    stay.runtime = inside
    stay.started(policy=f"version: 1\ntier: auto\nbackend: {backend}\nworkspace: {{path: {stay.box.ws}, mode: rw}}\n")
    told = stay.client().sh("cat runtime/caisson/t.lock && echo read; python3 -c \"import socket as s\n"
                            "s.socket(s.AF_UNIX).connect('runtime/caisson/t.sock'); print('connected')\"")
    assert told["exit_code"] and not told["out"], told
    if backend == "process":  # landlock denies, and cannot cover
        assert stay.client().sh("ls -A runtime/caisson")["out"] == b""


def test_a_fork_has_what_its_origin_was_lent(lender):
    lender.up(mode="cow")
    lender.lend(lender.root / "data", "/mnt/data")
    lender.lend(lender.root / "data" / "sub", "/mnt/rw/deep/sub", "rw")
    frame, _, _ = lender.client.call("fork", 700, name=b"young")
    assert frame[0] == "reply", frame
    try:
        young = lender.stay.client("young")
        told = young.sh("cat /mnt/data/f; echo new > /mnt/rw/deep/sub/new; echo x > /mnt/data/x")
        assert told["out"] == b"lent\n" and (lender.root / "data" / "sub" / "new").read_text() == "new\n", told
        assert not (lender.root / "data" / "x").exists()
        assert [v["rule"] for v in told["violations"]] == [b"mounts: /mnt/data ro"], told
        more = young.call("mount", 2, host=str(lender.root / "data").encode(), at=b"/mnt/more")[0]
        assert more[0] == "reply" and young.sh("cat /mnt/more/f", 3)["out"] == b"lent\n", more
    finally:
        lender.stay.down("young")
    mounts = {mount["at"]: mount["mode"] for mount in lender.stay.last_result()["mounts"]}
    assert mounts["/mnt/data"] == "ro" and mounts["/mnt/rw/deep/sub"] == "rw", mounts
