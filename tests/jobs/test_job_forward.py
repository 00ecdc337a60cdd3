"""A worker without a network reaches its model, at the start and when it goes on."""
import http.server
import json
import threading

WORKER = """
import http.client, socket
class Model(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect("/tmp/model.sock")
model = Model("model")
model.request("GET", "/")
print(model.getresponse().read().decode())
"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"thought")

    def log_message(self, *_):
        pass


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server, f"tcp:127.0.0.1:{server.server_port}"


def test_a_worker_reaches_its_model(jobs):
    first, at_first = serve()
    second, at_second = serve()
    (jobs.root / "ask").mkdir(mode=0o755)
    (jobs.root / "ask" / "ask.py").write_text(WORKER)
    # A job takes what its own flags name; two places that are one are one.
    worker = ["/usr/bin/python3", "/workspace/run/ask.py"]
    done = jobs.start("ask", worker=worker, flags=["--forward", f"{at_first}:/tmp//model.sock"])
    assert done.returncode == 0 and jobs.output("ask") == "thought\n", done
    assert jobs.cli("resume", "ask").returncode == 0 and jobs.output("ask") == "thought\n" * 2
    assert jobs.cli("resume", "ask", "--forward", f"{at_second}:/tmp/model.sock").returncode == 0
    first.shutdown()
    first.server_close()
    assert jobs.cli("resume", "ask", "--forward", f"{at_second}:/tmp/model.sock").returncode == 0
    done = jobs.cli("resume", "ask")
    assert done.returncode == 0, "what a resume named is kept"
    sources = [event["payload"]["forwards"] for event in jobs.events("ask", "RunStarted")]
    assert sources == [[f"{at_first}:/tmp/model.sock"]] * 2 + [[f"{at_second}:/tmp/model.sock"]] * 3, sources
    ended = jobs.events("ask", "RunExited")[-1]["payload"]["forwarded"][0]
    assert ended["connections"] == 1 and ended["received_bytes"] > 0, ended
    assert json.loads((jobs.root / "ask" / "result.json").read_text())["forwards"] == [ended]
    second.shutdown()
    second.server_close()
    refused = jobs.cli("resume", "ask")
    assert refused.returncode == 125 and "nobody listens" in refused.stderr, refused
    jobs.verify("ask")
