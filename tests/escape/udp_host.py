"""Sends datagrams to the host, by every call that takes an address.

Would gain: a way out for data; a datagram needs no connection that could be refused.
"""
import ctypes
import socket
import struct

from inside import attempt, main, sysc


def by_sendto(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", address)


def by_sendmsg(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendmsg([b"x"], [], 0, address)


def by_connect(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(address)
        s.send(b"x")


def by_sendmmsg(address):
    raw = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(address[1]), socket.inet_aton(address[0]))
    name, data = ctypes.create_string_buffer(raw, 16), ctypes.create_string_buffer(b"x")
    iov = (ctypes.c_uint64 * 2)(ctypes.addressof(data), 1)
    message = (ctypes.c_uint64 * 8)(ctypes.addressof(name), 16, ctypes.addressof(iov), 1, 0, 0, 0, 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        sysc("sendmmsg", s.fileno(), message, 1, 0)


def attack(port, outer):
    for name, call in (("sendto", by_sendto), ("sendmsg", by_sendmsg), ("sendmmsg", by_sendmmsg),
                       ("connect and send", by_connect)):
        attempt(f"{name}, loopback", call, ("127.0.0.1", int(port)))
        attempt(f"{name}, outwards", call, (outer, int(port)))


def host(case):
    from hosts import Listeners, address_of_host
    host = Listeners(case)
    port = host.inet(socket.SOCK_DGRAM, "0.0.0.0")
    yield {"args": [str(port), address_of_host() or "192.0.2.7"]}
    assert host.silent()


if __name__ == "__main__":
    main(attack)
