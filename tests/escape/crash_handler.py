"""Crashes where the host pipes crashes to a handler (systemd-coredump, apport): the kernel starts it
on the host, as root, even if core files are limited to nothing.

Would gain: a root program outside the wall that parses memory of the attacker's making. The kernel
spares only those whose limit is exactly 1.
"""
import ctypes
import os
import resource

from core_dumps import limits
from inside import attempt, main, sysc


def lowered(call, *args):
    sysc(call, *args)
    return limits()[0] != "1"


def attack():
    zero = (ctypes.c_uint64 * 2)(0, 1)
    attempt("a limit for which the kernel starts the handler", lambda: limits() != ["1", "1"])
    attempt("lowering it", lowered, "prlimit64", 0, resource.RLIMIT_CORE, zero, 0)
    attempt("lowering it with high bits", lowered, "prlimit64", 0, resource.RLIMIT_CORE | 1 << 32, zero, 0)
    attempt("lowering it by setrlimit", lowered, "setrlimit", resource.RLIMIT_CORE, zero)


def host(case):
    import pytest
    with open("/proc/self/status", encoding="ascii") as file:
        can_raise = any(line.startswith("CapEff:") and int(line.split()[1], 16) >> 24 & 1 for line in file)
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0 and not (case.who == "root" and os.geteuid() == 0 and can_raise):
        pytest.skip("core: the hard limit of core files is 0 here, and nobody may raise it (doctor says so)")
    yield {}


if __name__ == "__main__":
    main(attack)
