"""Connects to TCP services of the host and beyond.

Would gain: the caller's network position: local databases, cloud metadata, the internet.
"""
import socket

from inside import attempt, main


def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(3)
        s.connect(address)


def connect_slowly(address):
    with socket.socket() as s:
        s.setblocking(False)
        if s.connect_ex(address) not in (0, 115):
            return False
        s.setblocking(True)
        s.settimeout(2)
        s.sendall(b"x")
        return True


def fast_open(address, call):
    with socket.socket() as s:
        if call == "sendto":
            s.sendto(b"x", socket.MSG_FASTOPEN, address)
        else:
            s.sendmsg([b"x"], [], socket.MSG_FASTOPEN, address)


def fast_open_connect(address):
    with socket.socket() as s:
        s.settimeout(2)
        s.setsockopt(socket.IPPROTO_TCP, 30, 1)  # TCP_FASTOPEN_CONNECT
        s.connect(address)
        s.sendall(b"x")


def attack(port, outer):
    here = ("127.0.0.1", int(port))
    attempt("loopback", connect, socket.AF_INET, here)
    attempt("loopback without blocking", connect_slowly, here)
    attempt("0.0.0.0", connect, socket.AF_INET, ("0.0.0.0", int(port)))
    attempt("IPv6 loopback", connect, socket.AF_INET6, ("::1", int(port)))
    attempt("mapped address", connect, socket.AF_INET6, ("::ffff:127.0.0.1", int(port)))
    attempt("the host's own address", connect, socket.AF_INET, (outer, int(port)))
    attempt("cloud metadata", connect, socket.AF_INET, ("169.254.169.254", 80))
    attempt("TCP fast open by sendto", fast_open, here, "sendto")
    attempt("TCP fast open by sendmsg", fast_open, here, "sendmsg")
    attempt("TCP fast open by connect", fast_open_connect, here)


def host(case):
    from hosts import Listeners, address_of_host
    host = Listeners(case)
    port = host.inet(socket.SOCK_STREAM, "0.0.0.0")
    yield {"args": [str(port), address_of_host() or "192.0.2.7"]}
    assert host.silent()


if __name__ == "__main__":
    main(attack)
