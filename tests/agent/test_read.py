"""read: what it says of files, and of what is none."""
import os
import socket
import time

import pytest
from etf import Atom
from speaker import WINDOW, Failed, fails

PIECE = 65536


@pytest.mark.parametrize("args, expected", [
    ({}, b"0123456789"),
    ({"offset": 3}, b"3456789"),
    ({"offset": 3, "length": 4}, b"3456"),
    ({"length": 0}, b""),
    ({"offset": 10}, b""),
    ({"offset": 99}, b""),
    ({"offset": 2**63 - 1}, b""),
    ({"offset": 2**63 - 1, "length": 2**63 - 1}, b""),
    ({"length": 2**63 - 1}, b"0123456789"),
])
def test_parts(agent, ws, args, expected):
    (ws / "f").write_bytes(b"0123456789")
    assert agent.call("read", path="f", **args) == {"bytes": expected, "size": len(expected)}


@pytest.mark.parametrize("name", [b"a b", b"new\nline", b"\xff\xfe", b"-rf", b"*", b"a\\b", b"x" * 255, b"..."])
def test_names_are_bytes(agent, ws, name):
    with open(os.fsencode(ws) + b"/" + name, "wb") as file:
        file.write(b"here")
    assert agent.call("read", path=name)["bytes"] == b"here"
    assert agent.call("read", path=os.fsencode(ws) + b"//./" + name)["bytes"] == b"here"


@pytest.mark.parametrize("size", [PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 17, 3 << 20])
def test_sizes(agent, ws, size):
    content = os.urandom(size)
    (ws / "f").write_bytes(content)
    reply = agent.call("read", path="f")
    assert reply["size"] == size and ("bytes" in reply) == (size <= PIECE)
    assert reply.get("bytes", reply.get("data")) == content


def test_streamed_part(agent, ws):
    content = os.urandom(1 << 20)
    (ws / "f").write_bytes(content)
    assert agent.call("read", path="f", offset=1000, length=200_000)["data"] == content[1000:201_000]


def test_empty(agent, ws):
    (ws / "f").touch()
    assert agent.call("read", path="f") == {"bytes": b"", "size": 0}


def test_file_without_a_size(agent):
    assert agent.call("read", path="/proc/self/status")["bytes"].startswith(b"Name:")


def test_links_are_followed(agent, ws):
    (ws / "d").mkdir()
    (ws / "d/f").write_bytes(b"x")
    (ws / "up").symlink_to("d")
    (ws / "d/link").symlink_to("../up/f")
    assert agent.call("read", path="up/link")["bytes"] == b"x"
    assert agent.call("read", path="d/../up/../d/./f")["bytes"] == b"x"


@pytest.mark.parametrize("path", ["..", "../secret", "d/../../secret", "out", "out_absolute", "in_absolute",
                                  "up/secret", "../ws/f", "d/up2/secret"])
def test_relative_paths_stay(agent, outside, ws, path):
    (outside / "secret").write_bytes(b"s")
    (ws / "d").mkdir()
    (ws / "f").touch()
    (ws / "out").symlink_to("../secret")
    (ws / "out_absolute").symlink_to(outside / "secret")
    (ws / "in_absolute").symlink_to(ws / "f")
    (ws / "up").symlink_to("..")
    (ws / "d/up2").symlink_to("../..")
    assert "absolute path" in fails(agent, "einval", "read", path=path)


@pytest.mark.parametrize("path", ["out", "out_absolute", "up/secret", "../secret", "d/../../secret"])
def test_absolute_paths_go_anywhere(agent, outside, ws, path):
    (outside / "secret").write_bytes(b"s")
    (ws / "d").mkdir()
    (ws / "out").symlink_to("../secret")
    (ws / "out_absolute").symlink_to(outside / "secret")
    (ws / "up").symlink_to("..")
    assert agent.call("read", path=f"{ws}/{path}")["bytes"] == b"s"
    assert agent.call("read", path=f"/../..{ws}/{path}")["bytes"] == b"s"


@pytest.mark.parametrize("path, reason", [
    ("missing", "enoent"), ("missing/f", "enoent"), ("f/x", "enotdir"), ("f/", "enotdir"), (".", "eisdir"),
    ("/", "eisdir"), ("d", "eisdir"), ("d/", "eisdir"), ("fifo", "einval"), ("socket", "einval"),
    ("/dev/null", "einval"), ("/dev/tty", "einval"), ("loop", "eloop"), ("loop/x", "eloop"), ("ring_a", "eloop"),
    ("dangling", "enoent"), ("x" * 256, "enametoolong"), ("d/" + "x" * 256 + "/f", "enametoolong"),
    ("/proc/self/fd/0", "eloop"), ("/proc/self/exe", "eloop"), ("/proc/self/cwd/etc/passwd", "eloop"),
    ("/proc/self/root/etc/passwd", "eloop"), ("proc_root/etc/passwd", "einval"),
])
def test_what_is_no_file(agent, ws, path, reason):
    (ws / "f").touch()
    (ws / "d").mkdir()
    os.mkfifo(ws / "fifo")
    socket.socket(socket.AF_UNIX).bind(str(ws / "socket"))
    (ws / "loop").symlink_to("loop")
    (ws / "ring_a").symlink_to("ring_b")
    (ws / "ring_b").symlink_to("ring_a")
    (ws / "dangling").symlink_to("nowhere")
    (ws / "proc_root").symlink_to("/proc/self/root")
    start = time.monotonic()
    if path == "/dev/tty":
        with pytest.raises(Failed):
            agent.call("read", path=path)
    else:
        assert fails(agent, reason, "read", path=path)
    assert time.monotonic() - start < 2


def test_chain_of_links(agent, ws):
    (ws / "l0").write_bytes(b"end")
    for i in range(60):
        (ws / f"l{i + 1}").symlink_to(f"l{i}")
    assert agent.call("read", path="l40")["bytes"] == b"end"
    fails(agent, "eloop", "read", path="l41")


def test_unreadable(agent, ws, who):
    (ws / "f").write_bytes(b"x")
    (ws / "f").chmod(0)
    (ws / "d").mkdir(mode=0)
    if who == "root":
        assert agent.call("read", path="f")["bytes"] == b"x"
        return
    assert str("f") in fails(agent, "eacces", "read", path="f")
    fails(agent, "eacces", "read", path="d/f")


@pytest.mark.parametrize("path", ["", "a\0b", "x/" * 2048])
def test_paths_out_of_bounds(agent, path):
    fails(agent, "invalid", "read", path=path)


def test_long_path(agent, ws):
    name, depth = "d" * 31, 100
    path = "/".join([name] * depth)
    (ws / path).mkdir(parents=True)
    (ws / path / "f").write_bytes(b"x")
    assert agent.call("read", path=path + "/f")["bytes"] == b"x"
    fails(agent, "enoent", "read", path="./" * 2045 + "nofil")


@pytest.mark.parametrize("args", [{}, {"path": 5}, {"path": Atom("f")}, {"path": "f", "offset": -1},
                                  {"path": "f", "offset": 2**63}, {"path": "f", "more": 1}, {"path": ["f"]}])
def test_bad_arguments(agent, args):
    fails(agent, "invalid", "read", **args)


def test_nothing_changes_between_look_and_open(agent, ws):
    """A name that is a file, a FIFO and a link out of the workspace in turn: never an answer from outside."""
    (ws / "f").write_bytes(b"inside")
    pid = os.fork()
    if pid == 0:
        try:
            while True:
                for make in (lambda: os.mkfifo(ws / "n"), lambda: os.symlink("/etc/passwd", ws / "n"),
                             lambda: os.link(ws / "f", ws / "n")):
                    make()
                    os.rename(ws / "n", ws / "x")
        finally:
            os._exit(0)
    try:
        seen = set()
        for _ in range(1500):
            try:
                assert agent.call("read", path="x")["bytes"] == b"inside"
                seen.add("ok")
            except Failed as failed:
                seen.add(failed.reason)
        assert seen <= {"ok", "einval", "enoent", "eloop"} and len(seen) > 1
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


# ---- streams -------------------------------------------------------------------------------------


def test_window_is_kept(agent, ws):
    (ws / "f").write_bytes(bytes(1 << 20))
    ref, got = agent.begin("read", path="f"), 0
    while (frame := agent.frame_of(ref, 0.3)) is not None:
        got += len(frame[3])
    assert got == WINDOW
    assert agent.call("stat", path="f")["size"] == 1 << 20  # nobody else waits
    before = agent.cpu_ms()
    time.sleep(0.4)
    assert agent.cpu_ms() - before < 100
    agent.send("window", ref, 1000)
    assert len(agent.frame_of(ref)[3]) == 1000
    agent.send("window", ref, WINDOW)
    reply = agent.end(ref)
    assert reply["size"] == 1 << 20 and len(reply["data"]) == (1 << 20) - WINDOW - 1000


def test_sparse_file_and_cancel(agent, ws):
    with open(ws / "f", "wb") as file:
        file.truncate(1 << 40)
    assert agent.call("read", path="f", offset=(1 << 40) - 5) == {"bytes": bytes(5), "size": 5}
    reply = agent.call("read", path="f", offset=1 << 39, length=1 << 20)
    assert reply["data"] == bytes(1 << 20)
    ref = agent.begin("read", path="f")
    assert agent.frame_of(ref)[0] == "data"
    agent.send("cancel", ref)
    with pytest.raises(Failed) as told:
        agent.end(ref, grants=False)
    assert told.value.reason == "cancelled"
    agent.send("window", ref, 1000)  # what crosses the answer is ignored
    agent.send("cancel", ref)
    agent.send("data", ref, Atom("stdin"), b"x")
    assert agent.call("stat", path="f")["size"] == 1 << 40


def test_streams_side_by_side(agent, ws):
    contents = [os.urandom(700_000) for _ in range(8)]
    for i, content in enumerate(contents):
        (ws / str(i)).write_bytes(content)
    refs = [agent.begin("read", path=str(i)) for i in range(8)]
    for ref, content in reversed(list(zip(refs, contents))):
        assert agent.end(ref)["data"] == content


def test_file_that_shrinks(agent, ws):
    (ws / "f").write_bytes(bytes(1 << 20))
    ref = agent.begin("read", path="f")
    assert agent.frame_of(ref)[0] == "data"
    time.sleep(0.2)
    os.truncate(ws / "f", 10)
    assert agent.end(ref)["size"] == WINDOW


def test_ref_in_use_and_too_many(agent, ws):
    (ws / "f").write_bytes(bytes(1 << 20))
    refs = [agent.begin("read", path="f") for _ in range(64)]
    agent.send("call", refs[0], Atom("stat"), {"path": b"f"})
    with pytest.raises(Failed) as told:
        agent.end(refs[0], grants=False)
    assert told.value.reason == "invalid" and "in use" in told.value.detail
    fails(agent, "eagain", "read", path="f")
    for ref in refs:
        agent.send("cancel", ref)
    assert agent.call("read", path="f", length=1)["bytes"] == b"\0"


def test_reader_that_is_gone(start, ws):
    (ws / "f").write_bytes(bytes(1 << 20))
    speaker = start()
    for _ in range(20):
        speaker.begin("read", path="f")
    speaker.stream.close()
    assert speaker.process.wait(10) in (0, 1)
