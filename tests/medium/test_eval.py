"""caisson eval, end to end: a session behind the wall, its gates, its clock, its record."""
import json
import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from run_fixtures import *  # noqa: E402, F403

# A pattern that backtracks for ever: no step of Lua's is counted in it.
STUCK = "('a'):rep(60):find(('a-'):rep(40) .. 'b')"


@pytest.fixture
def evaluate(box):
    """evaluate(CODE, FLAG…) -> status, stdout, stderr."""

    def run(code, *flags, stdin=None):
        return finished(box, "eval", "--medium", "lua", *flags, *([] if code is None else [code]), stdin=stdin)

    return run


@pytest.fixture
def session(box, evaluate):
    yield lambda code, *flags: evaluate(code, "--session", "box", *flags)
    finished(box, "down", "box")


def finished(box, *argv, stdin=None):
    box.give()
    done = box.cli(*argv, input=stdin, timeout=120)
    return done.status, done.text, done.err


def test_value(evaluate):
    assert evaluate("print('hi') return {a = {1, 2}}") == (0, 'hi\n{"a":[1,2]}\n', "")
    assert evaluate("'text'") == (0, "text\n", "")
    assert evaluate("x = 1") == (0, "", "")
    assert evaluate("-", stdin=b"1 + 1")[1] == "2\n"
    status, out, err = evaluate("print('a') os.execute('ls')")
    assert (status, out) == (1, "a\n") and err == "caisson: code:1: function os.execute is restricted\n"
    told = json.loads(evaluate("'\\255'", "--json")[1])
    assert told == {"value": "\ufffd", "reason": None, "output": "", "done": False}
    told = json.loads(evaluate("print('a\\255b', '\\u{e9}') error('\\xe2\\x82c', 0)", "--json")[1])
    assert told == {"value": None, "reason": "\ufffd\ufffdc", "output": "a\ufffdb\t\u00e9\n", "done": False}
    # A key does not end at its zero byte, nor take the place of another.
    assert json.loads(evaluate("{['a\\0b'] = 1, a = 2, ['\\0'] = 3}")[1]) == {"a\\u0000b": 1, "a": 2, "\\u0000": 3}


def test_files(box, evaluate):
    (box.ws / "a.txt").write_text("one\ntwo\n")
    (box.ws / "out").symlink_to("/etc/passwd")
    (box.ws / ".env").write_text("SECRET=1")
    (box.ws / "big").write_bytes(b"x" * 300000)
    assert evaluate("read_file('a.txt')") == (0, "one\ntwo\n\n", "")
    assert evaluate("read_file('/workspace/a.txt') == read_file('./a.txt')")[1] == "true\n"
    assert evaluate("#read_file('big')")[1] == "300000\n"
    assert json.loads(evaluate("search('^t')")[1]) == [{"path": "a.txt", "line": 2, "text": "two"}]
    assert {"a.txt", "big"} <= {row["name"] for row in json.loads(evaluate("list_dir()")[1])}
    for code, reason in [("read_file('out')", "leads out of the workspace"), ("read_file('../x')", "leads out of the workspace"),
                         ("read_file('/etc/passwd')", "outside of /workspace"), ("read_file()", "path"),
                         ("read_file({path = 1})", "string"), ("search('(')", "search"), ("list_dir('a.txt')", "a.txt")]:
        status, _, err = evaluate(code)
        assert status == 1 and (reason in err or reason == "search"), err
    assert "SECRET" not in evaluate("read_file('.env')")[1]  # what the policy hides


def test_session(session):
    assert session("x = {1} function f() return 2 end") == (0, "", "")
    assert session("x[1] + f()")[1] == "3\n"
    assert session("y = 1 error('no')")[0] == 1
    status, _, err = session("z = 1; " + STUCK, "--timeout", "1s")
    assert (status, err) == (1, "caisson: port code evaluation timed out\n")
    # A fresh evaluator, with what the last answer had: f was a function.
    assert session("{x[1], y, z == nil, f == nil}")[1] == "[1,1,true,true]\n"
    assert session("done(x)")[1] == "[1]\n"
    status, _, err = session("1")
    assert status == 125 and "called done" in err


def test_timeout_kills(box, session):
    """Whatever its clock ends is dead when it is told."""
    assert session(STUCK, "--timeout", "1s")[0] == 1
    listed = finished(box, "exec", "box", "--", "sh", "-c", "cat /proc/[0-9]*/comm")[1]
    assert "caisson-lua" not in listed and "caisson-evaluat" not in listed


def test_limits_of_commands_are_its_own(box, session):
    assert finished(box, "up", "box", "-l", "command=1s", "-l", "budget=2s")[0] == 0
    started = time.monotonic()
    assert session(STUCK, "--timeout", "100s")[2] == "caisson: port code evaluation timed out\n"
    assert session(STUCK)[0] == 1 and session(STUCK)[0] != 0
    assert time.monotonic() - started < 50
    status, _, err = session("1")
    assert status == 125 and "limits.budget" in err, err
    assert finished(box, "exec", "box", "--", "true")[0] == 125


def test_gates_of_the_policy(box, evaluate):
    gate = box.base / "gate"
    gate.write_text("#!/bin/sh\ncat\n")
    gate.chmod(0o755)
    schema = '{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}'
    policy = box.base / "policy.yaml"
    policy.write_text(f"version: 1\ngates: [{{name: ticket, command: [{gate}], schema: {schema}}}]\n")
    flags = "--policy", str(policy)
    assert evaluate("ticket{id = 7}", *flags) == (0, '{"id":7}\n', "")
    status, _, err = evaluate("ticket{id = 'x'}", *flags)
    assert status == 1 and "integer" in err
    assert "names and values" in evaluate("ticket(7)", *flags)[2]
    assert evaluate("ticket{id = 7}")[0] == 1  # no such function without the policy


def test_record(box, session):
    session("echo(5) read_file('nothing')")
    runs = list(box.runs.glob("*/logs/events.jsonl"))
    events = [json.loads(line) for line in runs[-1].read_text().splitlines()]
    calls = [event["payload"] for event in events if event["event"] == "GateCalled"]
    assert [(call["gate"], call["is_error"]) for call in calls] == [("echo", False), ("read_file", True)]
    assert calls[1]["args"] == {"path": "nothing"}


def test_command_line(evaluate, box):
    assert evaluate("1", "--sandbox", "dune")[0] != 0
    status, out, _ = evaluate(None, "--describe")
    assert status == 0 and "coroutine: " in out and "read_file(path)" in out
    assert finished(box, "eval", "--medium", "cobol", "1")[0] != 0


def test_hostile_sizes(evaluate):
    assert evaluate("('x'):rep(3000000)")[0] == 0
    assert "too large" in evaluate("('x'):rep(8000000)")[1]
    assert "too large" in evaluate("t = {} for i = 1, 250000 do t[i] = i end return t")[1]
    assert evaluate("-", stdin=b"x" * 70000)[2].startswith("caisson: the code is too long")
