"""A client that misbehaves: each mistake is answered or passed over, and the next request is as good as any."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from mcp_clients import FIRST, text

PARSE, INVALID, NO_METHOD, PARAMS = -32700, -32600, -32601, -32602


def still_there(client):
    assert client.ask("ping")["result"] == {}


def refused(client, line, code):
    client.write(line + b"\n")
    error = client.message()
    assert error["error"]["code"] == code and error["error"]["message"], error
    still_there(client)
    return error


def test_before_initialize(raw):
    client = raw(hello=False)
    assert client.ask("ping")["result"] == {}
    answer = client.ask("tools/list")
    assert answer["error"]["code"] == INVALID and "initialize" in answer["error"]["message"]
    assert client.ask("initialize", {})["error"]["code"] == PARAMS
    assert client.hello()["protocolVersion"] == "2025-11-25"
    assert client.ask("initialize", FIRST)["error"]["code"] == INVALID
    assert client.ask("tools/list")["result"]["tools"]


@pytest.mark.parametrize("asked, given", [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"),
                                          ("2025-03-26", "2025-03-26"), ("2024-11-05", "2024-11-05"),
                                          ("1999-01-01", "2025-11-25")])
def test_versions(raw, asked, given):
    assert raw(hello=False).hello(asked)["protocolVersion"] == given


def test_unknown_methods_and_notifications(raw):
    client = raw()
    assert client.ask("tools/none")["error"]["code"] == NO_METHOD
    client.send({"jsonrpc": "2.0", "method": "notifications/never", "params": {"a": [1]}})
    client.send({"jsonrpc": "2.0", "id": 77, "result": {}})
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled"})
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "never"}})
    still_there(client)
    assert client.ask("tools/call", {"name": "Nothing"})["error"]["code"] == PARAMS
    assert client.ask("tools/call", {"name": "Commit"})["error"]["code"] == PARAMS  # not lent
    assert client.ask("logging/setLevel", {"level": "loud"})["error"]["code"] == PARAMS
    assert client.ask("resources/read", {"uri": "caisson://runs/../../etc/passwd"})["error"]["code"] == -32002


@pytest.mark.parametrize("line, code", [
    (b"hello", PARSE), (b"{", PARSE), (b'{"jsonrpc":"2.0","id":1,"id":1}', PARSE), (b"1", INVALID), (b"null", INVALID),
    (b'"text"', INVALID), (b"{}", INVALID), (b"[]", INVALID), (b'{"jsonrpc":"2.0"}', INVALID),
    (b'{"id":1,"method":"ping"}', INVALID), (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', INVALID),
    (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', INVALID), (b'{"jsonrpc":"2.0","id":1,"method":5}', INVALID),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID), (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', INVALID),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', PARAMS),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', PARAMS),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":{}}}', PARAMS),
    (b'{"jsonrpc":"2.0","id":"\xff\xfe","method":"ping"}', PARSE), (b'{"jsonrpc":"2.0","id":1,"method":"pi\0ng"}', PARSE),
    (b'{"a\\u0000b":1}', PARSE), (b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}', PARSE),
    (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', PARSE),
    (b"[" * 100000, INVALID), (b'{"a":' * 2000, INVALID), (b"[" + b"1," * 300000 + b"1]", INVALID),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID),
], ids=lambda value: repr(value)[:50] if isinstance(value, bytes) else "")
def test_what_is_no_message(raw, line, code):
    refused(raw(), line, code)


def test_a_batch_where_the_version_has_them(raw):
    client = raw(hello=False)
    client.hello("2025-03-26")
    client.send([{"jsonrpc": "2.0", "id": "a", "method": "ping"}, 5, {"jsonrpc": "2.0", "id": "b", "method": "ping"}])
    assert client.answer("a")["result"] == {} and client.answer("b")["result"] == {}
    assert any(message["error"]["code"] == INVALID for message in client.kept)


def test_a_line_of_100_megabytes_is_not_kept(raw):
    client = raw()
    piece = b'"' + b"x" * ((1 << 20) - 1)
    most = 0
    for _ in range(100):
        client.write(piece)
        most = max(most, resident(client.process.pid))
    client.write(b"\n")
    assert "16 MiB" in client.message()["error"]["message"]
    still_there(client)
    assert client.message(0.1) is None  # said once
    assert most < 64 << 20


def resident(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) << 10


def test_the_largest_message(raw, project):
    client = raw("--rw")
    content = "é" * (7 << 20)
    assert client.tool("Write", path="big", content=content)["structuredContent"]["bytes"] == len(content.encode())
    assert (project / "big").read_text() == content


def test_half_a_line_and_silence(raw):
    client = raw()
    client.write(b'{"jsonrpc":"2.0","id":"slow","me')
    assert client.message(0.3) is None
    client.write(b'thod":"ping"}\r\n\n  \n')
    assert client.answer("slow")["result"] == {}
    for byte in b'{"jsonrpc":"2.0","id":"slower","method":"ping"}\n':
        client.write(bytes([byte]))
    assert client.answer("slower")["result"] == {}


def test_the_last_line_needs_no_newline(caisson, project, env):
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    done = subprocess.run([caisson, "mcp"], input=line, stdout=subprocess.PIPE, cwd=project, env=env, timeout=20, check=True)
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_arguments(raw):
    client = raw()
    for name, arguments, words in [
        ("Read", {}, ["path is missing", "offset?"]),
        ("Read", {"path": 5}, ["path is a text"]),
        ("Read", {"file_path": "a"}, ['no argument "file_path"', "path"]),
        ("Read", {"path": "a", "offset": 0}, ["at least 1"]),
        ("Read", {"path": "a", "offset": "3"}, ["whole number"]),
        ("Read", {"path": "a", "limit": 2001}, ["at most 2000"]),
        ("Read", {"path": "a\0b"}, ["NUL"]),
        ("Bash", {"command": "echo \0"}, ["NUL"]),
        ("Bash", {"command": "true", "run_in_background": "yes"}, ["true or false"]),
        ("Diff", {"paths": ["a", 5]}, ["list of texts"]),
        ("Edit", {"path": "a", "old_text": "", "new_text": "b"}, ["empty"]),
        ("Grep", {"pattern": "("}, ["invalid_regex"]),
        ("Glob", {"pattern": "{a"}, ["invalid_pattern"]),
        ("Logs", {"tag": "none"}, ["enoent"]),
        ("Kill", {"tag": "none"}, ["enoent"]),
    ]:
        result = client.tool(name, **arguments)
        assert result["isError"] and all(word in text(result) for word in words), (name, arguments, result)
    answer = client.ask("tools/call", {"name": "Read", "arguments": ["path"]})
    assert answer["result"]["isError"]


def test_paths_outside(raw, project):
    client = raw()
    (project / "out").symlink_to("/etc")
    for path in ("../../etc/passwd", "/etc/shadow", "/root/.ssh/id_rsa", "/nowhere", "/proc/1/environ", "out/shadow",
                 "/workspace/../../etc/shadow"):
        result = client.tool("Read", path=path)
        assert result["isError"] and "/workspace" in text(result), (path, result)
    assert "in here it is /workspace/a/b" in text(client.tool("Read", path=f"{project}/a/b"))
    assert client.tool("Write", path="/etc/x", content="")["isError"]
    assert client.tool("Write", path="../x", content="")["isError"]
    assert not (project.parent / "x").exists()


def test_an_id_is_one_at_a_time(raw):
    client = raw()
    client.start("tools/call", {"name": "Bash", "arguments": {"command": "sleep 1; echo first"}}, wanted="same")
    client.start("tools/call", {"name": "Bash", "arguments": {"command": "echo second"}}, wanted="same")
    assert client.answer("same")["error"]["code"] == INVALID
    assert "first" in text(client.answer("same")["result"])
    client.start("tools/call", {"name": "Bash", "arguments": {"command": "echo third"}}, wanted="same")
    assert "third" in text(client.answer("same")["result"])


def test_output_that_is_no_text(raw, project):
    client = raw()
    result = client.tool("Bash", command=r"printf 'a\377b\000c\303\n\355\240\200 é'")
    assert "é" in result["structuredContent"]["output"] and "�" in result["structuredContent"]["output"]
    (project / "latin1").write_bytes(b"caf\xe9\n")
    assert "caf�" in text(client.tool("Read", path="latin1"))
    (project / "name\n\xff".encode("latin-1").decode("utf-8", "surrogateescape")).write_text("x")
    assert client.tool("Glob", pattern="*")["structuredContent"]["count"] == 2
    assert client.tool("Bash", command="head -c 300000 /dev/urandom")["structuredContent"]["omitted_bytes"] > 200000


def beats(client):
    time.sleep(0.1)
    return text(client.tool("Bash", command="cat /tmp/beats 2>/dev/null | wc -l")).strip()


def test_a_cancel(raw):
    client = raw()
    wanted = client.call("Bash", command="while echo >>/tmp/beats; do sleep 0.02; done")
    end = time.monotonic() + 5
    while int(beats(client)) < 2:  # it runs
        assert time.monotonic() < end
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": wanted, "reason": "enough"}})
    end = time.monotonic() + 5
    while beats(client) != beats(client) and time.monotonic() < end:
        time.sleep(0.05)
    before = beats(client)
    assert beats(client) == before
    assert all(message.get("id") != wanted for message in client.kept)  # no answer to who does not wait
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": wanted}})
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": client.last}})
    still_there(client)


def test_a_stuck_command_holds_up_nobody_and_too_many_are_told(raw, project):
    (project / "a").write_text("text\n")
    client = raw()
    client.tool("Read", path="a")
    stuck = [client.call("Bash", command="sleep 30") for _ in range(15)]
    began = time.monotonic()
    assert "text" in text(client.tool("Read", path="a"))
    assert time.monotonic() - began < 2
    stuck += [client.call("Bash", command="sleep 30") for _ in range(70)]
    late = client.call("Read", path="a")
    result = client.answer(late)["result"]
    assert result["isError"] and "busy" in text(result)
    for wanted in stuck:
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": wanted}})
    assert "text" in text(client.tool("Read", path="a"))


# ---- ends ---------------------------------------------------------------------------------


def children(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def nothing_left(pids, seconds=5):
    end = time.monotonic() + seconds
    while any(map(is_alive, pids)):
        assert time.monotonic() < end, pids
        time.sleep(0.02)


def busy_one(raw, **more):
    """A client with a sandbox in which a command runs; (client, all processes of its)."""
    client = raw(**more)
    client.tool("Bash", command="sleep 100", run_in_background=True)
    client.call("Bash", command="sleep 100")
    client.tool("Bash", command="true")
    monitors = children(client.process.pid)
    assert monitors
    return client, [client.process.pid, *monitors, *(child for pid in monitors for child in children(pid))]


def test_stdin_closes(raw):
    client, pids = busy_one(raw)
    client.process.stdin.close()
    assert client.process.wait(timeout=15) == 0
    nothing_left(pids, 0.5)


def test_it_closes_in_the_middle_of_a_line(raw):
    client, pids = busy_one(raw)
    client.write(b'{"jsonrpc":"2.0","id":5,"meth')
    client.process.stdin.close()
    assert client.process.wait(timeout=15) == 0
    nothing_left(pids, 0.5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal(raw, number):
    client, pids = busy_one(raw)
    client.process.send_signal(number)
    client.process.wait(timeout=10)
    nothing_left(pids)


def test_nobody_reads_stdout(raw):
    """Answers wait in bounded memory, and the end comes all the same."""
    client, pids = busy_one(raw)
    client.process.stdout.close()
    client.start("ping")
    assert client.process.wait(timeout=15) == 0
    nothing_left(pids, 0.5)


def test_a_reader_that_is_stuck(raw, project):
    (project / "long").write_text("x" * 49000 + "\n")
    client = raw()
    client.tool("Read", path="long")
    fd = client.process.stdin.fileno()
    os.set_blocking(fd, False)
    for number in range(3000):
        call = {"jsonrpc": "2.0", "id": f"r{number}", "method": "tools/call",
                "params": {"name": "Read", "arguments": {"path": "long"}}}
        try:
            os.write(fd, json.dumps(call).encode() + b"\n")
        except BlockingIOError:
            break
    time.sleep(0.5)
    assert resident(client.process.pid) < 128 << 20
    client.process.stdin.close()
    assert client.process.wait(timeout=15) == 0


def test_a_monitor_that_was_killed(raw, project):
    client = raw()
    client.tool("Write", path="a", content="x")
    [monitor] = children(client.process.pid)
    os.kill(monitor, signal.SIGKILL)
    result = client.tool("Read", path="a")
    assert result["isError"] and "lost" in text(result) and "caisson runs diff" in text(result)
    result = client.tool("Bash", command="ls | wc -l")
    assert "new one" in text(result) and result["structuredContent"]["output"].strip() == "0"


def test_a_sandbox_that_cannot_be_had(raw, project):
    client = raw("--tier", "strict")
    result = client.tool("Read", path="a")
    assert result["isError"] and "strict" in text(result)
    still_there(client)


def test_silence_keeps_a_sandbox_unless_somebody_said_how_long(raw, project):
    def keeps(client):
        return b"--keep-alive" in pathlib.Path(f"/proc/{client.process.pid}/cmdline").read_bytes().split(b"\0")

    assert keeps(raw())
    assert not keeps(raw("-l", "idle=10m"))
    (project / "caisson.yaml").write_text("version: 1\nlimits: {idle: 10m}\n")
    assert not keeps(raw())
