"""Connects to sockets of a host process that lie in the read-only workspace.

Would gain: whatever the host's service does for its clients (a container engine's socket is root),
in spite of "no network" and of the read-only mount.
"""
import os
import socket

from inside import attempt, control, main


def connect(kind, path):
    with socket.socket(socket.AF_UNIX, kind) as s:
        s.settimeout(2)
        s.connect(path)


def by_pair(path):
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with a, b:
        a.sendmsg([b"x"], [], 0, path)


def by_socket(kind, path, send):
    with socket.socket(socket.AF_UNIX, kind) as s:
        s.sendto(b"x", path) if send == "sendto" else s.sendmsg([b"x"], [], 0, path)


def by_descriptor(path):
    fd = os.open(path, os.O_PATH)
    connect(socket.SOCK_STREAM, f"/proc/self/fd/{fd}")


def own_socket(path):
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        client.connect(path)


def attack():
    ws, scratch = os.getcwd(), os.environ["TMPDIR"]
    stream, seq, dgram = f"{ws}/stream", f"{ws}/seq", f"{ws}/dgram"
    os.symlink(stream, f"{scratch}/link")
    os.symlink("/proc/self/cwd/stream", f"{scratch}/magic")
    control("a socket of one's own on scratch", own_socket, f"{scratch}/own")
    attempt("stream", connect, socket.SOCK_STREAM, stream)
    attempt("seqpacket", connect, socket.SOCK_SEQPACKET, seq)
    attempt("relative path", connect, socket.SOCK_STREAM, "stream")
    attempt("dots", connect, socket.SOCK_STREAM, f"{scratch}/..{ws}/stream")
    attempt("symlink on scratch", connect, socket.SOCK_STREAM, f"{scratch}/link")
    attempt("symlink through /proc", connect, socket.SOCK_STREAM, f"{scratch}/magic")
    attempt("/proc/self/root", connect, socket.SOCK_STREAM, f"/proc/self/root{stream}")
    attempt("/proc/self/cwd", connect, socket.SOCK_STREAM, "/proc/self/cwd/stream")
    attempt("descriptor of the socket", by_descriptor, stream)
    attempt("datagram connect", connect, socket.SOCK_DGRAM, dgram)
    attempt("datagram sendto", by_socket, socket.SOCK_DGRAM, dgram, "sendto")
    attempt("datagram sendmsg", by_socket, socket.SOCK_DGRAM, dgram, "sendmsg")
    attempt("raw is a datagram too", by_socket, socket.SOCK_RAW, dgram, "sendmsg")
    attempt("datagram from a pair", by_pair, dgram)


def host(case):
    from hosts import Listeners
    host = Listeners(case)
    host.unix(socket.SOCK_STREAM, case.ws / "stream")
    host.unix(socket.SOCK_SEQPACKET, case.ws / "seq")
    host.unix(socket.SOCK_DGRAM, case.ws / "dgram")
    yield {}
    assert host.silent()


if __name__ == "__main__":
    main(attack)
