"""A `caisson port` as a child, frame by frame, for tests; with whatever terms one likes."""
import contextlib
import os
import pathlib
import select
import signal
import struct
import subprocess
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / name) for name in ("cli", "agent")]
from etf import Atom, decode, encode  # noqa: E402

WAIT = 15


class Port:
    def __init__(self, box, env=None, **more):
        self.box = box
        box.give()
        more = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE} | more
        self.process = subprocess.Popen([box.caisson, "port"], stderr=subprocess.PIPE, cwd=box.ws, bufsize=0,
                                        env=box.env | (env or {}), **box.as_owner(), **more)
        self.input, self.output = self.process.stdin, self.process.stdout

    def raw(self, data):
        while data:
            data = data[self.input.write(data):]

    def send(self, name, *rest):
        data = encode((Atom(name), *rest))
        self.raw(struct.pack(">I", len(data)) + data)

    def bytes(self, size, wait=WAIT):
        """None at the end of the stream."""
        data, end = b"", time.monotonic() + wait
        while len(data) < size:
            ready, _, _ = select.select([self.output], [], [], max(0, end - time.monotonic()))
            assert ready, f"nothing was said within {wait} s, after {data!r}"
            piece = self.output.read(size - len(data))
            if not piece:
                assert not data, f"the stream ended within a frame: {data!r}"
                return None
            data += piece
        return data

    def frame(self, wait=WAIT):
        head = self.bytes(4, wait)
        return head and decode(self.bytes(struct.unpack(">I", head)[0], wait))

    def open(self, ref=1, **options):
        self.send("open", ref, options)
        return self.frame()

    def opened(self, **options):
        frame = self.open(**options)
        assert frame[:2] == ("reply", 1), frame
        return frame[2]

    def answer(self, ref, window=True):
        """Frames up to the one that ends `ref`: (it, {stream: bytes}, facts)."""
        out, facts = {}, []
        while True:
            frame = self.frame()
            assert frame, "the port ended"
            if frame[0] == "data":
                out[str(frame[2])] = out.get(str(frame[2]), b"") + frame[3]
                if window:
                    self.send("window", ref, len(frame[3]))
            elif frame[0] == "fact":
                facts.append(frame[1])
            elif frame[1] == ref:
                return frame, out, facts

    def call(self, verb, ref=7, **args):
        self.send("call", ref, Atom(verb), args)
        return self.answer(ref)

    def sh(self, text, ref=7, **args):
        frame, out, _ = self.call("exec", ref, command=text, **args)
        assert frame[0] == "reply", frame
        return frame[2] | {"out": out.get("stdout", b""), "err": out.get("stderr", b"")}

    def end(self):
        """After the last frame: (status, what it said to people)."""
        assert self.frame() is None
        status = self.process.wait(WAIT)
        return status, self.process.stderr.read().decode()

    def close(self, ref=99):
        self.send("close", ref)
        frame = self.frame()
        assert frame[:2] == ("reply", ref), frame
        return frame[2]

    def done(self):
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                if stream:
                    stream.close()
        try:
            self.process.wait(WAIT)
        except subprocess.TimeoutExpired:
            os.kill(self.process.pid, signal.SIGKILL)
            raise


def tree(pid):
    """A process and all beneath it that live."""
    found = [pid]
    with contextlib.suppress(FileNotFoundError):
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            for child in task.read_text().split():
                found += tree(int(child))
    return found


def alive(pids):
    found = []
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                found.append(pid)
    return found
