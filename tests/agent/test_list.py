"""list: sorted by bytes, bounded, whatever the names are."""
import os
import socket
import time

import pytest
from speaker import Failed, fails

NAMES_MAX = 10000


def names(told):
    return [entry["name"] for entry in told["entries"]]


def test_entries(agent, ws):
    (ws / "b").write_bytes(b"abc")
    (ws / "a").mkdir()
    (ws / ".dot").symlink_to("nowhere")
    os.mkfifo(ws / "fifo")
    socket.socket(socket.AF_UNIX).bind(str(ws / "socket"))
    told = agent.call("list", path=".")
    assert told["truncated"] is False
    assert [(e["name"], e["type"]) for e in told["entries"]] == [
        (b".dot", "symlink"), (b"a", "directory"), (b"b", "file"), (b"fifo", "fifo"), (b"socket", "socket")]
    assert [e["size"] for e in told["entries"] if e["name"] in (b"b", b".dot")] == [7, 3]
    assert agent.call("list", path=str(ws)) == told


def test_empty(agent, ws):
    (ws / "d").mkdir()
    assert agent.call("list", path="d") == {"entries": [], "truncated": False}


def test_names_are_bytes(agent, ws):
    odd = sorted([b"\xff\xfe", b"new\nline", b" ", b"-rf", b"A", b"a", b"\x01", b"\xc3\xa4", b"z" * 255, b"...", b"*"])
    for name in odd:
        with open(os.fsencode(ws) + b"/" + name, "wb"):
            pass
    assert names(agent.call("list", path=".")) == odd


def test_link_to_a_folder(agent, ws):
    (ws / "d").mkdir()
    (ws / "d/f").touch()
    (ws / "l").symlink_to("d")
    assert names(agent.call("list", path="l")) == [b"f"]


@pytest.mark.parametrize("count", [NAMES_MAX, NAMES_MAX + 1, 15_000])
def test_many(agent, ws, count):
    every = [b"%07d" % (i * 7919 % 1_000_003) for i in range(count)]
    here = os.open(ws, os.O_RDONLY)
    for name in every:
        os.mknod(name, dir_fd=here)
    os.close(here)
    told = agent.call("list", path=".")
    assert names(told) == sorted(every)[:NAMES_MAX]
    assert told["truncated"] == (count > NAMES_MAX)


def test_others_do_not_wait(agent, ws):
    (ws / "d").mkdir()
    for i in range(10_000):
        (ws / "d" / ("%05d" % i + "n" * 240)).touch()
    refs = [agent.begin("list", path="d") for _ in range(6)]
    start = time.monotonic()
    agent.call("stat", path="d")
    waited = time.monotonic() - start
    for ref in refs:  # 2.9 MB each: more than the agent queues at once
        assert len(agent.end(ref)["entries"]) == 10_000
    assert waited < (time.monotonic() - start) / 2


def test_cancel(agent, ws):
    for i in range(5000):
        (ws / str(i)).touch()
    refs = [agent.begin("list", path=".") for _ in range(20)]
    for ref in refs:
        agent.send("cancel", ref)
    told = set()
    for ref in refs:
        try:
            agent.end(ref)
            told.add("ok")
        except Failed as failed:
            told.add(failed.reason)
    assert told <= {"ok", "cancelled"} and "cancelled" in told
    assert len(agent.call("list", path=".")["entries"]) == 5000


def test_while_it_changes(agent, ws):
    pid = os.fork()
    if pid == 0:
        try:
            while True:
                for i in range(300):
                    (ws / f"x{i}").touch()
                for i in range(300):
                    (ws / f"x{i}").unlink()
        finally:
            os._exit(0)
    try:
        (ws / "stays").touch()
        for _ in range(300):
            found = names(agent.call("list", path="."))
            assert b"stays" in found and found == sorted(found)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


@pytest.mark.parametrize("path, reason", [("f", "enotdir"), ("missing", "enoent"), ("..", "einval"), ("out", "einval"),
                                          ("loop", "eloop"), ("fifo", "enotdir"), ("", "invalid"), ("a\0", "invalid")])
def test_refused(agent, ws, path, reason):
    (ws / "f").touch()
    (ws / "out").symlink_to("/etc")
    (ws / "loop").symlink_to("loop")
    os.mkfifo(ws / "fifo")
    fails(agent, reason, "list", path=path)


def test_unreadable(agent, ws, who):
    (ws / "d").mkdir(mode=0o311)
    if who != "root":
        fails(agent, "eacces", "list", path="d")
    else:
        assert agent.call("list", path="d")["entries"] == []
