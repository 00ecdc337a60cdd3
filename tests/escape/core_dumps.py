"""Crashes, having asked for a core file.

Would gain: memory of the program on the host's disk, in a folder and under a name of its choice.
"""
import ctypes
import os
import resource
import signal

from inside import attempt, main, sysc


def limits():
    """Soft and hard, as the kernel holds them."""
    with open("/proc/self/limits") as file:
        line = next(line for line in file if line.startswith("Max core file size"))
    return line.split()[4:6]


def raised():
    sysc("prlimit64", 0, resource.RLIMIT_CORE, (ctypes.c_uint64 * 2)(1 << 20, 1 << 20), 0)
    return limits()[0] not in ("0", "1")


def crash():
    pid = os.fork()
    if pid == 0:
        os.chdir(os.environ["TMPDIR"])
        os.kill(os.getpid(), signal.SIGSEGV)
    return os.WCOREDUMP(os.waitpid(pid, 0)[1])


def attack():
    attempt("a limit that a core file fits in", lambda: limits()[1] not in ("0", "1"))
    attempt("raise it", raised)
    attempt("a core", crash)


if __name__ == "__main__":
    main(attack)
