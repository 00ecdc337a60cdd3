"""glob: what patterns mean, in which order, and what is no pattern."""
import os
import subprocess

import pytest
from speaker import fails

PATHS = ["a.c", "a.h", ".dot", "b/c.c", "b/.hidden/d.c", "b/deep/er/e.c", "b-c/x.c", "b.d/y.c", "é/ü.c",
         "[x]/p", "s p/q.c"]


@pytest.fixture
def tree(ws, own):
    for path in PATHS:
        (ws / path).parent.mkdir(parents=True, exist_ok=True)
        (ws / path).write_bytes(b"x\n")
    for folder, _, _ in os.walk(ws):
        own(folder)
    return ws


def paths(agent, pattern, **more):
    return [os.fsdecode(path) for path in agent.call("glob", pattern=pattern, **more)["paths"]]


@pytest.mark.parametrize("pattern, expected", [
    ("*.c", ["a.c"]),
    ("*", [".dot", "[x]", "a.c", "a.h", "b", "b-c", "b.d", "s p", "é"]),
    ("**/*.c", ["a.c", "b-c/x.c", "b.d/y.c", "b/.hidden/d.c", "b/c.c", "b/deep/er/e.c", "s p/q.c", "é/ü.c"]),
    ("b/**", ["b/.hidden", "b/.hidden/d.c", "b/c.c", "b/deep", "b/deep/er", "b/deep/er/e.c"]),
    ("b/**/*.c", ["b/.hidden/d.c", "b/c.c", "b/deep/er/e.c"]),
    ("**/**/e.c", ["b/deep/er/e.c"]),
    ("*/", ["[x]", "b", "b-c", "b.d", "s p", "é"]),
    ("./b//c.c", ["b/c.c"]),
    ("?.[ch]", ["a.c", "a.h"]),
    ("?.[!c]", ["a.h", "b.d"]),
    ("?.[^[:punct:]c]", ["a.h", "b.d"]),
    ("?/?.c", ["b/c.c", "é/ü.c"]),
    ("[à-ü]/*", ["é/ü.c"]),
    ("\\[x]/p", ["[x]/p"]),
    ("[[]x[]]/p", ["[x]/p"]),
    ("{a,b/c}.c", ["a.c", "b/c.c"]),
    ("{a.{c,h},b{/c.c,-c/x.c}}", ["a.c", "a.h", "b-c/x.c", "b/c.c"]),
    ("{a.c,*.c}", ["a.c"]),
    ("{b/,}*.c", ["a.c", "b/c.c"]),
    ("{a}.c", ["a.c"]),
    (".*", [".dot"]),
    ("s\\ p/*", ["s p/q.c"]),
    ("nothing", []),
    ("a.c/", []),
    ("a.c/*", []),
])
def test_patterns(agent, tree, pattern, expected):
    assert paths(agent, pattern) == sorted(expected, key=os.fsencode)


@pytest.mark.parametrize("pattern, byte, word", [
    ("[abc", 0, "no end"), ("x[a-", 1, "no end"), ("a[!]", 1, "no end"), ("{a,b", 0, "no end"),
    ("a{b{c}", 1, "no end"), ("a}", 1, "not begun"), ("a\\", 1, "backslash"), ("[z-a]", 1, "range"),
    ("[[:nope:]]", 1, "class"), ("[a/b]", 0, "slash"), ("../x", 0, ".."), ("a/../x", 2, ".."), ("/etc/*", 0, "relative"),
    ("{1..3}", 0, "ranges"), ("{a,b}" * 12, 0, "more than"), ("{" * 40 + "a" + "}" * 40, 16, "braces"),
    ("", 0, "no name"), (".", 0, "no name"), ("{,}", 0, "no name"), ("a\\/b", 2, "quoted"),
])
def test_no_pattern(agent, tree, pattern, byte, word):
    detail = fails(agent, "invalid_pattern", "glob", pattern=pattern)
    assert detail.startswith(f"byte {byte}: ") and word in detail, detail


def test_wrong_alternative_is_named(agent, tree):
    assert '(in "y[z-a]")' in fails(agent, "invalid_pattern", "glob", pattern="{x,y[z-a]}")


def test_first_in_order_are_kept(agent, tree):
    reply = agent.call("glob", pattern="**", limit=4)
    assert reply == {"paths": [b".dot", b"[x]", b"[x]/p", b"a.c"], "truncated": True, "skipped": 0}
    every = agent.call("glob", pattern="**")
    assert every["paths"] == sorted(every["paths"]) and not every["truncated"]
    assert not agent.call("glob", pattern="**", limit=len(every["paths"]))["truncated"]


def test_default_limit(agent, ws):
    for i in range(1001):
        (ws / f"{i:04}").touch()
    reply = agent.call("glob", pattern="*")
    assert len(reply["paths"]) == 1000 and reply["truncated"] and reply["paths"][-1] == b"0999"


def test_cwd(agent, tree):
    assert paths(agent, "*.c", cwd="b") == ["c.c"]
    assert paths(agent, "*.c", cwd=str(tree / "b")) == ["c.c"]
    (tree / "link").symlink_to("b")
    assert paths(agent, "*.c", cwd="link") == ["c.c"]
    fails(agent, "enoent", "glob", pattern="*", cwd="none")
    fails(agent, "enotdir", "glob", pattern="*", cwd="a.c")
    fails(agent, "einval", "glob", pattern="*", cwd="..")


def test_links_are_names_and_not_ways(agent, tree):
    (tree / "loop").symlink_to(".")
    (tree / "b/up").symlink_to("..")
    (tree / "gone").symlink_to("nowhere")
    assert paths(agent, "loop") == ["loop"]
    assert paths(agent, "gone") == ["gone"]
    assert paths(agent, "loop/*") == []
    assert paths(agent, "*/", limit=100).count("loop") == 0
    assert "b/up" in paths(agent, "**") and not [p for p in paths(agent, "**") if p.startswith(("loop/", "b/up/"))]


def test_names_of_all_kinds(agent, ws):
    names = [b"new\nline", b"\xff\xfe", b" ", b"-", b"~", b"a" * 255, "\u00e9".encode(), b"\xc3"]
    for name in names:
        open(os.fsencode(ws) + b"/" + name, "wb").close()
    assert agent.call("glob", pattern="*")["paths"] == sorted(names)
    assert agent.call("glob", pattern=b"\xff?")["paths"] == [b"\xff\xfe"]
    assert agent.call("glob", pattern="?")["paths"] == sorted([b" ", b"-", b"~", "\u00e9".encode(), b"\xc3"])
    assert agent.call("glob", pattern="new\nline")["paths"] == [b"new\nline"]


def test_long_paths(agent, ws, own):
    """Deeper than descriptors are held, and longer than a frame's path."""
    folder, depth = os.open(ws, os.O_PATH), 0
    for depth in range(1500):
        os.mkdir("abc", dir_fd=folder)
        if os.geteuid() == 0:
            os.chmod("abc", 0o755, dir_fd=folder)
        below = os.open("abc", os.O_PATH, dir_fd=folder)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=below))
        os.close(folder)
        folder = below
    os.close(folder)
    try:
        reply = agent.call("glob", pattern="**/f", limit=10000)
        exact = agent.call("glob", pattern="abc/" * 900 + "f")["paths"]
    finally:
        subprocess.run(["rm", "-rf", ws / "abc"], check=True)
    lengths = [len(path) for path in reply["paths"]]
    # The deepest come first, and fill what one answer holds.
    assert reply["skipped"] == 1 and reply["truncated"] and lengths == list(range(4093, lengths[-1] - 1, -4))
    assert 1 << 20 < sum(lengths) < 2 << 20
    assert exact == [b"abc/" * 900 + b"f"]


def test_unreadable_folders_are_counted(start, who, tree, own):
    if who == "root":
        pytest.skip("root: reads every folder")
    (tree / "b/deep").chmod(0)
    agent = start()
    reply = agent.call("glob", pattern="**/*.c")
    (tree / "b/deep").chmod(0o755)
    assert reply["skipped"] == 1 and b"b/c.c" in reply["paths"]


def test_many_alternatives(agent, tree):
    names = ",".join(f"x{i}" for i in range(700))
    assert paths(agent, "{" + names + ",a}.c") == ["a.c"]


def test_kernels_own_folders_are_not_entered(agent):
    reply = agent.call("glob", pattern="proc/1/**", cwd="/")
    assert reply["paths"] == [] and reply["skipped"] == 1
