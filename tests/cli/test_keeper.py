"""A keeper serves one command after the other: nothing of one is in the tree of the next, and no order meant for one."""
import contextlib
import os
import pathlib

import pytest
from run_fixtures import *  # noqa: F403
from test_spare import fields, spare_of, within
from test_stay import Atom, agent, alive, children, stay  # noqa: F401

TURNS = 64  # IDLE_TURNS, src/agent/idle.h
IDLE = 3  # IDLE_MAX
WALLS = pytest.mark.parametrize("policy", ["version: 1\n", LANDLOCK], ids=["process", "landlock"])
# Two that leave their leader's session and his tree, and would stay; the leader ends once both are there.
STAYS = r"""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ready, there = os.pipe()
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.write(there, b"x")
        time.sleep(1000)
for _ in range(2):
    os.read(ready, 1)
print(os.getppid())
"""


def keeper(client, ref=1):
    """Of the command that says so, as the sandbox numbers it."""
    return int(client.sh("echo $PPID", ref)["out"])


def at_once(client, refs, status):
    """So many, all there before the first may go on."""
    for ref in refs:
        client.send("call", ref, Atom("exec"), {"command": f"read x; exit {status}".encode(), "stdin": True})
    for ref in refs:
        client.send("data", ref, Atom("stdin"), b"\n")
    waiting = set(refs)
    while waiting:
        frame = client.frame()
        if frame[0] in ("reply", "failed"):
            assert frame[0] == "reply" and frame[2]["exit_code"] == status, frame
            waiting.remove(frame[1])


def names(monitor):
    return [fields(pid)["Name"].strip() for pid in children(monitor)]


def descriptors(pid):
    found = []
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed while we look
            found.append(os.readlink(entry))
    return found


def settled(monitor):
    """Nothing runs, and the next leader waits: what there is, by name. A keeper that is not kept ends by itself."""
    def look():
        found = sorted(names(monitor))
        wanted = {"caisson-idle", "caisson-agent", "caisson-spare", "caisson-cleaner"}
        is_all = wanted.issuperset(found) and found.count("caisson-agent") == 2 and found.count("caisson-idle") <= IDLE
        return found if is_all and found.count("caisson-spare") == 1 else None
    return wait_for(look, 20)


@WALLS
def test_one_after_the_other(stay, policy):  # noqa: F811
    client = stay.started(policy=policy).client()
    keepers = []
    for ref in range(1, 2 * TURNS + 3):
        keepers.append(keeper(client, ref))
        assert wait_for(lambda: spare_of(stay.monitor()), 20)
    longest = max(keepers.count(pid) for pid in set(keepers))
    assert TURNS // 8 < longest <= TURNS, keepers
    assert len(set(keepers)) < 8, keepers


@WALLS
def test_nothing_of_one_is_left_for_the_next(stay, policy):  # noqa: F811
    stay.box.file("stays.py", STAYS)
    client = stay.started(policy=policy).client()
    monitor = stay.monitor()
    assert keeper(client) and settled(monitor), names(monitor)
    first = within(spare_of(monitor)[1])
    assert int(client.sh("exec python3 stays.py", 2)["out"]) == first
    assert settled(monitor), names(monitor)
    assert first in [keeper(client, ref) for ref in range(3, 3 + 2 * (IDLE + 1))]
    assert settled(monitor), names(monitor)
    if os.geteuid() == 0:
        held = descriptors(spare_of(monitor)[1])
        assert held and [path for path in held if path.startswith("pipe:")] == []


@WALLS
def test_many_at_once(stay, policy):  # noqa: F811
    client = stay.started(policy=policy).client()
    monitor = stay.monitor()
    at_once(client, range(2, 10), 7)
    assert settled(monitor), names(monitor)


@WALLS
def test_an_order_for_one_does_not_reach_the_next(stay, policy):  # noqa: F811
    """Sent while it ends, before or after."""
    client = stay.started(policy=policy).client()
    for ref in range(2, 82, 2):
        client.send("call", ref, Atom("exec"), {"command": f"exec sleep 0.0{ref % 10:02}".encode()})
        client.send("call", ref + 1, Atom("exec"), {"command": b"sleep 0.004; echo on"})
        client.send("cancel" if ref % 4 else "signal", ref, *(() if ref % 4 else (9,)))
        reply, out, err = client.answer(ref + 1)
        assert (reply[2]["exit_code"], out, err) == (0, b"on\n", b""), (ref, reply)


@WALLS
def test_one_that_is_killed_between_two(stay, policy):  # noqa: F811
    client = stay.started(policy=policy).client()
    monitor = stay.monitor()
    assert keeper(client) and settled(monitor)
    at_once(client, range(2, 6), 0)
    assert settled(monitor)
    idle = [pid for pid in children(monitor) if fields(pid)["Name"].strip() == "caisson-idle"]
    assert idle, names(monitor)
    for pid in idle:
        os.kill(pid, 9)
    assert wait_for(lambda: not alive(idle), 20)
    for ref in range(6, 12):
        assert client.sh("echo on", ref)["out"] == b"on\n"


@WALLS
def test_each_has_its_own_account(stay, policy):  # noqa: F811
    """What each tried is told of it alone, whoever kept it."""
    client = stay.started(policy=policy).client()
    for first in range(2, 82, 8):
        refs = set(range(first, first + 8))
        for ref in refs:
            client.send("call", ref, Atom("exec"), {"command": f"exec 2>/dev/null; > /etc/nowhere-{ref}".encode()})
        while refs:
            frame = client.frame()
            if frame[0] == "fact":
                assert frame[1]["path"] == f"/etc/nowhere-{frame[1]['ref']}".encode()
                continue
            assert frame[0] == "reply", frame
            refs.remove(frame[1])
            assert [fact["path"] for fact in frame[2]["violations"]] == [f"/etc/nowhere-{frame[1]}".encode()]
