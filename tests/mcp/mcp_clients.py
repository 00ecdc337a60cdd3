"""The two clients of these tests: the official library, and one that can say what no library would."""
import json
import os
import select
import signal
import subprocess
import time

FIRST = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


def text(result):
    """All texts of a tool's answer."""
    return "\n".join(part["text"] for part in result["content"] if part["type"] == "text")


class Official:
    """The official client library, in a process of its own."""

    def __init__(self, argv, **more):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", **more)
        self.count = 0

    def send(self, do, *words, **more):
        self.count += 1
        step = {"id": self.count, "do": do, "with": words} | more
        self.process.stdin.write(json.dumps(step) + "\n")
        self.process.stdin.flush()

    def take(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, do, *words, **more):
        """The whole answer: ok or error, progress."""
        self.send(do, *words, **more)
        return self.take()

    def do(self, do, *words, **more):
        answer = self.ask(do, *words, **more)
        assert "ok" in answer, answer
        return answer["ok"]

    def tool(self, name, **arguments):
        return self.do("callTool", {"name": name, "arguments": arguments})

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=20)
        self.process.stdout.close()


class Raw:
    """A client of a few lines, which can say what no library would."""

    def __init__(self, argv, **more):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, **more)
        self.rest = b""
        self.kept = []
        self.last = 0

    def write(self, data):
        view = memoryview(data)
        while view:
            view = view[self.process.stdin.write(view):]

    def send(self, message):
        self.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")

    def line(self, seconds=10):
        """The next line, or None: none came in time, or the stream ended."""
        end = time.monotonic() + seconds
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                return None
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def message(self, seconds=10):
        line = self.line(seconds)
        return None if line is None else json.loads(line.decode("utf-8"))

    def answer(self, wanted, seconds=10):
        """The answer to that id; what else comes is kept."""
        end = time.monotonic() + seconds
        for message in self.kept:
            if message.get("id") == wanted and "method" not in message:
                self.kept.remove(message)
                return message
        while (left := end - time.monotonic()) > 0:
            message = self.message(left)
            if message is None:
                break
            if message.get("id") == wanted and "method" not in message:
                return message
            self.kept.append(message)
        raise AssertionError(f"no answer to {wanted!r}: {self.kept!r:.2000}")

    def start(self, method, params=None, wanted=None):
        self.last += 1
        wanted = self.last if wanted is None else wanted
        self.send({"jsonrpc": "2.0", "id": wanted, "method": method} | ({} if params is None else {"params": params}))
        return wanted

    def ask(self, method, params=None, wanted=None, seconds=10):
        return self.answer(self.start(method, params, wanted), seconds)

    def hello(self, version="2025-11-25"):
        answer = self.ask("initialize", FIRST | {"protocolVersion": version})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    def call(self, name, **arguments):
        return self.start("tools/call", {"name": name, "arguments": arguments})

    def tool(self, name, **arguments):
        return self.answer(self.call(name, **arguments), 30)["result"]

    def close(self):
        for stream in (self.process.stdin, self.process.stdout):
            stream.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            raise
