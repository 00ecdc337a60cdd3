"""A wall of a program's own, registered with libcaisson: the example that keeps its files in a list."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import pytest
from calls import PLAIN, Call, Teller, read, sh
from etf import Atom
from run_fixtures import *  # noqa: F403
from test_differential import LIMITS, WALLS, someones, tell, unworded  # noqa: F401
from test_stay import WAIT, Client, alive

# Stands in for the command: hands the test the monitor's stream, and leaves the library waiting for its own.
BETWEEN = """#!%s
import os, socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect(%r)
peer.set_inheritable(True)
words = sys.argv[1:]
words[words.index("--fd") + 1] = str(peer.fileno())
os.execv(%r, ["caisson", *words])
"""
AUTO = "version: 1\ntier: auto\nworkspace: {mode: rw}\n"


class Through(Client):
    """The monitor of a host's wall, as its library sees it."""

    def __init__(self, peer):
        self.socket = peer
        peer.settimeout(WAIT)
        self.ready = self.frame()[1]


class Host:
    def __init__(self, box, example):
        self.box, self.example = box, example

    def start(self, program, **more):
        return subprocess.Popen([self.example, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.box.ws,
                                env=self.box.env | {"HOME": str(self.box.base)}, **(self.box.as_owner() | more))

    def run(self, program=None):
        process = self.start(program or self.box.caisson)
        out, err = process.communicate(timeout=WAIT)
        return process.returncode, out, err

    def between(self):
        """(a program that stands in for the command, a socket on which it gives us the monitor's stream)"""
        path, knock = self.box.base / "between.py", socket.socket(socket.AF_UNIX)
        knock.bind(str(self.box.base / "knock"))
        knock.listen(1)
        knock.settimeout(WAIT)
        os.chmod(self.box.base / "knock", 0o777)
        path.write_text(BETWEEN % (sys.executable, str(self.box.base / "knock"), str(self.box.caisson)))
        path.chmod(0o755)
        return path, knock


@pytest.fixture
def host(box, build):
    example = pathlib.Path(build, "tests", "client", "example-dictionary")
    if not example.exists():
        pytest.skip("host wall: examples/dictionary.c is not built")
    return Host(box, example)


def test_the_example(host):
    assert host.run() == (0, "notes/a.txt: one three\nnotes/b.txt: enoent\n", "")
    assert not list(host.box.ws.iterdir()), "nothing of the host's is touched"


def test_the_same_answers(host, someones):  # noqa: F811
    """The plain part of the table, frame by frame."""
    host.box.file("caisson.yaml", AUTO + LIMITS)
    trust(host.box)
    program, knock = host.between()
    process = host.start(program)
    teller = Teller(Through(knock.accept()[0]), [host.box.ws, b"/workspace"], [(bytes(host.box.base), b"BASE")])
    piped = [Call("write", path=b"piped", stdin=[b"a", b"b" * 65535]), read(b"piped", offset=65530),
             Call("write", path=b"piped", stdin=[b"x" * 65536] * 4), Call("write", path=b"piped", stdin=[])]
    theirs = [teller.answer(call) for call in PLAIN + piped + [sh("true")]]
    teller.peer.socket.close()
    process.communicate(timeout=WAIT)
    told = zip(PLAIN, theirs, tell(someones(), WALLS["local"], PLAIN))
    different = [f"{call!r}\n    {one!r:.300}\n    {other!r:.300}" for call, one, other in told if unworded(one) != unworded(other)]
    assert not different, "\n".join(different)
    assert [kind if kind == "reply" else told[0] for kind, told, _ in theirs[len(PLAIN):]] == ["reply", "reply", "efbig", "reply", "not_supported"]


def trust(box):
    done = subprocess.run([box.caisson, "policy", "trust", "--yes"], cwd=box.ws, env=box.env | {"HOME": str(box.base)},
                          capture_output=True, text=True, timeout=WAIT, **box.as_owner())
    assert done.returncode == 0, done


def test_a_policy_file_is_not_overridden(host):
    for text, sentence in (("", "reaches tier auto and balanced is asked for"), ("tier: auto\nbackend: process\n", "names another: process"),
                           ("tier: strict\n", "reaches tier auto and strict")):
        host.box.file("caisson.yaml", "version: 1\n" + text)
        trust(host.box)
        status, out, err = host.run()
        assert status == 1 and not out and sentence in err, err
    host.box.file("caisson.yaml", AUTO)
    assert host.run()[0] == 1, "nobody vouched for the lower tier"
    trust(host.box)
    assert host.run()[0] == 0


def test_no_flag_names_it(host):
    for words in (["run", "--backend", "host", "true"], ["run", "--enforces", "pids", "true"], ["monitor", "--fd", "99", "--wall-fd", "98"]):
        done = subprocess.run([host.box.caisson, *words], cwd=host.box.ws, env=host.box.env, capture_output=True, text=True, timeout=WAIT)
        assert done.returncode == 125, done
    done = subprocess.run([host.box.caisson, "doctor", "--json"], env=host.box.env, capture_output=True, text=True, timeout=WAIT)
    assert "host" not in [wall["name"] for wall in json.loads(done.stdout)["walls"]], "nothing to choose"


def monitors(box):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if b"monitor\0--fd" in (path / "cmdline").read_bytes() and os.readlink(path / "cwd") == str(box.ws):
                found.append(int(path.name))
        except OSError:
            continue
    return found


def test_a_host_that_dies(host):
    """Its monitor ends with it, in the middle of a call."""
    program, knock = host.between()
    process = host.start(program)
    peer = Through(knock.accept()[0])
    assert alive(monitors(host.box))
    peer.send("call", 1, Atom("write"), {"path": b"x", "stdin": True})
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=WAIT)
    assert wait_for(lambda: not alive(monitors(host.box)), 5), monitors(host.box)
    with pytest.raises((EOFError, ConnectionError)):
        while True:
            peer.frame()


def test_its_record(host):
    """What was declared, and no more."""
    program = host.box.base / "recorded"
    program.write_text(f"#!/bin/sh\nfor word do shift; [ \"$word\" = --no-record ] || set -- \"$@\" \"$word\"; done\nexec {host.box.caisson} \"$@\"\n")
    program.chmod(0o755)
    assert host.run(program)[0] == 0
    done = subprocess.run([host.box.caisson, "runs", "show", "--json"], cwd=host.box.ws, env=host.box.env | {"HOME": str(host.box.base)},
                          capture_output=True, text=True, timeout=WAIT, **host.box.as_owner())
    result = json.loads(done.stdout)
    result = result.get("result", result)
    assert result["runtime"] == "auto/host", result
    assert sorted(result["enforced"]) == sorted(["fs-write", "syscalls", "privilege", "identity", "net-none", "time", "output"])
    assert "csn_wall.observes" in result["not_observed_why"]["FilesystemWriteViolation"] and result["hidden"] == []
