"""Calls that act on the whole machine: reboot, swap, clock, ports, accounting, kernel log.

Would gain: the host's availability, its time, its log, its hardware.
"""
import ctypes
import time

from inside import attempt, main, reach, sysc

NONE = ctypes.c_char_p(None)


def attack():
    now = (ctypes.c_int64 * 2)(int(time.time()), 0)
    reach("reboot", sysc, "reboot", 0, 0, 0, NONE)  # without the magic numbers: harmless if it gets through
    reach("swapon", sysc, "swapon", b"/nonexistent", 0)
    reach("swapoff", sysc, "swapoff", b"/nonexistent")
    reach("acct", sysc, "acct", b"/nonexistent/file")
    reach("iopl", sysc, "iopl", 99)
    reach("ioperm", sysc, "ioperm", 1 << 40, 1, 1)
    reach("syslog read", sysc, "syslog", 3, ctypes.create_string_buffer(64), 64)
    reach("syslog size", sysc, "syslog", 10, NONE, 0)
    reach("vhangup", sysc, "vhangup")
    reach("clock_settime", sysc, "clock_settime", 0, now)
    reach("settimeofday", sysc, "settimeofday", now, NONE)
    reach("adjtimex", sysc, "adjtimex", (ctypes.c_int64 * 64)(0))
    reach("clock_adjtime", sysc, "clock_adjtime", 0, (ctypes.c_int64 * 64)(0))
    attempt("sethostname", sysc, "sethostname", b"owned", 5)
    attempt("setdomainname", sysc, "setdomainname", b"owned", 5)


def host(case):
    import os
    before = os.uname()
    yield {}
    assert os.uname() == before


if __name__ == "__main__":
    main(attack)
