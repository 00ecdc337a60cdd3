"""The same in a writable workspace, where the socket can be renamed, linked and copied about.

Would gain: the host's service, through a name that a check by path does not know.
"""
import os
import socket

from inside import attempt, main


def connect(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(2)
        s.connect(path)


def linked(path, to):
    os.link(path, to)
    connect(to)


def renamed(path, to):
    os.rename(path, to)
    connect(to)


def attack():
    ws, scratch = os.getcwd(), os.environ["TMPDIR"]
    attempt("as it is", connect, f"{ws}/sock")
    attempt("hard link in the workspace", linked, f"{ws}/sock", f"{ws}/sock2")
    attempt("hard link on scratch", linked, f"{ws}/sock", f"{scratch}/sock2")
    attempt("renamed", renamed, f"{ws}/sock", f"{ws}/sock3")
    attempt("moved to scratch", renamed, f"{ws}/sock3", f"{scratch}/sock3")


def host(case):
    from hosts import Listeners
    host = Listeners(case)
    host.unix(socket.SOCK_STREAM, case.ws / "sock")
    yield {"flags": ["--rw"]}
    assert host.silent()


if __name__ == "__main__":
    main(attack)
