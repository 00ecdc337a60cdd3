"""Sets bits above the 32nd in arguments that the kernel takes as an int.

Would gain: a filter that compares 64 bits does not see the value that the kernel sees.
"""
import ctypes
import os
import socket

from inside import attempt, control, main, sysc

HIGH = 1 << 32


def attack():
    try:
        master, slave = os.openpty()
    except OSError:  # no terminals to be had here: the filter judges before the descriptor is looked at
        master = slave = 0
    byte = ctypes.create_string_buffer(b"x")
    control("a socket that is permitted", sysc, "socket", socket.AF_UNIX, socket.SOCK_STREAM, 0)
    for bits in (HIGH, 0xffffffff << 32):
        bits = ctypes.c_long(bits).value
        attempt(f"vsock {bits:x}", sysc, "socket", 40 | bits, socket.SOCK_STREAM, 0)
        attempt(f"packet {bits:x}", sysc, "socket", 17 | bits, socket.SOCK_DGRAM, 0)
        attempt(f"netlink of another kind {bits:x}", sysc, "socket", 16 | bits, socket.SOCK_RAW, 15)
        attempt(f"netlink protocol {bits:x}", sysc, "socket", 16, socket.SOCK_RAW, 15 | bits)
        attempt(f"local datagram {bits:x}", sysc, "socket", 1, 2 | bits, 0)
        attempt(f"datagram pair {bits:x}", sysc, "socketpair", 1, 2 | bits, 0, (ctypes.c_int * 2)())
        attempt(f"TIOCSTI {bits:x}", sysc, "ioctl", slave, 0x5412 | bits, byte)
        attempt(f"TIOCLINUX {bits:x}", sysc, "ioctl", slave, 0x541c | bits, byte)
        attempt(f"TIOCSETD {bits:x}", sysc, "ioctl", slave, 0x5423 | bits, (ctypes.c_int * 1)(0))
        attempt(f"unshare {bits:x}", sysc, "unshare", 0x10000000 | bits)
        attempt(f"another's priority {bits:x}", sysc, "setpriority", 0, os.getppid() | bits, 19)
        attempt(f"persona {bits:x}", sysc, "personality", 0x0400000 | bits)
    del master


if __name__ == "__main__":
    main(attack)
