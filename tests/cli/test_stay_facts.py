"""What a client and the record are told of a command: facts while it runs, its end whatever ends it."""
import json
import os
import signal
import socket
import struct
import subprocess

from run_fixtures import *  # noqa: F403
from test_stay import WAIT, Atom, agent, decode, stay, wait_for  # noqa: F401

TRIES = b"echo x >/etc/nowhere; sleep 30"


def ends(stay):
    """Of ExecEnded in the newest record: reason and status of each call, in order of their start."""
    logs = max(stay.box.runs.glob("2*/logs/events.jsonl"), key=lambda path: path.stat().st_mtime)
    events = [json.loads(line) for line in logs.read_text().splitlines()]
    started = [e["payload"]["call"] for e in events if e["event"] == "ExecStarted" and "call" in e["payload"]]
    ended = {e["payload"]["call"]: e["payload"]["termination"] for e in events if e["event"] == "ExecEnded" and "call" in e["payload"]}
    return [ended.get(call) and (ended[call]["reason"], ended[call]["exit_code"], ended[call]["signal"]) for call in started]


def test_a_fact_is_told_while_the_command_runs(stay):
    client, other = stay.started().client(), stay.client()
    client.send("call", 7, Atom("exec"), {"command": TRIES})
    frame = client.frame()
    assert (frame[0], frame[1]["ref"], frame[1]["path"]) == ("fact", 7, b"/etc/nowhere"), frame
    assert frame[1]["event"] == b"FilesystemWriteViolation" and b"/etc/nowhere" in frame[1]["say"]
    client.send("cancel", 7)
    assert client.answer(7)[0][2]["violations"][0]["path"] == b"/etc/nowhere"
    other.send("call", 1, Atom("ps"), {})
    assert other.frame()[0] == "reply"  # nothing of another client's command came before


def test_each_end_is_on_record(stay):
    client = stay.started().client()
    client.sh("exit 3")
    for tag, text in ((b"by itself", b"exit 7"), (b"killed", b"sleep 60"), (b"stays", b"sleep 60")):
        client.call("exec", command=text, detach=True, tag=tag)
    client.call("kill", tag=b"killed", signal=9)
    client.call("wait", tag=b"killed", timeout_ms=5000)
    client.call("wait", tag=b"by itself", timeout_ms=5000)
    assert client.call("exec", command=b"true", detach=True, tag=b"stays")[0][2] == "eexist"
    leaver = stay.client()
    leaver.send("call", 1, Atom("exec"), {"command": b"echo up; sleep 60"})
    assert leaver.frame()[0] == "data"
    leaver.socket.close()
    client.send("call", 9, Atom("exec"), {"command": b"echo up; sleep 60"})
    assert client.frame()[0] == "data"
    assert wait_for(lambda: len([c for c in client.call("ps", ref=10)[0][2]["commands"] if c["state"] == "running"]) == 2, 3)
    stay.down()
    assert wait_for(lambda: not stay.path().exists(), 3)
    assert ends(stay) == [("exited", 3, None), ("exited", 7, None), ("signaled", None, 9), ("cancelled", None, None), ("start_failed", None, None),
                          ("cancelled", None, 9), ("cancelled", None, None)]


def test_what_an_agents_death_leaves_is_lost(stay):
    client = stay.started().client()
    client.call("exec", command=b"sleep 60", detach=True, tag=b"a")
    client.send("call", 9, Atom("exec"), {"command": b"echo up; sleep 60"})
    assert client.frame()[0] == "data"
    os.kill(agent(stay.monitor()), signal.SIGKILL)
    assert wait_for(lambda: not stay.path().exists(), 3)
    assert ends(stay) == [("lost", None, None)] * 2


def test_output_is_cut_to_the_byte(stay):
    client = stay.started("-l", "output=100000").client()
    done = client.sh("head -c 60000 /dev/zero; sleep 0.1; head -c 60000 /dev/zero; sleep 9")
    assert (done["reason"], len(done["out"])) == ("output", 100000), done["reason"]
    assert done["stdout_bytes"] - done["output_cut_bytes"] == 100000


def test_a_start_that_takes_too_long_is_none(stay):
    done = stay.up(policy="version: 1\nlimits: {startup: 1ms}\n")
    assert (done.returncode, done.stdout) == (125, "") and "limits.startup" in done.stderr, done


def test_a_start_that_fails_says_bye(stay):
    """As a frame, too: not every program reads a monitor's stderr."""
    ours, its = socket.socketpair()
    ours.settimeout(WAIT)
    policy = stay.box.policy("version: 1\nlimits: {startup: 1ms}\n")
    stay.box.give()
    process = subprocess.Popen([stay.box.caisson, "monitor", "--fd", str(its.fileno()), *policy], pass_fds=[its.fileno()],
                               cwd=stay.box.ws, env=stay.box.env, stderr=subprocess.PIPE, **stay.box.as_owner())
    its.close()
    data = b""
    while piece := ours.recv(65536):
        data += piece
    assert process.wait(WAIT) == 125
    size = struct.unpack(">I", data[:4])[0]
    name, said = decode(data[4:4 + size])
    assert name == "bye" and said["reason"] == b"timeout" and b"limits.startup" in said["text"], said


def test_a_deadline_says_whose_it_was(stay):
    client = stay.started("-l", "command=300ms").client()
    own, policys = client.sh("sleep 9", timeout_ms=100), client.sh("sleep 9")
    assert b"100ms that this call was given" in own["violations"][0]["say"] and own["violations"][0]["rule"] == b"timeout: 100ms", own
    assert b"300ms of the command clock" in policys["violations"][0]["say"] and policys["violations"][0]["rule"] == b"limits.command: 300ms"


def test_what_commands_tried_is_in_the_result(stay):
    client = stay.started("-l", "output=1MiB").client()
    for _ in range(3):
        client.sh("echo x >/etc/nowhere")
    client.call("exec", command=b"echo x >/etc/late", detach=True, tag=b"t")
    client.call("wait", tag=b"t", timeout_ms=5000)
    client.sh("yes")
    stay.down()
    assert wait_for(lambda: not stay.path().exists(), 3)
    result = stay.last_result()
    assert result["limits"]["budget_ms"] is None and result["limits"]["idle_ms"] == 30 * 60000
    told = {(v["event"], v["detail"].get("path")): v["count"] for v in result["violations"]}
    assert told == {("FilesystemWriteViolation", "/etc/nowhere"): 3, ("FilesystemWriteViolation", "/etc/late"): 1, ("OutputLimitViolation", None): 1}, told
    logs = max(stay.box.runs.glob("2*/logs/events.jsonl"), key=lambda path: path.stat().st_mtime)
    lines = [json.loads(line) for line in logs.read_text().splitlines()]
    assert len([e for e in lines if e["event"] == "Violation"]) == 5, "each command's own, once"


def test_without_a_command_nothing_is_to_be_seen(stay):
    stay.started()
    stay.down()
    assert wait_for(lambda: not stay.path().exists(), 3)
    why = stay.last_result()["not_observed_why"]
    assert set(why.values()) == {"no command was run"} or "yama" not in json.dumps(why), why


def test_a_budget_is_of_all_commands_together(stay):
    client = stay.started(policy="version: 1\nlimits: {budget: 700ms, command: 500ms}\n").client()
    assert client.sh("sleep 0.3")["reason"] == "exited"
    done = client.sh("sleep 5")
    assert (done["reason"], done["clock"]) == ("timeout", "budget") and done["violations"][0]["rule"].startswith(b"limits.budget"), done
    frame = client.call("exec", command=b"true")[0]
    assert frame[0] == "failed" and b"limits.budget" in frame[3], frame
    assert client.call("read", path=b"missing")[0][2] == "enoent", "files are not commands"


def test_a_crowd_is_served(stay):
    """Ninety at once, each with one call."""
    stay.started()
    done = [subprocess.Popen([stay.box.caisson, "exec", "t", "--", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             env=stay.box.env | {"XDG_RUNTIME_DIR": str(stay.runtime)}, **stay.box.as_owner()) for _ in range(90)]
    said = [(process.wait(60), process.stderr.read()) for process in done]
    assert all(status == 0 or "too many calls at once" in text for status, text in said), said
