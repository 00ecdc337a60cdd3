"""Network mode `engine`: the engine's own network, where a policy allows it, and nowhere else."""
import http.server
import json
import threading

import pytest

ASK = """
    import sys, urllib.request
    try:
        print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
    except OSError as error:
        print("not reached", error)
"""
PATHS = """
    import os, socket
    left, right = socket.socketpair()
    for name, make in (("socket", lambda: socket.socket(socket.AF_UNIX)), ("pair", lambda: left),
                       ("datagrams", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)),
                       ("packets", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))):
        for path in ("/workspace/host.sock", "\\0csn-test"):
            try:
                make().connect(path)
                print(name, "connected")
            except OSError:
                pass
    print("done")
"""
ENGINE = "network: {mode: engine}\n"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"the host answers")

    def log_message(self, *_):
        pass


@pytest.fixture
def url(one_engine):
    """A server of the host's, at the host's address in the engine's network."""
    with http.server.ThreadingHTTPServer((one_engine.bridge.gateway, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{one_engine.bridge.gateway}:{server.server_port}/"
        server.shutdown()


def test_it_is_reached_where_the_policy_says_so(one_engine, url):
    engine = one_engine
    run = engine.box.python(ASK, url, policy=engine.policy(ENGINE), timeout=120)
    assert run.text.strip() == "the host answers", run
    assert run.result["network"] == "engine" and "net-none" not in run.result["enforced"], run
    started = [json.loads(line) for line in (engine.box.record() / "logs/events.jsonl").read_text().splitlines()]
    assert [event["payload"]["network"] for event in started if event["event"] == "RunStarted"] == ["engine"]
    run = engine.box.python(ASK, url, policy=engine.policy(), timeout=120)
    assert run.text.startswith("not reached") and run.result["network"] == "none" and "net-none" in run.result["enforced"], run


def test_only_addresses_are_reached(one_engine):
    """No socket of the host's by its path: connect is allowed, so there is no socket to connect."""
    import socket
    engine = one_engine
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(engine.box.ws / "host.sock"))
        listening.listen()
        (engine.box.ws / "host.sock").chmod(0o777)
        run = engine.box.python(PATHS, policy=engine.policy(ENGINE), timeout=120)
    assert run.text == "done\n", run


def test_nobody_but_a_trusted_policy_lends_it(docker):
    """A flag alone, a file that is not trusted and a wall without an engine: each has its sentence."""
    box = docker.box
    run = box.run("true", flags=["--backend", "docker", "--network", "engine"])
    assert run.status == 125 and "wider than the built-in none" in run.err and "network: {mode: engine}" in run.err, run
    run = box.run("true", flags=["--network", "engine"], policy=docker.policy())
    assert run.status == 125 and "wider than the policy's none" in run.err, run
    box.file("caisson.yaml", docker.policy(ENGINE))
    run = box.run("true")
    assert run.status == 125 and "network.mode: engine loosens the built-in none" in run.err, run
    (box.ws / "caisson.yaml").unlink()
    run = box.run("true", policy=f"version: 1\ntier: assisted\n{ENGINE}")
    assert run.status == 125 and "no wall of this build with an engine's network reaches tier assisted" in run.err, run
    for wall in ("process", "oci", "landlock"):
        run = box.run("true", policy=f"version: 1\ntier: auto\nbackend: {wall}\n{ENGINE}")
        assert run.status == 125 and f"the {wall} wall has none: take backend docker or podman" in run.err, run
