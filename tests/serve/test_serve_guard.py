"""Who may not ask: no token, another origin, a name that is not ours, another user; and bad requests."""
import json
import os
import signal
import socket
import subprocess
import time

import pytest


def problem(reply, status, code):
    assert reply.status == status, reply
    assert reply.headers["Content-Type"] == "application/problem+json"
    told = reply.json()
    assert (told["status"], told["code"]) == (status, code) and told["detail"] and told["type"].startswith("urn:")
    return reply


def raw(server, text, timeout=30):
    """Sends bytes as they are; all that comes back until the other side closes."""
    with server.connect(timeout) as connection:
        connection.sendall(text if isinstance(text, bytes) else text.encode())
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
        return b"".join(parts)


@pytest.mark.parametrize("token", [None, "Bearer", "Bearer x", "Bearer " + "0" * 64, "Basic eDp5", "Bearer a b"])
def test_without_the_token_nothing_is_told(server, token):
    for path in ("/v1", "/v1/sandboxes", "/v1/nonsense", "/v1/openapi.json"):
        reply = problem(server.ask("GET", path, Authorization=token), 401, "unauthorized")
        assert reply.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example:80", ""])
def test_a_name_that_was_rebound_is_refused(server, host):
    assert server.ask("GET", "/v1", Host=host).status == 421
    assert server.ask("GET", "/", Host=host).status == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:99", "[::1]:7", "LOCALHOST"])
def test_addresses_and_localhost_are_names_of_ours(server, host):
    assert server.ask("GET", "/v1", Host=host).status == 200


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "https://localhost"}, {"Origin": "http://localhost:1"},
    {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}])
def test_a_page_of_another_origin_is_refused(server, headers):
    for method, path in (("GET", "/v1"), ("POST", "/v1/sandboxes"), ("GET", "/"), ("OPTIONS", "/v1/sandboxes")):
        reply = problem(server.ask(method, path, **headers), 403, "cross_origin")
        assert not [name for name in reply.headers if name.lower().startswith("access-control-")]


def test_our_own_page_may(server):
    origin = {"Host": "localhost:80", "Origin": "http://localhost:80", "Sec_Fetch_Site": "same-origin"}
    assert server.ask("GET", "/v1", **origin).status == 200


def test_a_name_may_be_given(serve):
    server = serve("--host-name", "box.example")
    assert server.ask("GET", "/v1", Host="box.example:80").status == 200
    assert server.ask("GET", "/v1", Host="other.example").status == 421


def test_unknown_paths_and_methods(server):
    for path in ("/v1/nonsense", "/v2", "/v1/sandboxes/", "/v1/sandboxes//exec", "/v1/sandboxes/a/exec/b", "/../etc/passwd",
                 "/%2e%2e/%2e%2e/etc/passwd", "/app.css/../../x", "/..%2f..%2fetc%2fpasswd", "//etc/passwd"):
        problem(server.ask("GET", path), 404, "no_route")
    reply = problem(server.ask("PUT", "/v1/sandboxes"), 405, "method")
    assert reply.headers["Allow"] == "GET, HEAD, POST"
    assert problem(server.ask("POST", "/"), 405, "method").headers["Allow"] == "GET, HEAD"


def test_head_has_no_body(server):
    reply = server.ask("HEAD", "/v1")
    assert reply.status == 200 and reply.body == b"" and reply.headers["Content-Type"] == "application/json"


def test_kept_alive(server):
    connection = server.client()
    for _ in range(20):
        response = server.send(connection, "GET", "/v1")
        assert response.status == 200 and response.read()


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx", None])
def test_other_types_are_refused(server, kind):
    problem(server.ask("POST", "/v1/sandboxes", b"{}", Content_Type=kind), 415, "media_type")


@pytest.mark.parametrize("body", [
    "[]", "{", "null", '{"a":1,"a":1}', '{"name":"a\\u0000b"}', b'{"name":"\xff"}', "[" * 100000, '{"name":' + "[1," * 90000,
    '{"x":"' + "y" * 100 + '"}', '{"argv":"x"}'])
def test_bodies_that_are_none(server, body):
    reply = server.ask("POST", "/v1/sandboxes", body, Content_Type="application/json")
    problem(reply, 400, "invalid")


@pytest.mark.parametrize("path", ["a\0b", {"base64": "YQBi"}, {"base64": "x"}, {"base64": "YQ=="[:3]}, {"base64": 1}, {"x": 1}, 7])
def test_paths_with_a_nul_or_of_another_type(server, box, path):
    reply = server.call(box, "stat", path=path)
    assert reply.status == 400 and reply.json()["code"] == "invalid"


def test_a_name_that_is_no_utf8_comes_and_goes(server, box):
    assert server.call(box, "exec", command="printf x > $'a\\xffb'").json()["exit_code"] == 0
    paths = server.call(box, "glob", pattern="a*").json()["paths"]
    assert paths == [{"base64": "Yf9i"}]
    assert server.call(box, "read", path=paths[0]).json() == {"content": "x"}


def test_a_huge_body_is_refused_before_it_is_read(server):
    head = (f"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
            "Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n")
    for size in (8 * 1024 * 1024 + 1, 10**15):
        assert raw(server, head.format(size)).startswith(b"HTTP/1.1 413")
    assert raw(server, head.format(10**30))[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 413")
    chunked = head.replace("Content-Length: {}", "Transfer-Encoding: chunked")
    assert raw(server, chunked + "5\r\nabcde\r\n").startswith(b"HTTP/1.1 411")


def test_a_long_header_is_refused(server):
    answer = raw(server, "GET /v1 HTTP/1.1\r\nHost: localhost\r\nX: " + "y" * 100000 + "\r\n\r\n")
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize("text", ["\r\n\r\n", "GET\r\n\r\n", "\0\0\0\0\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /v1\0x HTTP/1.1\r\n\r\n"])
def test_what_is_no_http_does_no_harm(server, text):
    with server.connect() as connection:
        connection.sendall(text.encode())
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
    assert server.ask("GET", "/v1").status == 200


def test_a_header_that_comes_slowly_is_hung_up_on(server):
    connections = [server.connect() for _ in range(20)]
    begun = time.monotonic()
    while connections and time.monotonic() - begun < 20:
        for connection in list(connections):
            try:
                connection.sendall(b"G")
            except OSError:
                connections.remove(connection)
                connection.close()
        time.sleep(0.5)
    assert not connections and 8 < time.monotonic() - begun < 15
    assert server.ask("GET", "/v1").status == 200


def test_bounds_of_a_token(serve):
    server = serve("--max-sandboxes", "1", "--max-calls", "2", "--max-rate", "40", "--max-body", "1KiB")
    name = server.open()
    problem(server.ask("POST", "/v1/sandboxes", {}), 429, "sandboxes")
    problem(server.call(name, "write", path="x", content="y" * 2000), 413, "too_large")
    connections = [server.client() for _ in range(2)]
    for connection in connections:
        server.send(connection, "POST", f"/v1/sandboxes/{name}/exec", {"command": "sleep 20"}, Accept="text/event-stream")
    assert problem(server.ask("GET", "/v1"), 429, "calls").headers["Retry-After"]
    for connection in connections:
        connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
    until = time.monotonic() + 10
    while server.ask("GET", "/v1").status != 200 and time.monotonic() < until:
        time.sleep(0.1)
    codes = [server.ask("GET", "/v1").json().get("code") for _ in range(60)]
    assert "rate" in codes
    time.sleep(1)
    assert server.ask("DELETE", f"/v1/sandboxes/{name}").status == 204
    server.open()


def test_a_unix_socket_needs_no_token_and_is_ours(serve, home):
    path = home.folder / "s.sock"
    server = serve("--listen", f"unix:{path}")
    assert path.stat().st_mode & 0o777 == 0o600
    assert server.ask("GET", "/v1").status == 200
    if os.geteuid() == 0:
        for folder in [home.folder, *home.folder.parents]:
            if folder.stat().st_uid == 0 and folder.stat().st_mode & 0o777 == 0o700:
                folder.chmod(0o711)
        path.chmod(0o666)
        probe = ("import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
                 "s.sendall(b'GET /v1 HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n')\n"
                 "print(s.recv(4096).split(b'\\r\\n')[0].decode())")
        told = subprocess.run(["/usr/bin/python3", "-c", probe, path], capture_output=True, text=True, check=True,
                              timeout=30, user=65534, group=65534, extra_groups=[])
        assert told.stdout.startswith("HTTP/1.1 403")
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(timeout=20)
    assert not path.exists()


def test_a_left_over_socket_is_replaced_and_a_living_one_is_not(serve, run_caisson, home):
    path = home.folder / "again.sock"
    server = serve("--listen", f"unix:{path}")
    refused = run_caisson("serve", "--listen", f"unix:{path}")
    assert refused.returncode == 125 and "cannot listen" in refused.stderr
    server.process.kill()
    server.process.wait(timeout=20)
    assert path.exists()
    assert serve("--listen", f"unix:{path}").ask("GET", "/v1").status == 200


def test_a_token_file_is_judged(serve, run_caisson, home):
    path = home.folder / "token"
    path.write_text("# ours\n" + "k" * 32 + "\nsecond-token-of-mine\n", encoding="ascii")
    path.chmod(0o644)
    refused = run_caisson("serve", "--token-file", str(path))
    assert refused.returncode == 125 and "chmod 600" in refused.stderr
    path.chmod(0o600)
    server = serve("--token-file", str(path))
    assert "token" not in server.line
    assert server.ask("GET", "/v1", Authorization="Bearer " + "k" * 32).status == 200
    assert server.ask("GET", "/v1", Authorization="Bearer second-token-of-mine").status == 200
    assert server.ask("GET", "/v1", Authorization="Bearer # ours").status == 401
    path.write_text("short\n", encoding="ascii")
    assert "at least 16" in run_caisson("serve", "--token-file", str(path)).stderr


@pytest.mark.parametrize("flags", [["--listen", "x"], ["--listen", "1.2.3.4.5:1"], ["--listen", "127.0.0.1:70000"], ["--listen", "unix:"],
                                   ["--tier", "strict"], ["-w", "/"], ["--max-calls", "0"], ["--max-body", "9GiB"]])
def test_a_server_that_cannot_be_says_why(run_caisson, flags):
    refused = run_caisson("serve", *flags)
    assert refused.returncode == 125 and refused.stderr.startswith("caisson: ") and not refused.stdout


def test_problems_are_json_even_of_hostile_names(server):
    reply = server.ask("GET", "/v1/sandboxes/%3Cscript%3E%22")
    assert reply.status == 404 and json.loads(reply.body)
    assert server.ask("GET", "/v1/sandboxes/%00").status == 404
    assert server.ask("GET", "/v1/sandboxes/%ff").status == 404
