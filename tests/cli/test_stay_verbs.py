"""Verbs that a monitor answers itself, each in a process of its own that it does not wait for."""
import os
import time

from run_fixtures import *  # noqa: F403
from test_stay import Atom, children, stay  # noqa: F401


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
    before = len(os.listdir(f"/proc/{monitor}/fd"))
    for ref in range(40):
        assert client.call("stats", ref)[0][0] == "reply"
    assert settled(lambda: workers(monitor), []) == []
    assert len(os.listdir(f"/proc/{monitor}/fd")) == before
