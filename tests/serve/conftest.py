"""A server with a home of its own, and a client of it: real sockets, real sandboxes."""
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import urllib.parse

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]


class Reply:
    """Status, headers and body of an answer."""

    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {dict(self.headers)}\n{self.body[:2000]!r}"


class Server:
    """`caisson serve`: ask() sends one request on a connection of its own."""

    def __init__(self, process, line):
        self.process, self.line, self.token = process, line, None
        self.path = line.removeprefix("unix:") if line.startswith("unix:") else None
        if not self.path:
            url = urllib.parse.urlsplit(line)
            self.host, self.port = url.hostname, url.port
            self.token = url.fragment.removeprefix("token=")

    def connect(self, timeout=30):
        if self.path:
            raw = socket.socket(socket.AF_UNIX)
            raw.settimeout(timeout)
            raw.connect(self.path)
        else:
            raw = socket.create_connection((self.host, self.port), timeout=timeout)
        return raw

    def client(self):
        connection = http.client.HTTPConnection("localhost", self.port if not self.path else 80, timeout=30)
        connection.sock = self.connect()
        return connection

    def send(self, connection, method, path, body=None, **headers):
        """Sends a request; a dict goes as JSON, and the token along unless headers say otherwise."""
        named = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        if self.token and "Authorization" not in headers:
            named["Authorization"] = f"Bearer {self.token}"
        if isinstance(body, dict):
            body = json.dumps(body)
            named.setdefault("Content-Type", "application/json")
        connection.request(method, path, body, named)
        return connection.getresponse()

    def ask(self, method, path, body=None, **headers):
        with contextlib.closing(self.client()) as connection:
            return Reply(self.send(connection, method, path, body, **headers))

    def call(self, name, verb, **body):
        return self.ask("POST", f"/v1/sandboxes/{name}/{verb}", body)

    def open(self, **wish):
        reply = self.ask("POST", "/v1/sandboxes", wish)
        assert reply.status == 201, reply
        return reply.json()["name"]


class Stream:
    """Server-sent events as (event, id, data), one at a time."""

    def __init__(self, response):
        self.response = response

    def __iter__(self):
        fields = {}
        for line in iter(self.response.readline, b""):
            text = line.decode().rstrip("\n")
            if text and not text.startswith(":"):
                name, _, value = text.partition(": ")
                fields[name] = value
            elif fields:
                yield fields["event"], fields.get("id"), json.loads(fields["data"])
                fields = {}


@pytest.fixture(scope="session")
def caisson():
    """The path of the built program."""
    path = pathlib.Path(os.environ.get("CAISSON") or TOP / "build" / "caisson").resolve()
    if not os.access(path, os.X_OK):
        pytest.fail(f"{path} is not built")
    return str(path)


class Home:
    """Folders of a caller: his project, records and sockets; and his environment."""

    def __init__(self, folder):
        self.folder = folder
        self.project = folder / "project"
        self.runtime = folder / "rt"
        for path in (self.project, self.runtime):
            path.mkdir()
        self.runtime.chmod(0o700)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8",
                    "XDG_STATE_HOME": str(folder / "state"), "XDG_RUNTIME_DIR": str(self.runtime)}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return Home(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def serve(caisson, home):
    """Starts servers; each ends with the module, and says nothing that nobody expects."""
    started = []

    def start(*flags, **more):
        process = subprocess.Popen([caisson, "serve", "--listen", "127.0.0.1:0", *flags] if "--listen" not in flags
                                   else [caisson, "serve", *flags], cwd=home.project, env=home.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, **more)
        started.append(process)
        line = process.stdout.readline().strip()
        if not line:
            pytest.fail(process.stderr.read())
        return Server(process, line)

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
        assert not said, said


@pytest.fixture(scope="module")
def server(serve):
    return serve("--cow", "-n", "loopback")


@pytest.fixture
def box(server):
    """A sandbox of the server, by its name."""
    name = server.open()
    yield name
    assert server.ask("DELETE", f"/v1/sandboxes/{name}").status in (204, 404)


@pytest.fixture
def run_caisson(caisson, home):
    """Runs another command of the same caller."""
    def run(*args, **more):
        return subprocess.run([caisson, *args], cwd=home.project, env=home.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False, **more)

    return run
