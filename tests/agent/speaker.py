"""The monitor's side of one agent: frames over a socket pair, no wall."""
import os
import pathlib
import select
import socket
import struct
import subprocess
import sys
import time

import pytest
from etf import Atom, decode, encode

WAIT = 20  # seconds until a silent agent is a failure
WINDOW = 256 << 10
HERE = pathlib.Path(__file__).resolve().parent
# Every other descriptor of the agent's is /dev/null where there is no wall: src/os/agent_fds.h
LAUNCH = "exec 3<>/dev/null 4<>/dev/null 5<>/dev/null 6<>/dev/null 7<>/dev/null 8<>/dev/null; umask 022; eval \"$1\"; shift; exec \"$@\""

NOBODY = 54321
# In memory where there is one: thousands of files a test, and other tests wait for the disk too.
PLACE = "/dev/shm" if os.access("/dev/shm", os.W_OK) and "TMPDIR" not in os.environ else None
AS_ROOT = os.geteuid() == 0
# who -> (uid, None: ours; has openat2)
WHO = {"root": (None, True), "user": (NOBODY, True), "steps": (NOBODY, False)} if AS_ROOT else \
      {"user": (None, True), "steps": (None, False)}


class Failed(Exception):
    """{failed, Ref, Reason, Detail}"""

    def __init__(self, reason, detail):
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = str(reason), detail.decode("utf-8", "replace")


def fails(agent, reason, verb, **args):
    """The call fails with this reason; the sentence."""
    with pytest.raises(Failed) as told:
        agent.call(verb, **args)
    assert told.value.reason == reason, told.value
    return told.value.detail


class Speaker:
    def __init__(self, program, workspace, user=None, has_openat2=True, init=True, prelude="", pass_fds=()):
        ours, theirs = socket.socketpair()
        argv = [program] if has_openat2 else [sys.executable, "-S", "-E", str(HERE / "no_openat2.py"), program]
        who = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        self.process = subprocess.Popen(["/bin/sh", "-c", LAUNCH, "sh", prelude, *argv], stdin=theirs, stdout=theirs,
                                        cwd="/", pass_fds=pass_fds, **who)
        theirs.close()
        self.stream, self.buffer, self.ref = ours, bytearray(), 100
        self.saved = {}  # frames of other calls, by their Ref
        self.facts = []
        if init:
            self.send("init", {"workspace": os.fsencode(workspace), "profile": b"none"})
            self.ready = self.frame()[1]

    def close(self):
        self.stream.close()
        try:
            self.process.wait(WAIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def send(self, name, *rest):
        data = encode((Atom(name), *rest))
        self.stream.sendall(struct.pack(">I", len(data)) + data)

    def frame(self, wait=WAIT):
        """The next frame; None if none comes within the time. EOFError: the agent ended."""
        end = time.monotonic() + wait
        while True:
            if len(self.buffer) >= 4:
                size = struct.unpack_from(">I", self.buffer)[0]
                if len(self.buffer) >= 4 + size:
                    term = decode(bytes(self.buffer[4:4 + size]))
                    del self.buffer[:4 + size]
                    if term[0] != "fact":
                        return term
                    self.facts.append(term[1])
                    continue
            if not select.select([self.stream], [], [], max(0, end - time.monotonic()))[0]:
                return None
            data = self.stream.recv(1 << 20)
            if not data:
                raise EOFError
            self.buffer += data

    def frame_of(self, ref, wait=WAIT):
        if self.saved.get(ref):
            return self.saved[ref].pop(0)
        end = time.monotonic() + wait
        while True:
            frame = self.frame(max(0, end - time.monotonic()))
            if frame is None or frame[1] == ref:
                return frame
            self.saved.setdefault(frame[1], []).append(frame)

    def begin(self, verb, **args):
        self.ref += 1
        self.send("call", self.ref, Atom(verb), args)
        return self.ref

    def end(self, ref, grants=True, wait=WAIT):
        """The reply's map, with all data under "data"; or Failed."""
        pieces = []
        while True:
            frame = self.frame_of(ref, wait)
            assert frame is not None, "the agent says nothing"
            if frame[0] == "data":
                assert frame[2] == "stdout" and 0 < len(frame[3]) <= 65536
                pieces.append(frame[3])
                if grants:
                    self.send("window", ref, len(frame[3]))
            elif frame[0] == "failed":
                raise Failed(frame[2], frame[3])
            elif frame[0] == "reply":
                return frame[2] | ({"data": b"".join(pieces)} if pieces else {})
            else:
                assert frame[0] == "window", frame

    def call(self, verb, **args):
        return self.end(self.begin(verb, **args))

    def feed(self, ref, content):
        """Input of a call under the window, with its end; or Failed, as soon as it comes."""
        room, at = WINDOW, 0
        while at < len(content):
            piece = content[at:at + min(65536, room)]
            if piece:
                self.send("data", ref, Atom("stdin"), piece)
                at, room = at + len(piece), room - len(piece)
            else:
                frame = self.frame_of(ref)
                if frame[0] == "failed":
                    raise Failed(frame[2], frame[3])
                assert frame[0] == "window", frame
                room += frame[2]
        self.send("data", ref, Atom("stdin"), Atom("eof"))

    def peak_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def cpu_ms(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 // os.sysconf("SC_CLK_TCK")
