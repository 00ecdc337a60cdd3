"""Crashes where the host pipes crashes to a handler (systemd-coredump, apport): the kernel starts it
on the host, as root, even if core files are limited to nothing.

Would gain: a root program outside the wall that parses memory of the attacker's making. The kernel
spares only those whose limit is exactly 1.
"""
import ctypes
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


if __name__ == "__main__":
    main(attack)
