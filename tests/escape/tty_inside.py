"""Types into the terminal that `--tty always` made for this run.

Would gain: nothing beyond one's own terminal, but the same calls on another one would.
"""
import ctypes

from inside import attempt, control, main, sysc
import os


def attack():
    control("a terminal of one's own", lambda: os.isatty(0))
    byte = ctypes.create_string_buffer(b"x")
    attempt("TIOCSTI", sysc, "ioctl", 0, 0x5412, byte)
    attempt("TIOCSTI with high bits", sysc, "ioctl", 0, 0x5412 | 1 << 32, byte)
    attempt("TIOCLINUX", sysc, "ioctl", 0, 0x541c, byte)
    attempt("TIOCCONS", sysc, "ioctl", 0, 0x541d, 0)
    attempt("line discipline", sysc, "ioctl", 0, 0x5423, (ctypes.c_int * 1)(2))
    attempt("vhangup", sysc, "vhangup")


def host(case):
    yield {"flags": ["--tty", "always"]}


if __name__ == "__main__":
    main(attack)
