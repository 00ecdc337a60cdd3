"""A client of `caisson serve` as tests use one: HTTP by the standard library, over TCP or a Unix socket."""
import contextlib
import http.client
import json
import socket
import urllib.parse


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

    def follow(self, path, body=None):
        """Server-sent events, as they come."""
        connection = self.client()
        try:
            yield from Stream(self.send(connection, "POST" if body else "GET", path, body, Accept="text/event-stream"))
        finally:
            connection.close()

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
