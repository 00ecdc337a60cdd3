"""Connects to an abstract socket of the host (D-Bus, X11 and containerd's shims have had such).

Would gain: a host service; abstract names know no mounts and no file rights.
"""
import socket

from inside import attempt, main


def connect(kind, name):
    with socket.socket(socket.AF_UNIX, kind) as s:
        s.settimeout(2)
        s.connect("\0" + name)


def attack(name):
    attempt("stream", connect, socket.SOCK_STREAM, name)
    attempt("seqpacket", connect, socket.SOCK_SEQPACKET, name + "-seq")


def host(case):
    from hosts import Listeners
    host = Listeners(case)
    host.unix(socket.SOCK_STREAM, "\0" + case.token)
    host.unix(socket.SOCK_SEQPACKET, "\0" + case.token + "-seq")
    yield {"args": [case.token]}
    assert host.silent()


if __name__ == "__main__":
    main(attack)
