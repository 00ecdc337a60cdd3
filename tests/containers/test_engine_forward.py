"""--forward behind docker and podman: a port of the loopback there, and still no socket by path."""
import http.server
import threading

import pytest

ASK = """
    import http.client, socket
    for size in (1, 3 << 20):
        model = http.client.HTTPConnection("127.0.0.1", 8080)
        model.request("POST", "/", b"x" * size)
        print(len(model.getresponse().read()))
    try:
        socket.socket(socket.AF_UNIX)
        print("a path socket")
    except PermissionError:
        print("none")
"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def source():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"tcp:127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_model_is_reached(one_engine, source):
    engine = one_engine
    policy = engine.policy(f"forwards: ['{source}:8080']\n")
    run = engine.box.python(ASK, policy=policy, timeout=120)
    assert run.text.split() == ["1", str(3 << 20), "none"] and run.result["network"] == "none", run
    assert run.result["forwards"][0]["connections"] == 2, run
    policy = engine.policy(f"forwards: ['{source}:/tmp/model.sock']\n")
    run = engine.box.run("true", policy=policy, timeout=120)
    assert run.status == 125 and "name a port" in run.err, run
