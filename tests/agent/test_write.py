"""write: whole or not at all, whatever is in the way."""
import os
import socket
import subprocess
import time

import pytest
from etf import Atom
from speaker import Failed, fails


@pytest.fixture(params=["bytes", "stdin"])
def write(request, agent):
    """write(path, content, …) in one call, or streamed."""
    def call(path, content, **more):
        if request.param == "bytes":
            return agent.call("write", path=path, bytes=content, **more)
        ref = agent.begin("write", path=path, stdin=True, **more)
        agent.feed(ref, content)
        return agent.end(ref)
    return call


def refused(write, reason, *args, **more):
    with pytest.raises(Failed) as told:
        write(*args, **more)
    assert told.value.reason == reason, told.value
    return told.value.detail


def left(ws):
    """Temporary files beneath it."""
    return [name for _, _, names in os.walk(ws) for name in names if name.startswith(".caisson-")]


def mode(path):
    return os.stat(path).st_mode & 0o7777


@pytest.fixture
def small(ws, mount):
    """A file system of 64 KiB in the workspace."""
    (ws / "small").mkdir()
    mount("-t", "tmpfs", "-o", "size=64k,mode=1777", "none", ws / "small")
    return ws / "small"


@pytest.mark.parametrize("content", [b"", b"x", b"a\0b\r\n\xff", b"xyz\n" * 16384], ids=len)
def test_new_file(write, ws, uid, content):
    assert write("f", content) == {}
    assert (ws / "f").read_bytes() == content
    assert mode(ws / "f") == 0o644 and os.stat(ws / "f").st_uid == uid
    assert not left(ws)


@pytest.mark.parametrize("path", ["a/b/c/f", "./a/./b//c/f", "d/../a/b/c/f", "link/../a/b/c/f"])
def test_parents(write, ws, own, path):
    (ws / "d").mkdir()
    (ws / "link").symlink_to("d")
    write(path, b"x")
    assert (ws / "a/b/c/f").read_bytes() == b"x"
    assert [mode(ws / name) for name in ("a", "a/b", "a/b/c")] == [0o755] * 3


def test_absolute_parents(write, outside):
    write(f"{outside}/new/f", b"x")
    assert (outside / "new/f").read_bytes() == b"x"


def test_long_new_path(write, ws):
    path = "/".join(["d" * 31] * 100)
    write(path + "/f", b"x")
    assert (ws / path / "f").read_bytes() == b"x"


@pytest.mark.parametrize("old, given, now", [(None, 0o600, 0o600), (0o600, None, 0o600), (0o755, None, 0o755),
                                             (0o755, 0o640, 0o640), (0o444, None, 0o444), (0o4755, None, 0o755),
                                             (None, 0o2755, 0o2755), (0o644, 0, 0)])
def test_modes(write, ws, own, old, given, now):
    if old is not None:
        (ws / "f").write_bytes(b"old")
        own(ws / "f")
        (ws / "f").chmod(old)
    write("f", b"new", **({} if given is None else {"mode": given}))
    assert mode(ws / "f") == now
    (ws / "f").chmod(0o644)
    assert (ws / "f").read_bytes() == b"new"


def test_owner_stays(write, ws, who):
    if who != "root":
        pytest.skip("root: to give files away")
    (ws / "f").touch()
    os.chown(ws / "f", 1234, 5678)
    write("f", b"new")
    assert (os.stat(ws / "f").st_uid, os.stat(ws / "f").st_gid, mode(ws / "f")) == (1234, 5678, 0o644)


def test_replaces_and_leaves_hard_links(write, ws):
    (ws / "f").write_bytes(b"old")
    os.link(ws / "f", ws / "g")
    with open(ws / "f", "rb") as reader:
        write("f", b"new")
        assert reader.read() == b"old"
    assert (ws / "f").read_bytes() == b"new" and (ws / "g").read_bytes() == b"old"


@pytest.mark.parametrize("link, target, file", [("l", "f", "f"), ("l", "d/f", "d/f"), ("d/l", "../f", "f"),
                                                ("l", "new", "new"), ("l", "new/f", "new/f")])
def test_links_stay_links(write, ws, own, link, target, file):
    (ws / "d").mkdir()
    own(ws / "d")
    (ws / "f").write_bytes(b"old")
    (ws / link).symlink_to(target)
    write(link, b"new")
    assert (ws / file).read_bytes() == b"new"
    assert os.readlink(ws / link) == target


@pytest.mark.parametrize("path, reason", [
    ("d", "eisdir"), ("d/", "eisdir"), ("f/", "eisdir"), (".", "eisdir"), ("..", "eisdir"), ("/", "eisdir"),
    ("f/x", "enotdir"), ("fifo", "einval"), ("socket", "einval"), ("/dev/null", "einval"), ("to_d", "eisdir"),
    ("loop", "eloop"), ("loop/x", "eloop"), ("../x", "einval"), ("d/../../x", "einval"), ("out", "einval"),
    ("up/x", "einval"), ("out_absolute", "einval"), ("missing/../x", "enoent"), ("missing/../../x", "enoent"),
    ("x" * 256, "enametoolong"), ("x" * 256 + "/f", "enametoolong"), ("/proc/self/root/tmp/x", "eloop"),
    ("/proc/nothing", "*"), ("/sys/x", "*"), ("/dev/full", "einval"),
])
def test_refused(write, outside, ws, path, reason):
    (ws / "d").mkdir()
    (ws / "f").write_bytes(b"old")
    os.mkfifo(ws / "fifo")
    socket.socket(socket.AF_UNIX).bind(str(ws / "socket"))
    for name, target in (("loop", "loop"), ("out", "../x"), ("up", ".."), ("to_d", "d"), ("out_absolute", outside / "x")):
        (ws / name).symlink_to(target)
    before = sorted(os.listdir(ws))
    with pytest.raises(Failed) as told:
        write(path, b"new")
    assert told.value.reason == reason or reason == "*" and told.value.reason in ("eacces", "enoent", "eperm", "erofs")
    assert told.value.detail and (ws / "f").read_bytes() == b"old"
    assert sorted(os.listdir(ws)) == before and not (outside / "x").exists() and not left(outside)


def test_unwritable_folder(write, ws, who):
    (ws / "d").mkdir(mode=0o555)
    if who == "root":
        write("d/f", b"x")
        return
    refused(write, "eacces", "d/f", b"x")
    refused(write, "eacces", "d/new/f", b"x")
    refused(write, "eacces", "/caisson-test", b"x")


def test_full_disk(write, small, ws):
    (small / "f").write_bytes(b"old")
    (small / "fill").write_bytes(bytes(40_000))
    refused(write, "enospc", "small/f", bytes(60_000))
    assert (small / "f").read_bytes() == b"old" and not left(ws)


def test_full_while_streaming(agent, small, ws):
    ref = agent.begin("write", path="small/f", stdin=True)
    with pytest.raises(Failed) as told:
        agent.feed(ref, bytes(1 << 20))
        agent.end(ref)
    assert told.value.reason == "enospc"
    assert os.listdir(small) == []
    agent.send("data", ref, Atom("stdin"), b"late")
    agent.call("write", path="f", bytes=b"x")


def test_read_only_and_mounted(write, ws, own, mount):
    for name in ("ro", "rw"):
        (ws / name).mkdir()
        own(ws / name)
    for name in ("a", "b"):
        (ws / name).write_bytes(b"old")
    mount("--bind", ws / "ro", ws / "ro")
    mount("--bind", ws / "a", ws / "b")
    subprocess.run(["mount", "-o", "remount,bind,ro", ws / "ro"], check=True)
    refused(write, "erofs", "ro/f", b"x")
    refused(write, "erofs", "ro/new/f", b"x")
    assert "mounted" in refused(write, "ebusy", "b", b"new")
    assert (ws / "a").read_bytes() == b"old"


def test_larger_than_the_limit_of_files(start, ws):
    agent = start(prelude="ulimit -f 200")
    ref = agent.begin("write", path="f", stdin=True)
    with pytest.raises(Failed) as told:
        agent.feed(ref, bytes(1 << 20))
    assert told.value.reason == "efbig"
    assert not os.listdir(ws)
    agent.call("write", path="f", bytes=b"x")


@pytest.mark.parametrize("args", [{}, {"bytes": b"x", "stdin": True}, {"stdin": False}])
def test_either_or(agent, args):
    fails(agent, "einval", "write", path="f", **args)


@pytest.mark.parametrize("args", [{"bytes": b"x", "mode": 0o10000}, {"bytes": bytes(65537)}, {"bytes": 5},
                                  {"bytes": b"x", "append": True}])
def test_bad_arguments(agent, ws, args):
    fails(agent, "invalid", "write", path="f", **args)
    assert not os.listdir(ws)


def test_cancel(agent, ws):
    (ws / "f").write_bytes(b"old")
    ref = agent.begin("write", path="f", stdin=True)
    agent.send("data", ref, Atom("stdin"), b"new")
    assert agent.frame_of(ref)[0] == "window"
    assert len(left(ws)) == 1
    agent.send("window", ref, 5)  # has nothing to do with it
    agent.send("cancel", ref)
    with pytest.raises(Failed) as told:
        agent.end(ref)
    assert told.value.reason == "cancelled"
    assert os.listdir(ws) == ["f"] and (ws / "f").read_bytes() == b"old"


@pytest.mark.parametrize("how", ["closed", "stop", "nonsense"])
def test_nothing_is_left_at_the_end(agent, ws, how):
    ref = agent.begin("write", path="f", stdin=True)
    agent.send("data", ref, Atom("stdin"), b"x")
    assert agent.frame_of(ref)[0] == "window"
    if how == "closed":
        agent.stream.shutdown(socket.SHUT_RDWR)
    elif how == "stop":
        agent.send("stop")
    else:
        agent.stream.sendall(b"\0\0\0\1x")
    agent.process.wait(10)
    assert os.listdir(ws) == []


def test_large(agent, ws):
    content = os.urandom(20 << 20)
    ref = agent.begin("write", path="f", stdin=True)
    agent.feed(ref, content)
    assert agent.end(ref) == {} and (ws / "f").read_bytes() == content


def test_readers_see_old_or_new(agent, ws):
    """A reader that opens it all the time never sees a part."""
    (ws / "f").write_bytes(b"0" * 50_000)
    pid = os.fork()
    if pid == 0:
        try:
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                content = (ws / "f").read_bytes()
                if len(content) != 50_000 or len(set(content)) != 1:
                    os._exit(1)
            os._exit(0)
        finally:
            os._exit(2)
    for i in range(300):
        agent.call("write", path="f", bytes=b"%d" % (i % 10) * 50_000)
    assert os.waitpid(pid, 0)[1] == 0


def test_never_outside(agent, outside, ws):
    """The folder is swapped with a link that leads out, again and again."""
    (outside / "target").mkdir()
    os.chmod(outside / "target", 0o777)
    (ws / "a").mkdir()
    os.chmod(ws / "a", 0o777)
    (ws / "l").symlink_to("../target")
    pid = os.fork()
    if pid == 0:
        try:
            while True:
                os.rename(ws / "a", ws / "x")
                os.rename(ws / "l", ws / "a")
                os.rename(ws / "a", ws / "l")
                os.rename(ws / "x", ws / "a")
        finally:
            os._exit(0)
    told = set()
    try:
        for i in range(1500):
            try:
                agent.call("write", path=f"a/f{i % 7}", bytes=b"x")
                told.add("ok")
            except Failed as failed:
                told.add(failed.reason)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    assert os.listdir(outside / "target") == []
    assert "ok" in told and told <= {"ok", "einval", "enoent", "eexist", "enotdir", "eisdir", "eacces"}, told
