"""Swaps the path between a socket of its own on scratch and the host's in the workspace, in a
second thread, while the first one connects.

Would gain: the host's service, if whoever checks the address reads it before the kernel does.
"""
import os
import socket


def host(case):
    from hosts import Listeners
    host = Listeners(case)
    host.unix(socket.SOCK_STREAM, case.ws / "race.sock")
    yield {}
    assert host.silent()


if __name__ == "__main__":
    os.execv("attack/unix_socket_swap", ["unix_socket_swap"])
