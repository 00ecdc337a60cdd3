"""Writes into a FIFO in the read-only workspace, which a host process reads.

Would gain: a way to talk to a host process; read-only mounts do not stop writing to a FIFO.
"""
import os

from inside import attempt, main


def push(path, flags):
    fd = os.open(path, flags | os.O_NONBLOCK)
    os.write(fd, b"out\n")


def reopened(path):
    fd = os.open(path, os.O_PATH)
    push(f"/proc/self/fd/{fd}", os.O_WRONLY)


def attack():
    attempt("write", push, "fifo", os.O_WRONLY)
    attempt("read and write", push, "fifo", os.O_RDWR)
    attempt("append", push, "fifo", os.O_WRONLY | os.O_APPEND)
    attempt("through a descriptor", reopened, "fifo")


def host(case):
    os.mkfifo(case.ws / "fifo")
    os.chmod(case.ws / "fifo", 0o777)
    reader = os.open(case.ws / "fifo", os.O_RDWR | os.O_NONBLOCK)
    yield {}
    try:
        heard = os.read(reader, 100)
    except BlockingIOError:
        heard = b""
    os.close(reader)
    assert heard == b""


if __name__ == "__main__":
    main(attack)
