"""Configures the network through a routing socket, which programs need for reading.

Would gain: an address and a route in the sandbox's own namespace; a first step outwards.
"""
import os
import socket
import struct

from inside import attempt, main, opens


def ask(kind, flags, body):
    """The errno that the kernel answers; raises OSError."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.settimeout(2)
        s.bind((0, 0))
        s.send(struct.pack("=IHHII", 16 + len(body), kind, flags | 5, 1, 0) + body)
        answer = s.recv(4096)
        code = struct.unpack_from("=i", answer, 16)[0]
        if code:
            raise OSError(-code, os.strerror(-code))


def attack():
    lo_up = struct.pack("=BxHiII", 0, 0, 1, 1, 1)
    address = struct.pack("=BBBBI", 2, 8, 0, 0, 1) + struct.pack("=HH4s", 8, 2, bytes([10, 9, 9, 9]))
    attempt("raise lo", ask, 16, 0, lo_up)
    attempt("new address", ask, 20, 0x600, address)
    attempt("new link", ask, 16, 0x600, struct.pack("=BxHiII", 0, 0, 0, 1, 1))
    attempt("multicast of links", lambda: socket.socket(16, socket.SOCK_RAW, 15).bind((0, 1)))
    attempt("a tunnel", opens, "/dev/net/tun", os.O_RDWR)


if __name__ == "__main__":
    main(attack)
