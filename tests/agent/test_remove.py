"""remove: what it was told to, and nothing else."""
import ctypes
import os
import signal
import socket
import subprocess
import time

import pytest
from speaker import Failed, fails


@pytest.fixture
def tree(ws, own):
    """tree("a/b/", "a/f") makes directories and files of the agent's user."""
    def make(*paths):
        for path in paths:
            if path.endswith("/"):
                (ws / path).mkdir(parents=True, exist_ok=True)
            else:
                (ws / path).parent.mkdir(parents=True, exist_ok=True)
                (ws / path).write_bytes(b"x")
        for folder, folders, files in os.walk(ws):
            for name in folders + files:
                own(os.path.join(folder, name))
    return make


@pytest.mark.parametrize("path", ["f", "./d/../f", "link", "out", "dangling", "fifo", "socket", "empty", "empty/", "loop"])
@pytest.mark.parametrize("more", [{}, {"recursive": True}])
def test_one(agent, outside, ws, tree, path, more):
    tree("f", "empty/", "d/g")
    (outside / "kept").write_bytes(b"x")
    for name, target in (("link", "d"), ("out", "../kept"), ("dangling", "x"), ("loop", "loop")):
        (ws / name).symlink_to(target)
    os.mkfifo(ws / "fifo")
    socket.socket(socket.AF_UNIX).bind(str(ws / "socket"))
    before = set(os.listdir(ws))
    assert agent.call("remove", path=path, **more) == {}
    assert before - set(os.listdir(ws)) == {path.strip("/.").split("/")[-1]}
    assert (ws / "d/g").exists() and (outside / "kept").exists()


@pytest.mark.parametrize("path", ["d", "d/", "./d", "e/../d"])
def test_recursive(agent, outside, ws, tree, path):
    (outside / "kept").mkdir()
    (outside / "kept/f").write_bytes(b"x")
    tree("d/a/b/c/", "d/a/b/f", "d/a/g", "d/empty/", "e/", *(f"d/many/{i}" for i in range(1500)),
         *(f"d/folders/{i}/f" for i in range(300)))
    (ws / "d/a/out").symlink_to(outside / "kept")
    (ws / "d/a/b/up").symlink_to("../../..")
    os.mkfifo(ws / "d/fifo")
    assert agent.call("remove", path=path, recursive=True) == {}
    assert os.listdir(ws) == ["e"] and (outside / "kept/f").exists()


def test_deep(agent, ws, uid):
    """Deeper than any path may be long."""
    depth, name = 3000, "d" * 20
    here = os.open(ws, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
        os.fchown(here, uid, -1)
    os.close(here)
    assert agent.call("remove", path=name, recursive=True) == {}
    assert os.listdir(ws) == []


@pytest.mark.parametrize("path, reason", [
    ("missing", "enoent"), ("d", "enotempty"), ("d/", "enotempty"), ("f/", "enotdir"), ("link/", "enotdir"),
    ("f/x", "enotdir"), (".", "ebusy"), ("./", "ebusy"), ("..", "ebusy"), ("/", "ebusy"), ("d/..", "ebusy"),
    ("../x", "einval"), ("up/x", "einval"), ("/..", "ebusy"), ("loop/x", "eloop"), ("x" * 256, "enametoolong"),
    ("/proc/self/cwd/x", "eloop"), ("", "invalid"), ("a\0b", "invalid"),
])
def test_refused(agent, ws, tree, path, reason):
    tree("d/f", "f")
    (ws / "link").symlink_to("d")
    (ws / "up").symlink_to("..")
    (ws / "loop").symlink_to("loop")
    before = sorted(os.listdir(ws))
    assert fails(agent, reason, "remove", path=path)
    if reason != "enotempty":
        fails(agent, reason, "remove", path=path, recursive=True)
    assert sorted(os.listdir(ws)) == before and (ws / "d/f").exists()


def test_workspace(agent, outside, ws, tree):
    tree("d/f")
    for path in (ws, f"{ws}/", f"{ws}/d/../../ws"):
        fails(agent, "ebusy", "remove", path=str(path), recursive=True)
    (outside / "other").mkdir(mode=0o777)
    assert "workspace" in fails(agent, "ebusy", "remove", path=str(outside), recursive=True)
    assert (ws / "d/f").exists()


def test_mounts_are_not_emptied(agent, ws, tree, mount):
    tree("source/precious", "d/mounted/", "d/file", "file", "e/f/")
    mount("--bind", ws / "source", ws / "d/mounted")
    mount("--bind", ws / "file", ws / "d/file")
    for path in ("d/mounted", "d/file", "d"):
        assert "mount point" in fails(agent, "ebusy", "remove", path=path, recursive=True)
    assert "mount point" in fails(agent, "ebusy", "remove", path="d/file")
    assert (ws / "source/precious").exists() and (ws / "d/mounted/precious").exists()


def test_rights(agent, ws, tree, who):
    tree("d/locked/f", "d/g")
    (ws / "d/locked").chmod(0o500)
    if who == "root":
        assert agent.call("remove", path="d", recursive=True) == {}
        return
    assert "f" in fails(agent, "eacces", "remove", path="d", recursive=True)
    assert (ws / "d/locked/f").exists()
    (ws / "d/locked").chmod(0)
    assert "locked" in fails(agent, "eacces", "remove", path="d", recursive=True)
    (ws / "d/locked").chmod(0o700)


def test_others_do_not_wait(agent, ws, tree):
    tree(*(f"d{n}/{i}" for n in range(4) for i in range(3000)))
    refs = [agent.begin("remove", path=f"d{n}", recursive=True) for n in range(4)]
    start = time.monotonic()
    agent.call("stat", path=".")
    waited = time.monotonic() - start
    for ref in refs:
        agent.end(ref)
    assert waited < (time.monotonic() - start) / 2 and os.listdir(ws) == []


def test_cancel(agent, ws, tree):
    tree(*(f"d/{i}" for i in range(5000)))
    ref = agent.begin("remove", path="d", recursive=True)
    agent.send("cancel", ref)
    try:
        agent.end(ref)
    except Failed as failed:
        assert failed.reason == "cancelled"
    agent.call("stat", path=".")


def until(claim):
    end = time.monotonic() + 10
    while not claim():
        assert time.monotonic() < end
        time.sleep(0.0005)


def test_moved_out_while_removed(agent, outside, ws, tree):
    """The directory that we are in is moved beside others' files: those are not ours to remove."""
    (outside / "kept").mkdir()
    (outside / "kept").chmod(0o777)
    for i in range(20):
        (outside / f"kept/f{i}").write_bytes(b"x")
    tree(*(f"d/a/{i}" for i in range(20_000)))
    ref = agent.begin("remove", path="d", recursive=True)
    until(lambda: len(os.listdir(ws / "d/a")) < 20_000)
    os.kill(agent.process.pid, signal.SIGSTOP)
    assert os.listdir(ws / "d/a")
    os.rename(ws / "d/a", outside / "kept/a")
    os.kill(agent.process.pid, signal.SIGCONT)
    assert agent.end(ref) == {}
    assert set(os.listdir(outside / "kept")) == {"a"} | {f"f{i}" for i in range(20)}
    assert not (ws / "d").exists()


def test_links_swapped_in(agent, outside, ws, tree):
    """A directory and a link to others' files change places all the time."""
    (outside / "kept").mkdir()
    (outside / "kept").chmod(0o777)
    for i in range(50):
        (outside / f"kept/f{i}").write_bytes(b"x")
    exchange, here = ctypes.CDLL(None).renameat2, -100
    for _ in range(60):
        tree("d/7/f")
        (ws / "l").unlink(missing_ok=True)
        (ws / "l").symlink_to(outside / "kept")
        pid = os.fork()
        if pid == 0:
            link, folder = os.fsencode(ws / "l"), os.fsencode(ws / "d/7")
            try:
                while True:
                    exchange(here, link, here, folder, 2)
            finally:
                os._exit(0)
        until((ws / "d/7").is_symlink)
        try:
            agent.call("remove", path="d", recursive=True)
        except Failed as failed:
            assert failed.reason in ("estale", "enotdir", "enoent", "eloop"), failed
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        assert len(os.listdir(outside / "kept")) == 50
        subprocess.run(["rm", "-rf", ws / "d", ws / "l"], check=True)


def test_filled_while_removed(agent, ws, tree):
    tree("d/e/f")
    os.chmod(ws / "d", 0o777)
    end = time.monotonic() + 0.5
    pid = os.fork()
    if pid == 0:
        try:
            i = 0
            while time.monotonic() < end:
                try:
                    i += 1
                    (ws / f"d/{i}").touch()
                except OSError:
                    break
        finally:
            os._exit(0)
    assert agent.call("remove", path="d", recursive=True) == {}
    os.waitpid(pid, 0)
    assert not (ws / "d").exists()
