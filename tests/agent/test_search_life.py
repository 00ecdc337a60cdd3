"""Searches as processes: they end by a clock, a cancel or with the agent, and hold up nobody else."""
import contextlib
import os
import pathlib
import signal
import subprocess
import threading
import time

import pytest
from speaker import Failed, fails

HERE = pathlib.Path(__file__).resolve().parent
NAME = "caisson-search"


@pytest.fixture(params=["user"])
def who(request):
    """Who it is makes no difference here, and some of this takes a whole processor."""
    return request.param


def searches(agent):
    """The running ones, by pid."""
    children = pathlib.Path(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children").read_text().split()
    found = []
    for pid in children:
        try:
            if os.readlink(f"/proc/{pid}/exe").endswith(NAME) and "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text():
                found.append(int(pid))
        except OSError:
            pass
    return found


def until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "too late"
        time.sleep(0.01)


@pytest.fixture
def slow(ws, own):
    """Arguments of a grep that takes minutes: many lines, each just below the bound."""
    (ws / "slow").write_bytes((b"a" * 20 + b"!\n") * 100_000)
    own(ws / "slow")
    return {"pattern": "(a|a)+$", "path": "slow"}


def test_clock(agent, slow):
    begin = time.monotonic()
    detail = fails(agent, "timeout", "grep", **slow, timeout_ms=300)
    assert "longer" in detail and 0.25 < time.monotonic() - begin < 5
    until(lambda: not searches(agent))
    assert agent.call("glob", pattern="*")["paths"] == [b"slow"]


def test_cancel(agent, slow):
    ref = agent.begin("grep", **slow)
    until(lambda: searches(agent))
    agent.send("cancel", ref)
    with pytest.raises(Failed) as told:
        agent.end(ref)
    assert told.value.reason == "cancelled"
    until(lambda: not searches(agent))
    agent.send("cancel", ref)
    assert agent.call("glob", pattern="*")["paths"] == [b"slow"]


def test_others_go_on(agent, slow):
    refs = [agent.begin("grep", **slow) for _ in range(8)]
    until(lambda: len(searches(agent)) == 8)
    begin = time.monotonic()
    assert agent.call("stat", path="slow")["type"] == "file"
    assert agent.call("grep", pattern="nothing", path="slow")["matches"] == []
    assert time.monotonic() - begin < 5
    for ref in refs:
        agent.send("cancel", ref)
    for ref in refs:
        with pytest.raises(Failed):
            agent.end(ref)


def test_not_too_many(agent, slow):
    refs = [agent.begin("grep", **slow) for _ in range(16)]
    assert "too many" in fails(agent, "eagain", "glob", pattern="*")
    for ref in refs:
        agent.send("cancel", ref)
    for ref in refs:
        with pytest.raises(Failed):
            agent.end(ref)
    assert agent.call("glob", pattern="*")["paths"] == [b"slow"]


def test_ref_in_use(agent, slow):
    ref = agent.begin("grep", **slow)
    agent.ref -= 1
    agent.begin("glob", pattern="*")
    assert agent.frame_of(ref)[2] == "invalid"
    agent.send("cancel", ref)
    assert agent.frame_of(ref)[2] == "cancelled"


def test_killed_by_somebody(agent, slow):
    ref = agent.begin("grep", **slow)
    until(lambda: searches(agent))
    os.kill(searches(agent)[0], signal.SIGKILL)
    with pytest.raises(Failed) as told:
        agent.end(ref)
    assert told.value.reason == "eio" and "signal 9" in told.value.detail


def test_ends_with_the_agent(agent, slow):
    agent.begin("grep", **slow)
    until(lambda: searches(agent))
    pid = searches(agent)[0]
    agent.close()
    until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_ends_with_a_killed_agent(agent, slow):
    agent.begin("grep", **slow)
    until(lambda: searches(agent))
    pid = searches(agent)[0]
    agent.process.kill()
    agent.process.wait()
    until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_nothing_is_inherited(agent, slow):
    agent.begin("grep", **slow)
    until(lambda: searches(agent))
    pid = searches(agent)[0]

    def held():
        found = {}
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # one of its own, which it closed meanwhile
                found[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
        return found
    until(lambda: set(held()) <= {0, 1, 2})  # what is inherited stays
    descriptors = held()
    assert descriptors[0].endswith("/slow") and descriptors[1].startswith("pipe:")
    assert pathlib.Path(f"/proc/{pid}/environ").read_bytes() == b""

    def masks():
        status = dict(line.split(":\t") for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        return {status["SigBlk"], status["SigIgn"]}
    until(lambda: masks() == {"0" * 16})  # it may not have been executed yet


def test_without_the_program(start):
    agent = start(has_search=False)
    assert not {"glob", "grep"} & set(agent.ready["verbs"]) and "exec" in agent.ready["verbs"]
    fails(agent, "not_supported", "glob", pattern="*")
    assert {"glob", "grep"} <= set(start().ready["verbs"])


@pytest.mark.parametrize("args", [{}, {"pattern": 1}, {"pattern": "x", "limit": 10001}, {"pattern": "x", "limit": -1},
                                  {"pattern": "x\0y"}, {"pattern": "x", "cwd": ""}])
def test_bad_maps(agent, args):
    fails(agent, "invalid", "glob", **args)


def test_arguments_are_only_values(agent, ws, own):
    """What looks like another argument of the program is part of a pattern."""
    (ws / "limit=0").write_bytes(b"x=1\npattern=\n")
    own(ws / "limit=0")
    assert agent.call("glob", pattern="limit=0", limit=5)["paths"] == [b"limit=0"]
    assert [m["line"] for m in agent.call("grep", pattern="=1")["matches"]] == [b"x=1"]
    assert [m["line"] for m in agent.call("grep", pattern="pattern=")["matches"]] == [b"pattern="]


def test_a_tree_that_changes(agent, ws, own):
    """What did not change is all there, and what became a link after it was listed is not entered: `a`
    is large, so that there is time between the two."""
    for folder, count in ((ws / "a", 3000), (ws / "b", 50), (ws / "c", 50)):
        folder.mkdir()
        own(folder)
        for i in range(count):
            (folder / f"f{i:04}").write_bytes(b"needle\n")
            own(folder / f"f{i:04}")
    stop = threading.Event()

    def change():
        while not stop.is_set():
            (ws / "b").rename(ws / "gone")
            (ws / "b").symlink_to("/etc")
            (ws / "c/more").mkdir()
            time.sleep(0.001)
            (ws / "b").unlink()
            (ws / "gone").rename(ws / "b")
            (ws / "c/more").rmdir()
            time.sleep(0.001)

    thread = threading.Thread(target=change)
    thread.start()
    stable = {b"a/f%04d" % i for i in range(3000)} | {b"c/f%04d" % i for i in range(50)}
    try:
        for _ in range(100):
            names = agent.call("glob", pattern="**", limit=10000)["paths"]
            assert stable <= set(names) and names == sorted(names)
            assert not [n for n in names if n.startswith(b"b/") and n[2:3] != b"f"]
        for _ in range(10):
            found = [m["path"] for m in agent.call("grep", pattern="needle", limit=10000)["matches"]]
            assert stable <= set(found) and found == sorted(found)
    finally:
        stop.set()
        thread.join()


@pytest.fixture(scope="module")
def liar(tmp_path_factory, program):
    """A program in the place of ours, which answers what its pattern says, in hex."""
    source = tmp_path_factory.mktemp("liar") / "liar.c"
    source.write_text(r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char *at = strchr(argv[2], '=') + 1;
	for (; at[0] && at[1]; at += 2) {
		char text[3] = { at[0], at[1], 0 };
		unsigned char byte = (unsigned char)strtoul(text, 0, 16);
		if (write(1, &byte, 1) != 1)
			return argc;
	}
	return 3;
}
""")
    path = pathlib.Path(program).with_name("liar")
    subprocess.run([os.environ.get("CC", "cc"), "-static", "-o", path, source], check=True)
    return path


def record(kind, data, size=None):
    return (kind.to_bytes(4, "little") + (len(data) if size is None else size).to_bytes(4, "little") + data).hex()


END, SIZES = bytes(16), (0, 1, 2**31, 2**32 - 1)


@pytest.mark.parametrize("answer", [
    "", "00", record(7, b""), record(7, bytes(15)), record(7, END)[:-2], record(7, END) + "00", record(7, END) * 2,
    record(9, b"x") + record(7, END), record(0, b"") + record(7, END), record(1, b"") + record(7, END), record(1, b"x"),
    record(1, b"a\0b") + record(7, END), record(1, b"a" * 4096)[:1900], record(3, bytes(8) + b"x") + record(7, END),
    record(2, b"f") + record(3, bytes(7)) + record(7, END), record(2, b"") + record(7, END), record(6, b""),
    record(6, b"no end"), record(6, b"\0x"), record(6, b"\xff\0x"), record(7, bytes(8) + b"\xff" * 8),
    record(2, b"f") + record(3, b"\xff" * 8 + b"x") + record(7, END),
    *[record(1, b"x", size) + record(7, END) for size in SIZES if size != 1],
])
def test_answers_are_checked(start, liar, answer):
    agent = start(has_search=False, prelude=f"exec 9<{liar}")
    for verb in ("glob", "grep"):
        assert "without an answer" in fails(agent, "eio", verb, pattern=answer or "zz")
    assert agent.call("stat", path=".")["type"] == "directory"


def test_a_good_answer_passes(start, liar):
    agent = start(has_search=False, prelude=f"exec 9<{liar}")
    good = record(1, b"x") + record(7, END)
    assert agent.call("glob", pattern=good) == {"paths": [b"x"], "truncated": False, "skipped": 0}
    fails(agent, "eio", "grep", pattern=good)
    lines = record(2, b"f") + record(3, (7).to_bytes(8, "little") + b"l") + record(7, END)
    assert agent.call("grep", pattern=lines)["matches"] == [{"path": b"f", "line_number": 7, "line": b"l"}]
    assert fails(agent, "strange", "grep", pattern=record(6, b"strange\0because")) == "because"
