"""Loads a filter with a listener of its own.

Would gain: the place of the monitor: a chain of filters has one listener, and an errno outranks it.
"""
import ctypes
import struct

from inside import attempt, control, main, sysc


def load(flags, answer):
    code = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, answer))
    program = ctypes.create_string_buffer(struct.pack("=H6xQ", 1, ctypes.addressof(code)))
    return sysc("seccomp", 1, flags, program)


def attack():
    for flags in (8, 8 | 1, 8 | 32, 8 | 16, 8 | 1 << 32):
        attempt(f"listener, flags {flags:x}", load, flags, 0x7ff00000)
    control("a filter that only tightens", load, 0, 0x7fff0000)
    attempt("a call that is denied", sysc, "unshare", 0x10000000)


if __name__ == "__main__":
    main(attack)
