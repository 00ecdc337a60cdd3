"""stat: of whatever there is, links not followed."""
import os
import socket

import pytest
from speaker import fails


@pytest.mark.parametrize("name, kind", [("f", "file"), ("d", "directory"), ("link", "symlink"), ("out", "symlink"),
                                        ("fifo", "fifo"), ("socket", "socket"), ("/dev/null", "device"),
                                        (".", "directory"), ("/", "directory"), ("link/", "directory")])
def test_stat(agent, ws, name, kind):
    (ws / "f").write_bytes(b"abc")
    (ws / "f").chmod(0o640)
    os.utime(ws / "f", ns=(0, 1_234_567_890_123_456_789))
    (ws / "d").mkdir()
    (ws / "link").symlink_to("d")
    (ws / "out").symlink_to("/etc/passwd")
    os.mkfifo(ws / "fifo")
    socket.socket(socket.AF_UNIX).bind(str(ws / "socket"))
    told = agent.call("stat", path=name)
    assert told["type"] == kind
    assert told.get("target") == {"link": b"d", "out": b"/etc/passwd"}.get(name)
    if name == "f":
        assert told == {"type": "file", "size": 3, "mode": 0o640, "mtime_ms": 1_234_567_890_123}


def test_stat_before_1970(agent, ws):
    (ws / "f").touch()
    os.utime(ws / "f", (-100, -100))
    assert agent.call("stat", path="f")["mtime_ms"] == 0


@pytest.mark.parametrize("path, reason", [("missing", "enoent"), ("../x", "einval"), ("/proc/self/fd/0/x", "eloop"),
                                          ("loop/x", "eloop")])
def test_stat_fails(agent, ws, path, reason):
    (ws / "loop").symlink_to("loop")
    fails(agent, reason, "stat", path=path)


def test_stat_of_a_missing_workspace(start, outside):
    speaker = start(workspace=outside / "none")
    fails(speaker, "enoent", "stat", path="f")
    assert speaker.call("stat", path="/")["type"] == "directory"
