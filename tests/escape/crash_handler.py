"""Crashes where the host pipes crashes to a handler (systemd-coredump, apport): the kernel starts it
on the host, as root, even if core files are limited to nothing.

Would gain: a root program outside the wall that parses memory of the attacker's making. The kernel
spares only those whose limit is exactly 1.
"""
import ctypes
import resource

from inside import attempt, main, sysc


def attack():
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    attempt("a limit for which the kernel starts the handler", lambda: limits != (1, 1))
    attempt("lowering it to zero", sysc, "prlimit64", 0, resource.RLIMIT_CORE, (ctypes.c_uint64 * 2)(0, 1), 0)
    attempt("the same by setrlimit", sysc, "setrlimit", resource.RLIMIT_CORE, (ctypes.c_uint64 * 2)(0, 0))


if __name__ == "__main__":
    main(attack)
