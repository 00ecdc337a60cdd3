"""An evaluator on the end of a pipe: the frames of a code medium, without anything in between."""
import os
import pathlib
import struct
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/agent"))
from etf import Atom, decode, encode  # noqa: E402

LUA = str(pathlib.Path(os.environ.get("CAISSON_BUILD") or TOP / "build") / "caisson-lua")


class Evaluator:
    """One that has its binding, and answers gates from a dict of functions."""

    def __init__(self, binding=None, gates=None):
        self.gates = {"done": lambda value=Atom("nil"): value, **(gates or {})}
        self.child = subprocess.Popen([LUA], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.send((Atom("init"), binding or {}))
        self.first = self.receive()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.child.kill()
        self.child.wait()
        self.child.stdin.close()
        self.child.stdout.close()

    def send(self, value):
        data = encode(value)
        self.child.stdin.write(struct.pack(">I", len(data)) + data)
        self.child.stdin.flush()

    def receive(self):
        head = self.child.stdout.read(4)
        if len(head) < 4:
            raise EOFError
        return decode(self.child.stdout.read(struct.unpack(">I", head)[0]))

    def observe(self, name, args):
        gate = self.gates.get(name.decode())
        if not gate:
            return {Atom("result"): b"unknown gate: " + name, Atom("is_error"): Atom("true")}
        try:
            return {Atom("result"): gate(*args), Atom("is_error"): Atom("false")}
        except ValueError as err:
            return {Atom("result"): str(err).encode(), Atom("is_error"): Atom("true")}

    def eval(self, code, ref=1):
        names = [name.encode() for name in self.gates]
        self.send((Atom("eval"), ref, code.encode(), {Atom("gates"): names}))
        while True:
            frame = self.receive()
            if frame[0] != "gate_call":
                return frame
            assert frame[1] == ref
            self.send((Atom("gate_result"), ref, self.observe(frame[2], frame[3])))

    def value(self, code):
        frame = self.eval(code)
        assert frame[0] == "eval_result", frame
        return frame[3]

    def error(self, code):
        frame = self.eval(code)
        assert frame[0] == "eval_error", frame
        return frame[3].decode(errors="replace")
