"""Endpoints of the host's for tests of --forward, and the client that runs inside."""
import hashlib
import http.server
import os
import socket
import socketserver
import threading

# Runs inside: forward.py AT WHAT…; AT is a path or a port.
CLIENT = r"""
import hashlib, http.client, os, socket, sys, threading, time

AT = sys.argv[1]

def connect():
    end = socket.socket(socket.AF_UNIX if AT[0] == "/" else socket.AF_INET)
    end.connect(AT if AT[0] == "/" else ("127.0.0.1", int(AT)))
    return end

class Model(http.client.HTTPConnection):
    def connect(self):
        self.sock = connect()

def rest(end):
    data = b""
    while piece := end.recv(1 << 16):
        data += piece
    return data

def get(path="/", body=None):
    model = Model("model")
    model.request("POST" if body else "GET", path, body)
    return model.getresponse().read()

def once():
    print(get())

def many(count=64):
    answers, together = [], threading.Barrier(count)
    def ask():
        together.wait()
        answers.append(get())
    threads = [threading.Thread(target=ask) for _ in range(count)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(len(answers), set(answers))

def bulk(size=50 << 20):
    block = os.urandom(1 << 20)
    data = block * (size >> 20)
    answer = get("/echo", data)
    print(len(answer), hashlib.sha256(answer).digest() == hashlib.sha256(data).digest())

def half_close():
    end = connect()
    end.sendall(b"abc" * 100000)
    end.shutdown(socket.SHUT_WR)
    print(rest(end).decode())

def to_the_end():
    end = connect()
    try:
        print(len(rest(end)), flush=True)
    except ConnectionResetError:
        print("reset", flush=True)

def unread():
    # Nobody takes it: what fits on the way does, and no more.
    end, sent = connect(), 0
    end.settimeout(2)
    try:
        while sent < 64 << 20:
            sent += end.send(bytes(1 << 16))
    except TimeoutError:
        pass
    print(sent < 4 << 20)

def idle():
    end = connect()
    time.sleep(2)
    print("idle")

def flood():
    for _ in range(3000):
        connect().close()
    held = [connect() for _ in range(150)]  # 32 are open, the others wait
    for end in held:
        end.close()
    print(get())

def twice():
    to_the_end()
    print(sys.stdin.readline().strip(), flush=True)
    to_the_end()

for what in sys.argv[2:]:
    globals()[what]()
"""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(b"the model answers")

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def address_string(self):
        return "inside"

    def log_message(self, *_):
        pass


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class WebServer(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # else the kernel tries again after seconds


class End:
    """A socket of the host's on which each connection is given to a function, or a web server."""

    def __init__(self, path):
        self.path, self.seen, self.open = path, [], []

    def web(self):
        self.server = UnixServer(str(self.path), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self._given()

    def each(self, what):
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(self.path))
        self.server.listen(64)
        threading.Thread(target=self._accept, args=(self.server, what), daemon=True).start()
        return self._given()

    def _given(self):
        self.path.chmod(0o666)  # whoever the test runs as
        return f"unix:{self.path}"

    def _accept(self, server, what):
        while True:
            try:
                end, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(what, end), daemon=True).start()

    def _serve(self, what, end):
        try:
            what(self, end)
        except OSError:
            pass

    def close(self):
        for end in self.open:
            end.close()
        if isinstance(self.server, UnixServer):
            self.server.shutdown()
            self.server.server_close()
        else:
            self.server.shutdown(socket.SHUT_RDWR)
            self.server.close()


def digest(_, end):
    """Reads to the end, then answers."""
    seen = hashlib.sha256()
    while piece := end.recv(1 << 16):
        seen.update(piece)
    end.sendall(seen.hexdigest().encode())
    end.close()


def die(_, end):
    """Says something, and is gone with what it was told unread."""
    end.sendall(bytes(1000))
    end.close()


def deaf(server, end):
    """Never reads, never closes."""
    server.open.append(end)


def pour(server, end):
    """As much as is taken, and says how much that was."""
    server.seen.append(0)
    end.settimeout(1.5)
    while server.seen[0] < 64 << 20:
        server.seen[0] += end.send(bytes(1 << 16))


def tcp():
    """A web server on a port of 127.0.0.1: (server, FROM)."""
    server = WebServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server, f"tcp:127.0.0.1:{server.server_port}"


def free_port():
    with socket.socket() as end:
        end.bind(("127.0.0.1", 0))
        return end.getsockname()[1]


__all__ = ["CLIENT", "End", "deaf", "die", "digest", "free_port", "os", "pour", "tcp"]
