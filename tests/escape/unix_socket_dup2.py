"""Puts another socket under the descriptor's number while a connect by that number is judged.

Would gain: a connection of a socket that was never judged, such as one to the host's network.
"""
import os
import socket
import sys


def host(case):
    from hosts import Listeners
    host = Listeners(case)
    port = host.inet(socket.SOCK_STREAM)
    yield {"args": [str(port)]}
    assert host.silent()


if __name__ == "__main__":
    os.execv("attack/unix_socket_dup2", ["unix_socket_dup2", *sys.argv[1:]])
