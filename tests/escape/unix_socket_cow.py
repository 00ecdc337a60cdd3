"""The same in a copy-on-write workspace, where renaming copies a socket's inode upwards.

Would gain: the host's service, through the overlay's view of its socket.
"""
from unix_socket_rw import attack
from inside import main
import socket


def host(case):
    from hosts import Listeners
    host = Listeners(case)
    host.unix(socket.SOCK_STREAM, case.ws / "sock")
    yield {"flags": ["--cow"]}
    assert host.silent()


if __name__ == "__main__":
    main(attack)
