"""With `--network loopback`: the loopback inside is not the host's.

Would gain: services that listen on the host's 127.0.0.1 and trust whoever can reach it.
"""
import socket

from inside import attempt, control, main


def connect(address):
    with socket.socket() as s:
        s.settimeout(3)
        s.connect(address)


def own():
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())


def attack(port, outer):
    control("a server of one's own", own)
    attempt("the host's loopback", connect, ("127.0.0.1", int(port)))
    attempt("the host's loopback as 127.9.9.9", connect, ("127.9.9.9", int(port)))
    attempt("the host's own address", connect, (outer, int(port)))


def host(case):
    from hosts import Listeners, address_of_host
    host = Listeners(case)
    port = host.inet(socket.SOCK_STREAM, "0.0.0.0")
    yield {"flags": ["--network", "loopback"], "args": [str(port), address_of_host() or "192.0.2.7"]}
    assert host.silent()


if __name__ == "__main__":
    main(attack)
