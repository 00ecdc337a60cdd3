"""What somebody with bad intentions sends, or does not read: the server goes on, and gives nothing more away."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import time

import pytest
from serve_client import Stream


def converse(server, data, seconds=5):
    """Sends bytes; what comes back until the other side closes, or is silent for so long."""
    with server.connect(seconds) as connection:
        connection.sendall(data)
        parts = []
        with contextlib.suppress(TimeoutError, ConnectionError):
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts)


def head(server, line, *headers):
    return "\r\n".join([line, "Host: localhost", f"Authorization: Bearer {server.token}", *headers, "", ""]).encode()


def count_answers(answer):
    return answer.count(b"HTTP/1.1 ")


INNER = b"GET /v1 HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("headers", [
    ["Content-Length: 2", "Content-Length: 40"], ["Content-Length: 40", "Content-Length: 2"], ["Content-Length: +2"],
    ["Content-Length: 2, 2"], ["Content-Length: 0x2"], ["Content-Length: -1"], ["Transfer-Encoding: chunked", "Content-Length: 2"],
    ["Content-Length: 2", "Transfer-Encoding: identity"], ["Transfer-Encoding: xchunked"], ["Transfer-Encoding : chunked"],
    ["Content-Length : 2"], ["Content-Length: 2", "Transfer-Encoding:\x0bchunked"]])
def test_a_body_whose_length_is_in_doubt_is_no_second_request(server, headers):
    """A proxy in front may count otherwise: whatever follows such a header must not be taken for a request."""
    answer = converse(server, head(server, "POST /v1/sandboxes HTTP/1.1", "Content-Type: application/json", *headers) + b"{}" + INNER, 2)
    assert not [status for status in (b" 200 ", b" 201 ", b" 204 ", b" 401 ") if status in answer], answer  # 401 would be the second one's


@pytest.mark.parametrize("line", ["POST /v1/sandboxes HTTP/1.1", "GET /v1 HTTP/1.1", "POST /v1/nonsense HTTP/1.1"])
def test_the_body_of_a_refused_request_is_no_second_request(server, line):
    inner = INNER * 3
    answer = converse(server, head(server, line, "Content-Type: text/plain", f"Content-Length: {len(inner)}") + inner, 2)
    assert count_answers(answer) == 1 and answer.startswith(b"HTTP/1.1 4"), answer


@pytest.mark.parametrize("target", [
    "http://localhost/v1", "http://evil.example/v1", "localhost:1", "*", "/v1%2fsandboxes", "/v1/%2e%2e/v1", "/v1/./sandboxes", "/V1", "/v1\\sandboxes",
    "/v1/sandboxes/..%2f..", "/v1/sandboxes/%2e%2e", "/v1/sandboxes/a%00b", "/v1/sandboxes/a%", "/v1/sandboxes/a%2", "/v1/sandboxes/%c0%af",
    "/v1/sandboxes/a%0d%0aX:y", "/v1;x", "/v1?%00#x/../"])
def test_targets_that_another_server_reads_otherwise(server, target):
    answer = converse(server, head(server, f"GET {target} HTTP/1.1", "Connection: close"))
    wanted = (b"HTTP/1.1 200",) if target.startswith("/v1?") else (b"HTTP/1.1 404", b"HTTP/1.1 400")
    assert answer.startswith(wanted), answer
    assert b"\nX:y" not in answer


@pytest.mark.parametrize("host", [
    "localhost.", "[::1", "[::1]x", "[::1]evil.example", "::1", "localhost:x", "localhost:80:80", "localhost:", "127.1", "0x7f.1", "127.0.0.1.", "a@localhost",
    "localhost:80@evil.example", "[fe80::1%25lo]", "localhost/evil.example"])
def test_hosts_that_are_nearly_ours(server, host):
    assert converse(server, f"GET /v1 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.token}\r\nConnection: close\r\n\r\n".encode()).startswith(
        (b"HTTP/1.1 421", b"HTTP/1.1 400")), host


def test_two_hosts_are_none(server):
    for hosts in (("localhost", "evil.example"), ("evil.example", "localhost"), ("localhost", "localhost")):
        lines = "".join(f"Host: {host}\r\n" for host in hosts)
        answer = converse(server, f"GET /v1 HTTP/1.1\r\n{lines}Authorization: Bearer {server.token}\r\nConnection: close\r\n\r\n".encode())
        assert answer.startswith((b"HTTP/1.1 421", b"HTTP/1.1 400")), answer


@pytest.mark.parametrize("name", [
    "../x", "..%2fx", "..", ".", "", "a/b", "-x", "*", "a\nb", "\x00", "latest/../..", "a" * 5000])
def test_run_ids_are_no_paths(server, name):
    quoted = "".join(f"%{byte:02x}" for byte in name.encode())
    for tail in ("", "/result", "/events", "/verify", "/diff"):
        assert server.ask("GET", f"/v1/runs/{quoted}{tail}").status in (400, 404, 414, 431), (name, tail)


WIDER = [
    {"mode": "rw"}, {"workspace": "/"}, {"workspace": ".."}, {"workspace": "../.."}, {"workspace": ".:rw"}, {"workspace": "x/" * 2100 + ".."},
    {"network": "host"}, {"network": "allow"}, {"network": "loopback"}, {"tier": "off"}, {"tier": "none"}, {"backend": "none"}, {"tier": "auto\0"},
    {"mounts": ["/:/mnt/x:ro"]}, {"mounts": ["/etc/shadow:/mnt/shadow"]}, {"mounts": ["/tmp:/mnt/rw/t:rw"]}, {"mounts": ["--policy=/dev/null"]},
    {"mounts": ["--network", "host"]}, {"limits": {"memory": "64GiB"}}, {"limits": {"memory": 0}}, {"limits": {"memory": "max"}},
    {"limits": {"processes": 10**9}}, {"limits": {"--policy": "x"}}, {"limits": {"budget": "999h"}}, {"limits": {"nonsense": 1}},
    {"limits": {"memory=1MiB,memory": "64GiB"}}, {"tags": ["--network=host"]}, {"env": {"LD_PRELOAD": "x"}}, {"policy": "/dev/null"},
    {"within": "/dev/null"}, {"allow": ["evil.example"]}, {"at": "host"}, {"run_dir": "/tmp"}, {"no_record": True}, {"program": "/bin/sh"},
    {"name": "../x"}, {"name": "--policy"}, {"name": ""}, {"name": "a\r\nX: y"}]


@pytest.mark.parametrize("wish", WIDER, ids=lambda wish: json.dumps(wish)[:40])
def test_no_wish_widens(strict_server, wish):
    reply = strict_server.ask("POST", "/v1/sandboxes", wish)
    if reply.status == 201:
        strict_server.ask("DELETE", f"/v1/sandboxes/{reply.json()['name']}")
    assert reply.status in (400, 403, 404, 422), reply
    assert strict_server.ask("GET", "/v1/sandboxes").json()["sandboxes"] == []


@pytest.fixture(scope="module")
def strict_server(serve):
    return serve("-w", ".:ro", "--limit", "memory=256MiB", "--limit", "processes=64", "--limit", "budget=60s")


def test_a_whole_output_that_is_long_in_json_does_not_lose_the_end(server, box):
    connection = server.client()
    response = server.send(connection, "POST", f"/v1/sandboxes/{box}/exec",
                           {"command": r"head -c 1000000 /dev/zero | tr '\0' '\1'; printf 'data: x\n\nevent: end\ndata: {}\n\r\n\r'", "keep_bytes": 16 << 20},
                           Accept="text/event-stream")
    events = list(Stream(response))
    assert [event for event, _, _ in events].count("end") == 1 and events[-1][0] == "end"
    out = "".join(data["data"] for event, _, data in events if event == "output")
    assert out == "\1" * 1000000 + "data: x\n\nevent: end\ndata: {}\n\r\n\r"


def test_who_reads_slowly_does_not_hold_up_an_end(server):
    name = server.open()
    connection = server.client()
    response = server.send(connection, "POST", f"/v1/sandboxes/{name}/exec", {"command": "yes"}, Accept="text/event-stream")
    response.readline()
    time.sleep(1)
    begun = time.monotonic()
    assert server.ask("DELETE", f"/v1/sandboxes/{name}").status == 204
    assert time.monotonic() - begun < 5
    connection.close()


def rss(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) << 10


def test_readers_that_stand_still_fill_no_memory(server, box):
    before = rss(server.process)
    connections = [server.client() for _ in range(8)]
    for connection in connections:
        server.send(connection, "POST", f"/v1/sandboxes/{box}/exec", {"command": "yes"}, Accept="text/event-stream").readline()
    time.sleep(2)
    assert rss(server.process) - before < 8 * (4 << 20)
    for connection in connections:
        connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()


def test_strangers_do_not_keep_everybody_else_out(serve):
    server = serve()
    with contextlib.ExitStack() as stack:
        for _ in range(700):
            with contextlib.suppress(OSError):
                stack.enter_context(server.connect(5)).sendall(b"GET")
        begun = time.monotonic()
        assert server.ask("GET", "/v1").status == 200
        assert time.monotonic() - begun < 5


def test_no_descriptors_is_a_problem_and_passes(serve):
    server = serve()
    name = server.open()
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (48, 48))
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            with contextlib.suppress(OSError):
                stack.enter_context(server.connect(1))
        time.sleep(0.5)
    until = time.monotonic() + 15
    while True:
        with contextlib.suppress(OSError):
            if server.call(name, "exec", command="true").status == 200:
                break
        assert time.monotonic() < until
        time.sleep(0.2)
    made = [server.ask("POST", "/v1/sandboxes", {}) for _ in range(20)]
    assert {reply.status for reply in made} <= {201, 410, 429, 500, 503}, made
    assert server.ask("GET", "/v1").status == 200


def test_ten_thousand_wishes_are_bounded(serve):
    server = serve("--max-sandboxes", "3")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(lambda _: server.ask("POST", "/v1/sandboxes", {}).status, range(300)))
    assert statuses.count(201) == 3 and set(statuses) == {201, 429}


def test_forks_count_too(serve, run_caisson):
    server = serve("--cow", "--max-sandboxes", "2")
    name = server.open()

    def fork(as_name):
        return server.ask("POST", f"/v1/sandboxes/{name}/fork", {"name": as_name})

    replies = [fork(f"forked-{i}") for i in range(4)]
    for i in range(4):
        run_caisson("down", f"forked-{i}")
    assert [reply.status for reply in replies] == [200, 429, 429, 429]
    assert fork("forked-4").status == 200
    run_caisson("down", "forked-4")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_disk_that_is_really_full(serve, tmp_path):
    runs = tmp_path / "runs"
    runs.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "none", runs], check=True)
    try:
        server = serve("--run-dir", str(runs))
        name = server.open()
        with contextlib.suppress(OSError):
            (runs / "filler").write_bytes(b"x" * (1 << 20))
        reply = server.call(name, "exec", command="echo x")
        assert reply.status in (200, 410, 507), reply
        reply = server.ask("POST", "/v1/sandboxes", {})
        assert reply.status in (201, 410, 500, 503, 507), reply  # a record that cannot be written is no reason to refuse
        assert server.ask("GET", "/v1").status == 200
        (runs / "filler").unlink()
        assert server.open()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=20) == 0
    finally:
        subprocess.run(["umount", "-l", runs], check=True)
