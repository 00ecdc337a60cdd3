"""Makes itself unreadable for others before it tries what is forbidden.

Would gain: calls whose arguments the monitor cannot read: a connect that is let through unseen, a
write that leaves no record.
"""
import os
import socket

from inside import attempt, main, opens, sysc


def connect(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)


def attack():
    sysc("prctl", 4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    attempt("the host's socket", connect, "sock")
    attempt("a system file", opens, "/usr/lib/os-release", os.O_WRONLY)
    attempt("TCP", lambda: socket.create_connection(("127.0.0.1", 9), 1))
    attempt("a tracer of our choice", lambda: sysc("prctl", 0x59616d61, os.getppid(), 0, 0, 0) or False)


def host(case):
    from hosts import Listeners
    host = Listeners(case)
    host.unix(socket.SOCK_STREAM, case.ws / "sock")
    yield {}
    assert host.silent()


if __name__ == "__main__":
    main(attack)
