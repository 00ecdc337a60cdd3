"""edit: exactly once, byte for byte."""
import os
import time

import pytest
from speaker import Failed, fails

MIB = 1 << 20


@pytest.mark.parametrize("text, old, new, count, now", [
    (b"one two three", b"two", b"2", 1, b"one 2 three"),
    (b"one two three", b"one", b"", 1, b" two three"),
    (b"one two three", b"three", b"four five", 1, b"one two four five"),
    (b"one", b"one", b"two", 1, b"two"),
    (b"one", b"one", b"", 1, b""),
    (b"one two", b"one", b"one", 1, b"one two"),
    (b"one", b"four", b"x", 0, None),
    (b"one", b"one ", b"x", 0, None),
    (b"", b"x", b"y", 0, None),
    (b"a b a", b"a", b"x", 2, None),
    (b"aaa", b"aa", b"x", 2, None),
    (b"aaaa", b"aa", b"x", 3, None),
    (b"ababa", b"aba", b"x", 2, None),
    (b"aab", b"ab", b"x", 1, b"ax"),
    (b"aabaaab", b"aaab", b"x", 1, b"aabx"),
    (b"a\r\nb\r\n", b"b\r\n", b"c\r\n", 1, b"a\r\nc\r\n"),
    (b"a\r\nb\r\n", b"a\nb", b"x", 0, None),
    (b"\xef\xbb\xbfhead\n", b"head", b"tail", 1, b"\xef\xbb\xbftail\n"),
    (b"\0\xff\0", b"\xff", b"\xfe\0", 1, b"\0\xfe\0\0"),
    ("naïve".encode(), "ï".encode(), b"i", 1, b"naive"),
    (b"no newline at the end", b"end", b"END", 1, b"no newline at the END"),
])
def test_texts(agent, ws, own, text, old, new, count, now):
    (ws / "f").write_bytes(text)
    (ws / "f").chmod(0o751)
    own(ws / "f")
    inode = os.stat(ws / "f").st_ino
    told = agent.call("edit", path="f", old=old, new=new)
    assert told == {"occurrences": count, "content": text if now is None else now}
    assert (ws / "f").read_bytes() == told["content"]
    assert os.stat(ws / "f").st_mode & 0o7777 == 0o751
    assert (os.stat(ws / "f").st_ino == inode) == (count != 1)
    assert os.listdir(ws) == ["f"]


@pytest.mark.parametrize("at", [0, MIB - 3, MIB, 5 * MIB + 1, 15 * MIB])
def test_large_file(agent, ws, at):
    content = bytearray(os.urandom(15 * MIB + 100))
    content[at:at + 6] = b"needle"
    (ws / "f").write_bytes(content)
    assert agent.call("edit", path="f", old=b"needle", new=b"thread!") == {"occurrences": 1}
    content[at:at + 6] = b"thread!"
    assert (ws / "f").read_bytes() == content


@pytest.mark.parametrize("size, shown", [(MIB, True), (MIB + 1, False)])
def test_content_that_fits(agent, ws, size, shown):
    (ws / "f").write_bytes(b"x" + bytes(size - 1))
    told = agent.call("edit", path="f", old=b"x", new=b"y")
    assert told["occurrences"] == 1 and ("content" in told) == shown


def test_largest_texts(agent, ws):
    old, new = b"a" * (MIB - 1) + b"b", b"c" * MIB
    (ws / "f").write_bytes(b"a" * (8 * MIB) + b"b")
    start = time.monotonic()
    assert agent.call("edit", path="f", old=old, new=new) == {"occurrences": 1}
    assert time.monotonic() - start < 5
    assert (ws / "f").read_bytes() == b"a" * (7 * MIB + 1) + new


def test_many_occurrences(agent, ws):
    (ws / "f").write_bytes(b"a" * (16 * MIB))
    start = time.monotonic()
    assert agent.call("edit", path="f", old=b"a" * 1000, new=b"") == {"occurrences": 16 * MIB - 999}
    assert time.monotonic() - start < 5


def test_too_large(agent, ws):
    with open(ws / "f", "wb") as file:
        file.truncate(16 * MIB + 1)
    assert "16 MiB" in fails(agent, "efbig", "edit", path="f", old=b"x", new=b"y")


def test_others_do_not_wait(agent, ws):
    (ws / "f").write_bytes(bytes(15 * MIB))
    refs = [agent.begin("edit", path="f", old=b"x", new=b"y") for _ in range(8)]
    start = time.monotonic()
    agent.call("stat", path="f")
    waited = time.monotonic() - start
    for ref in refs:
        assert agent.end(ref) == {"occurrences": 0}
    assert waited < (time.monotonic() - start) / 3
    assert agent.peak_bytes() < 80 * MIB  # two files at once, whoever asks for more


def test_link_stays(agent, ws):
    (ws / "f").write_bytes(b"old")
    (ws / "l").symlink_to("f")
    agent.call("edit", path="l", old=b"old", new=b"new")
    assert os.readlink(ws / "l") == "f" and (ws / "f").read_bytes() == b"new"


@pytest.mark.parametrize("path, reason", [("missing", "enoent"), ("d", "eisdir"), ("fifo", "einval"), ("../x", "einval"),
                                          ("out", "einval"), ("loop", "eloop"), ("/dev/null", "einval")])
def test_refused(agent, ws, path, reason):
    (ws / "d").mkdir()
    os.mkfifo(ws / "fifo")
    (ws / "loop").symlink_to("loop")
    (ws / "out").symlink_to("/etc/passwd")
    fails(agent, reason, "edit", path=path, old=b"x", new=b"y")


def test_empty_old(agent, ws):
    (ws / "f").write_bytes(b"x")
    assert "empty" in fails(agent, "einval", "edit", path="f", old=b"", new=b"y")
    assert (ws / "f").read_bytes() == b"x"


@pytest.mark.parametrize("args", [{"old": b"x"}, {"new": b"x"}, {"old": b"x", "new": bytes(MIB + 1)}, {"old": 1, "new": b""}])
def test_bad_arguments(agent, args):
    fails(agent, "invalid", "edit", path="f", **args)


def test_unwritable(agent, ws, who):
    (ws / "f").write_bytes(b"x")
    ws.chmod(0o555)
    if who != "root":
        assert os.stat(ws).st_uid != 0
        fails(agent, "eacces", "edit", path="f", old=b"x", new=b"y")
        assert agent.call("edit", path="f", old=b"z", new=b"y")["occurrences"] == 0
    ws.chmod(0o755)


def test_changed_meanwhile(agent, ws):
    """Written by others between our reading and our writing: nothing of theirs is lost, and it is said."""
    told = set()
    pid = os.fork()
    (ws / "f").write_bytes(b"x" + bytes(4 * MIB))
    if pid == 0:
        try:
            while True:
                with open(ws / "f", "r+b") as file:
                    file.seek(2 * MIB)
                    file.write(os.urandom(8))
        finally:
            os._exit(0)
    try:
        end = time.monotonic() + 20
        while "estale" not in told and time.monotonic() < end:
            try:
                agent.call("edit", path="f", old=b"x", new=b"x")
                told.add("ok")
            except Failed as failed:
                told.add(failed.reason)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    assert "estale" in told and told <= {"ok", "estale"}, told
    assert os.listdir(ws) == ["f"]


def test_cancel(agent, ws):
    (ws / "f").write_bytes(b"x" + bytes(15 * MIB))
    refs = [agent.begin("edit", path="f", old=b"x", new=b"y") for _ in range(3)]
    for ref in refs:
        agent.send("cancel", ref)
    for ref in refs:
        try:
            agent.end(ref)
        except Failed as failed:
            assert failed.reason in ("cancelled", "estale")
    assert os.listdir(ws) == ["f"]
