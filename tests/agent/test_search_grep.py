"""grep: which lines, in which order, and what is not read."""
import os
import random
import re
import socket
import subprocess

import pytest
from speaker import fails


@pytest.fixture
def put(ws, own):
    """put(path, content): a file of the agent's user."""
    def write(path, content):
        path = ws / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return own(path)
    return write


def grep(agent, pattern, **more):
    """[(path, line number, line)], context with a number below zero."""
    reply = agent.call("grep", pattern=pattern, **more)
    return [(os.fsdecode(m["path"]), -m["line_number"] if m.get("is_context") else m["line_number"], m["line"])
            for m in reply["matches"]]


def lines(agent, pattern, **more):
    return [(path, number) for path, number, _ in grep(agent, pattern, **more)]


def test_order_and_paths(agent, put):
    for path in ("b/c", "b-c", "b.d/e", "a", ".hidden/x", "b/a/z"):
        put(path, "one\ntwo\none\n")
    expected = [(path, n, b"one") for path in sorted([".hidden/x", "a", "b-c", "b.d/e", "b/a/z", "b/c"]) for n in (1, 3)]
    assert grep(agent, "one") == expected
    assert lines(agent, "one", path="b") == [("b/a/z", 1), ("b/a/z", 3), ("b/c", 1), ("b/c", 3)]
    assert lines(agent, "one", path="./b//c") == [("b/c", 1), ("b/c", 3)]


def test_absolute_paths(agent, put, ws, outside, own):
    put("d/f", "one\n")
    (outside / "other").write_bytes(b"one\n")
    own(outside / "other")
    assert lines(agent, "one", path=str(ws)) == [("d/f", 1)]
    assert lines(agent, "one", path=str(ws / "d")) == [("d/f", 1)]
    assert lines(agent, "one", path=str(outside / "other")) == [(str(outside / "other"), 1)]
    fails(agent, "einval", "grep", pattern="x", path="../other")
    fails(agent, "enoent", "grep", pattern="x", path="none")


def test_ends_of_files(agent, put):
    put("f", "one\n\none")
    assert grep(agent, "one") == [("f", 1, b"one"), ("f", 3, b"one")]
    assert lines(agent, "^$") == [("f", 2)]
    put("f", "")
    assert grep(agent, "") == []
    put("f", "\n")
    assert grep(agent, "") == [("f", 1, b"")]


@pytest.mark.parametrize("pattern, expected", [
    ("foo(?!bar)", [1, 4]), ("foo\\z", [1]), ("\\Afoo$", [1]), ("foo\\s", [4]), ("foo[^x]", [2, 4]), ("o\\Z", [1]),
    ("(?<!\\n)foo", [1, 2, 4]), ("foo\\n", []), ("foo$", [1]), ("^bar", []), ("[^a]+bar", [2]), ("fo{2}b", [2]),
    ("(foo|x)b", [2]), ("\\Qfoo\\Eb", [2]), ("f\\x6fo ", [4]), ("a?foo|zzz", [1, 2, 4]), ("(?i)FOOB", [2]),
    ("z?", [1, 2, 3, 4]), ("o*+ ", [4]), ("\\Wx", [4]), ("[\\s\\S]*foo x", [4]), ("^.{3}$", [1]), ("()", [1, 2, 3, 4]),
])
def test_each_line_is_alone(agent, put, pattern, expected):
    put("f", "foo\nfoobar\n\nfoo x\n")
    assert [n for _, n in lines(agent, pattern)] == expected


def test_case(agent, put):
    put("f", "Über\nüber\nUBER\n")
    assert lines(agent, "über") == [("f", 2)]
    assert lines(agent, "ÜBER", case_sensitive=False) == [("f", 1), ("f", 2)]
    assert lines(agent, "uber", case_sensitive=False) == [("f", 3)]
    assert lines(agent, "uber", case_sensitive=True) == []


def test_unicode_and_bytes(agent, put):
    put("f", b"caf\xc3\xa9 x\n\xff\xfecaf\n\xc3\xa9t\xc3\xa9\n\xe9\n")
    assert grep(agent, "^caf.\\b") == [("f", 1, b"caf\xc3\xa9 x")]
    assert lines(agent, "^\\w{3}$") == [("f", 3)]
    assert lines(agent, "[é]") == [("f", 1), ("f", 3)]
    assert lines(agent, "caf") == [("f", 1), ("f", 2)]
    assert grep(agent, b"\xff\xfe") == [("f", 2, b"\xff\xfecaf")]
    assert lines(agent, b"^\xe9$") == [("f", 4)]


@pytest.mark.parametrize("pattern, byte", [("a(b", 3), ("a)b", 1), ("[z-a]", 3), ("x(?<", 4), ("*", 0), ("\\C", 2), ("a\nb", 1)])
def test_no_expression(agent, put, pattern, byte):
    assert fails(agent, "invalid_regex", "grep", pattern=pattern).startswith(f"byte {byte}: ")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(?:a*)*b", "(x+x+)+y", "^(a?){40}a{40}$"])
def test_catastrophes_have_a_name(agent, put, pattern):
    put("sub/f", "fine\n" + "a" * 60 + "!\n" + "x" * 60 + "\n" + "a" * 39 + "\n")
    try:
        found = lines(agent, pattern)
    except Exception as told:
        assert told.reason == "match_limit" and "sub/f:" in told.detail
    else:
        assert found in ([], [("sub/f", 4)])


def test_match_limit_names_file_and_line(agent, put):
    put("d/bad", "fine\n" + "a" * 60 + "!\n")
    assert "d/bad:2:" in fails(agent, "match_limit", "grep", pattern="(a+)+$")


def test_filter(agent, put):
    for path in ("x.c", "src/y.c", "src/sub/z.c", "src/y.h", "lib/w.c"):
        put(path, "one\n")

    def found(glob, **more):
        return [path for path, _ in lines(agent, "one", glob=glob, **more)]

    assert found("*.c") == ["lib/w.c", "src/sub/z.c", "src/y.c", "x.c"]
    assert found("src/*.c") == ["src/y.c"]
    assert found("/*.c") == ["x.c"]
    assert found("{src/**,lib}/*.c") == ["lib/w.c", "src/sub/z.c", "src/y.c"]
    assert found("src/*.c", path="src") == ["src/y.c"]
    assert found("*.h", path="src/y.h") == ["src/y.h"] and found("*.c", path="src/y.h") == []
    assert fails(agent, "invalid_pattern", "grep", pattern="one", glob="[")


def test_limit(agent, put):
    put("a", "x\n" * 5)
    put("b", "x\n" * 5)
    for limit, truncated in ((3, True), (9, True), (10, False), (0, True)):
        reply = agent.call("grep", pattern="x", limit=limit)
        assert len(reply["matches"]) == limit and reply["truncated"] == truncated
    put("c", "x\n" * 2000)
    reply = agent.call("grep", pattern="x")
    assert len(reply["matches"]) == 1000 and reply["truncated"]


def test_answer_is_bounded(agent, put):
    put("f", b"x" * 60000 + b"\n")
    for i in range(100):
        put(f"{i:03}", b"x" * 60000 + b"\n")
    reply = agent.call("grep", pattern="x")
    assert reply["truncated"] and 40 <= len(reply["matches"]) <= 53


def test_context_as_grep_has_it(agent, put, ws):
    rng = random.Random(5)
    for i in range(12):
        put(f"f{i:02}", "".join(rng.choice(["match\n", "no\n", "\n", "other line\n", "x\n"]) for _ in range(60))[:-rng.choice([1, 2])])
    for context in (0, 1, 2, 7, 100):
        for pattern in ("match", "^x$", "m|x", "zzz"):
            done = subprocess.run(["grep", "-rnE", f"-C{context}", "--no-group-separator", pattern, "."], cwd=ws,
                                  stdout=subprocess.PIPE, check=False)
            told = []
            for line in done.stdout.splitlines():
                path, mark, number, text = re.match(rb"\./(f\d\d)([:-])(\d+)[:-](.*)", line).groups()
                told.append((path.decode(), int(number) * (1 if mark == b":" else -1), text))
            assert grep(agent, pattern, context=context, limit=10000) == sorted(told, key=lambda t: (t[0], abs(t[1])))


def test_large_files_agree_with_grep(agent, put, ws):
    """Lines across every border of the buffer, with context across them too."""
    rng = random.Random(7)
    words = [b"alpha", b"beta", b"", b"gamma " * 30, b"needle", b"x" * 5000]
    put("big", b"\n".join(rng.choice(words) for _ in range(4000)) + b"\n" + b"y" * 700_000 + b" needle\n" + b"beta\n" * 3)
    assert (ws / "big").stat().st_size > 3 << 20
    for pattern, context in (("needle", 2), ("^beta$", 0), ("n.*e$", 1), ("y needle", 1)):
        done = subprocess.run(["grep", "-nE", f"-C{context}", "--no-group-separator", pattern, "big"], cwd=ws,
                              stdout=subprocess.PIPE, check=False)
        told = []
        for line in done.stdout.splitlines():
            number, mark, text = re.match(rb"(\d+)([:-])(.*)", line).groups()
            told.append(("big", int(number) * (1 if mark == b":" else -1), text[:65536]))
        found = grep(agent, pattern, context=context, limit=10000)
        assert len(found) > 2 and found == told[:len(found)]


def test_long_lines(agent, put):
    put("f", b"a" * 100_000 + b"needle" + b"b" * 100_000 + b"\nnext needle\n")
    assert [(n, len(line)) for _, n, line in grep(agent, "needle")] == [(1, 65536), (2, 11)]
    put("f", b"x" * (20 << 20) + b"needle")
    assert grep(agent, "needle") == [("f", 1, b"x" * 65536)]


def test_binary_files_are_named(agent, put):
    put("bin", b"\x7fELF\0needle\n")
    put("late", b"x" * 8192 + b"\0\nneedle\n")
    put("none", b"\0\n")
    reply = agent.call("grep", pattern="needle")
    assert reply["binary"] == [b"bin"]
    assert [(m["path"], m["line_number"]) for m in reply["matches"]] == [(b"late", 2)]


def test_only_regular_files(agent, put, ws, own):
    put("f", "x\n")
    os.mkfifo(ws / "fifo")
    os.mkfifo(ws / "fifo2", 0o666)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(ws / "socket"))
    (ws / "link").symlink_to("f")
    (ws / "folder").symlink_to(".")
    (ws / "zero").symlink_to("/dev/zero")
    for name in ("fifo", "fifo2"):
        own(ws / name)
    reply = agent.call("grep", pattern="x")
    assert [m["path"] for m in reply["matches"]] == [b"f"] and reply["skipped"] == 0
    assert lines(agent, "x", path="link") == [("link", 1)]
    fails(agent, "einval", "grep", pattern="x", path="fifo")
    fails(agent, "einval", "grep", pattern="x", path="/dev/zero")
    listening.close()


def test_sparse_files_cost_what_they_hold(agent, put, ws):
    path = put("sparse", b"start\n")
    with open(path, "r+b") as file:
        file.truncate(1 << 40)
        file.seek(1 << 39)
        file.write(b"\nneedle in it\n")
    assert path.stat().st_blocks * 512 < 1 << 20
    assert agent.call("grep", pattern="needle", timeout_ms=5000)["binary"] == [b"sparse"]
    with open(path, "r+b") as file:
        file.write(b"text, no hole\n" * 20000)
    assert lines(agent, "needle", timeout_ms=5000) == [("sparse", 20002)]


def test_a_file_that_grows(agent, put, ws):
    path = put("log", b"x\n" * 200_000)
    with subprocess.Popen(["sh", "-c", f"exec yes needle >>'{path}'"]) as writer:
        try:
            for _ in range(3):
                agent.call("grep", pattern="nothing like it", timeout_ms=20000)
        finally:
            writer.kill()


def test_files_that_cannot_be_read(agent, who, put, ws):
    put("f", "x\n")
    put("secret", "x\n").chmod(0)
    reply = agent.call("grep", pattern="x")
    assert reply["skipped"] == (0 if who == "root" else 1) and b"f" in [m["path"] for m in reply["matches"]]


def test_kernels_own_files(agent):
    reply = agent.call("grep", pattern="x", path="/proc/self")
    assert reply["matches"] == [] and reply["skipped"] == 1


def test_names_of_all_kinds(agent, ws):
    names = sorted([b"new\nline", b"\xff\xfe", b"-x", b"a" * 255])
    for name in names:
        with open(os.fsencode(ws) + b"/" + name, "wb") as file:
            file.write(b"needle\n")
        os.chmod(os.fsencode(ws) + b"/" + name, 0o644)
    assert [m["path"] for m in agent.call("grep", pattern="needle")["matches"]] == names


def test_deeper_than_descriptors_are_held(agent, put, ws):
    """Files that come after a deeper folder: theirs was closed meanwhile."""
    path = ""
    for _ in range(100):
        path += "d/"
        put(path + "z", "needle\n")
    assert lines(agent, "needle") == [("d/" * depth + "z", 1) for depth in range(100, 0, -1)]
