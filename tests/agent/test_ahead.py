"""An agent that was prepared ahead: without a whole order it serves nobody, and says why."""
import ctypes
import os
import socket
import struct
import subprocess

import pytest

import etf

ORDER, FAILURE = 10, 11
ABI = 1


def rule(path, grant=1, size=None):
    return struct.pack("II", len(path) if size is None else size, grant) + path


def order(*rules, abi=ABI, count=None):
    return struct.pack("II", abi, len(rules) if count is None else count) + b"".join(rules)


def run(program, ws, data):
    """(status, what it said as a frame stream, stage of its failure)."""
    ours, theirs = socket.socketpair()
    reader, writer = os.pipe()
    fds = {ORDER: theirs.fileno(), FAILURE: writer}

    def arrange():
        null = os.open("/dev/null", os.O_RDWR)
        for fd in range(2, 9):
            os.dup2(null, fd)
        kept = {at: os.dup2(fd, 50 + at) for at, fd in fds.items()}
        for at, fd in kept.items():
            os.dup2(fd, at)
        os.closerange(12, 100)
        ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, as behind any wall

    init = etf.encode((etf.Atom("init"), {"workspace": os.fsencode(ws), "profile": b"none"}))
    process = subprocess.Popen([program, "--ahead"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=arrange, close_fds=False)
    theirs.close()
    os.close(writer)
    with ours:
        assert ours.recv(1) == b"w"
        ours.sendall(data)
        ours.shutdown(socket.SHUT_WR)
        out, _ = process.communicate(struct.pack(">I", len(init)) + init, timeout=20)
    with open(reader, "rb") as file:
        failure = file.read()
    return process.returncode, out, failure[4:36].rstrip(b"\0").decode()


@pytest.mark.parametrize("data, stage", [
    (b"", "order"), (b"abc", "order"), (order(count=1), "landlock"), (order(rule(b"/\0", size=0)), "landlock"),
    (order(rule(b"/", size=1)), "landlock"), (order(rule(b"/\0", grant=99)), "landlock"), (order(rule(b"x" * 4096 + b"\0")), "landlock"),
    (order(rule(b"/\0", size=9)), "landlock"), (order(rule(b"/\0"), count=2), "landlock")])
def test_without_a_whole_order_nothing_is_served(program, outside, data, stage):
    status, out, said = run(program, outside / "ws", data)
    assert (status, out, said) == (1, b"", stage)


def test_with_one_it_serves(program, outside):
    status, out, said = run(program, outside / "ws", order(rule(b"/\0"), rule(b"/nowhere\0")))
    assert said == "" and b"ready" in out
