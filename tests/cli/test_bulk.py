"""Large files in and out of a sandbox that stays: every byte, beside other calls, with an end at any time."""
import hashlib
import os
import time

import pytest
from run_fixtures import *  # noqa: F403
from test_stay import stay  # noqa: F401
from test_stay import Atom
from test_verbs import outcome, sh  # noqa: F401

SIZE = 64 << 20
PIECE = 64 << 10
WINDOW = 256 << 10


def files(folder):
    """But for placeholders of protected names."""
    return sorted(name for name in os.listdir(folder) if name.startswith(".caisson-") or name[0] != ".")


def test_every_byte_there_and_back(sh):  # noqa: F811
    content = os.urandom(1 << 20) * (SIZE >> 20) + b"and a rest"
    sh("up", "w", "--rw")
    assert outcome(sh("write", "w", "large", input=content)) == (0, b"")
    digest = hashlib.sha256(content).hexdigest().encode()
    assert sh("exec", "w", "--", "sha256sum", "large").stdout.split()[0] == digest
    assert hashlib.sha256(sh("read", "w", "large").stdout).hexdigest().encode() == digest
    part = sh("read", "w", "large", "--offset", "4097", "--length", "3000001").stdout
    assert part == content[4097:3004098]
    assert (sh.box.ws / "large").stat().st_uid == sh.box.uid and files(sh.box.ws) == ["large"]


def test_scratch_that_is_full(sh):  # noqa: F811
    """Named, as of a small write; what was begun is gone, and the sandbox goes on."""
    sh("up", "w", "-l", "scratch=32MiB")
    done = sh("write", "w", "/tmp/large", "--json", input=bytes(SIZE))
    assert done.returncode == 1 and b"enospc" in done.stdout, done
    assert outcome(sh("exec", "w", "-c", "find /tmp -name '.caisson*' -o -name large"))[1] == b""
    assert outcome(sh("write", "w", "/tmp/small", input=bytes(10 << 20))) == (0, b"")


def test_calls_beside_a_bulk_read(stay):  # noqa: F811
    """On the same connection: output of a command lies between the pieces, and each keeps its order."""
    with open(stay.box.ws / "sparse", "wb") as file:
        file.truncate(1 << 40)
        file.seek(WINDOW)
        file.write(b"mark")
    client = stay.started().client()
    client.send("call", 1, Atom("read"), {"path": b"sparse"})
    client.send("call", 2, Atom("exec"), {"command": b"seq 200000"})
    read, printed, other = bytearray(), bytearray(), None
    while other is None or len(read) < 40 << 20:
        frame = client.frame()
        if frame[0] == "data":
            (read if frame[1] == 1 else printed).extend(frame[3])
            client.send("window", frame[1], len(frame[3]))
        else:
            assert frame[0] == "reply" and frame[1] == 2, frame
            other = frame[2]
    assert printed == b"".join(b"%d\n" % i for i in range(1, 200001)) and other["reason"] == "exited"
    assert read[WINDOW:WINDOW + 4] == b"mark" and read.count(0) == len(read) - 4
    before = time.monotonic()
    assert stay.client().sh("echo quick")["out"] == b"quick\n" and time.monotonic() - before < 3
    client.send("cancel", 1)
    assert client.answer(1, window=False)[0][2] == "cancelled"
    assert client.sh("echo here", 3)["out"] == b"here\n"


def test_a_reader_that_stops(stay):  # noqa: F811
    """He gets his window and no more; then he is gone, and so is his call."""
    (stay.box.ws / "large").write_bytes(os.urandom(4 << 20))
    slow = stay.started().client()
    slow.send("call", 1, Atom("read"), {"path": b"large"})
    time.sleep(0.3)
    assert stay.client().call("stat", path=b"large")[0][2]["size"] == 4 << 20
    got = b"".join(slow.frame()[3] for _ in range(WINDOW // PIECE))
    assert got == (stay.box.ws / "large").read_bytes()[:WINDOW]
    slow.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        slow.frame()
    slow.socket.close()
    assert stay.client().sh("echo here")["out"] == b"here\n"


def test_a_file_that_shrinks(stay):  # noqa: F811
    """Its size is what came, not what it was."""
    (stay.box.ws / "f").write_bytes(b"x" * (1 << 20))
    client = stay.started().client()
    client.send("call", 1, Atom("read"), {"path": b"f"})
    time.sleep(0.2)
    os.truncate(stay.box.ws / "f", 10)
    done, out, _ = client.answer(1)
    assert done[0] == "reply" and done[2]["size"] == len(out) and len(out) < 1 << 20
    assert client.sh("echo here", 2)["out"] == b"here\n"


def test_writers_who_stop_and_go(stay):  # noqa: F811
    """Pieces of all sizes keep their order; a writer that leaves in the middle leaves no file."""
    client = stay.started("--rw").client()
    client.send("call", 1, Atom("write"), {"path": b"f", "stdin": True})
    content, window = os.urandom(3 << 20), WINDOW
    at = 0
    for size in [PIECE, PIECE, 1, 5000, PIECE, PIECE - 1] * 100:
        while window < size:
            frame = client.frame()
            assert frame[0] == "window", frame
            window += frame[2]
        client.send("data", 1, Atom("stdin"), content[at:at + size])
        window -= len(content[at:at + size])
        at += size
        if at >= len(content):
            break
    client.send("data", 1, Atom("stdin"), Atom("eof"))
    assert client.answer(1)[0][0] == "reply" and (stay.box.ws / "f").read_bytes() == content
    client.send("call", 2, Atom("write"), {"path": b"g", "stdin": True})
    for _ in range(4):
        client.send("data", 2, Atom("stdin"), bytes(PIECE))
    client.socket.close()
    assert wait_for(lambda: files(stay.box.ws) == ["f"]), files(stay.box.ws)  # noqa: F405
    assert stay.client().sh("ls")["out"] == b"f\n"
