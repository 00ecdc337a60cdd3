"""Verbs that a monitor answers itself, each in a process of its own that it does not wait for."""
import os
import signal
import time

import pytest
from run_fixtures import *  # noqa: F403
from test_stay import Atom, alive, children, stay, wait_for  # noqa: F401


def workers(monitor):
    return [pid for pid in children(monitor) if open(f"/proc/{pid}/comm").read() == "caisson-worker\n"]


def settled(look, wanted, seconds=5):
    end = time.monotonic() + seconds
    while look() != wanted and time.monotonic() < end:
        time.sleep(0.01)
    return look()


def test_what_a_sandbox_uses(stay):
    stay.started("--rw", "-l", "memory=300MiB", "-l", "processes=50")
    client = stay.client()
    assert "stats" in client.ready["verbs"]
    frame, _, _ = client.call("stats")
    told = frame[2]
    assert told["backend"] == b"process" and told["tier"] == b"balanced" and told["mode"] == b"rw", told
    assert told["workspace"] == str(stay.box.ws).encode()
    assert told["mem_limit"] == 300 << 20 and told["processes_limit"] == 50
    assert abs(told["started_ms"] / 1000 - time.time()) < 60
    client.send("call", 5, Atom("exec"), {"command": b"head -c 40000000 /dev/zero > /tmp/f; sleep 9"})
    assert settled(lambda: client.call("stats", 7)[0][2]["scratch_bytes"] >= 40000000, True)
    told = client.call("stats", 8)[0][2]
    assert told["processes"] >= 1 and told["mem_bytes"] >= 40000000 and told["scratch_limit"] == 512 << 20


def test_a_worker_leaves_nothing(stay):
    stay.started()
    client, monitor = stay.client(), stay.monitor()
    time.sleep(0.2)  # asking for its pid was a connection, too
    before = len(os.listdir(f"/proc/{monitor}/fd"))
    for ref in range(40):
        assert client.call("stats", ref)[0][0] == "reply"
    assert settled(lambda: workers(monitor), []) == []
    assert wait_for(lambda: len(os.listdir(f"/proc/{monitor}/fd")) == before, 3)


def blocked(stay):
    """A client with a call whose worker waits for him: he reads nothing of a long answer."""
    stay.box.file("old.txt", "line\n")
    stay.started("--cow")
    client, monitor = stay.client(), stay.monitor()
    client.sh("for i in $(seq 200); do seq 1000 > $i.txt; done")
    client.send("call", 3, Atom("diff"), {})
    assert wait_for(lambda: len(workers(monitor)) == 1, 3)
    return client, monitor, workers(monitor)[0]


@pytest.mark.parametrize("how, reason", [("cancel", "cancelled"), ("kill", "lost"), ("stop", "cancelled")])
def test_a_worker_that_does_not_come_back(stay, how, reason):
    """Nobody else waits for it, and its call is answered."""
    client, monitor, pid = blocked(stay)
    other = stay.client()
    assert other.sh("echo on")["out"] == b"on\n"
    if how == "stop":
        os.kill(pid, signal.SIGSTOP)
    if how == "kill":
        os.kill(pid, signal.SIGKILL)
    else:
        client.send("cancel", 3)
    frame = client.answer(3, window=False)[0]
    assert frame[0] == "failed" and frame[2] == reason, frame
    assert wait_for(lambda: not alive([pid]), 3)
    assert other.sh("echo on")["out"] == b"on\n"


@pytest.mark.parametrize("end", ["client", "monitor", "stop"])
def test_a_worker_ends_with_who_asked(stay, end):
    client, monitor, pid = blocked(stay)
    if end == "client":
        client.socket.close()
    elif end == "monitor":
        os.kill(monitor, signal.SIGKILL)
    else:
        stay.down()
    assert wait_for(lambda: not alive([pid]), 3)


def test_a_slow_reader_gets_all_of_it(stay):
    client, monitor, pid = blocked(stay)
    frame, out, _ = client.answer(3)
    assert frame[0] == "reply" and out.count(b"\n+") == 200 * 1001, (frame, len(out))
