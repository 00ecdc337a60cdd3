"""--forward behind crun, runc and runsc: a port of the loopback there; behind runsc a path too."""
import http.server
import threading

import pytest

ASK = """
    import http.client, socket, sys
    class Model(http.client.HTTPConnection):
        def connect(self):
            if sys.argv[1][0] != "/":
                return super().connect()
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(sys.argv[1])
    for size in (1, 3 << 20):
        model = Model("127.0.0.1", int(sys.argv[1]) if sys.argv[1][0] != "/" else None)
        model.request("POST", "/", b"x" * size)
        print(len(model.getresponse().read()))
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


def test_a_model_is_reached(box, source):
    run = box.python(ASK, "8080", flags=["--forward", f"{source}:8080"])
    assert run.text.split() == ["1", str(3 << 20)] and run.result["network"] == "none", run
    assert run.result["forwards"][0]["connections"] == 2, run
    run = box.python(ASK, "/tmp/model.sock", flags=["--forward", f"{source}:/tmp/model.sock"])
    if box.wall == "gvisor":
        assert run.text.split() == ["1", str(3 << 20)], run
    else:
        assert run.status == 125 and "name a port" in run.err, run
