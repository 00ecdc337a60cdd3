"""Cripples the agent by its limits and its place in the scheduler.

Would gain: an agent without descriptors or CPU time, that can neither report nor end the run.
"""
import ctypes
import os

from inside import agent, attempt, control, main, sysc


def attack():
    pid, low = agent(), (ctypes.c_uint64 * 2)(0, 0)
    control("limits of one's own", sysc, "prlimit64", 0, 7, 0, (ctypes.c_uint64 * 2)())
    control("nice", os.nice, 1)
    attempt("prlimit", sysc, "prlimit64", pid, 7, low, 0)
    attempt("prlimit, reading", sysc, "prlimit64", pid, 7, 0, (ctypes.c_uint64 * 2)())
    attempt("prlimit of oneself by number", sysc, "prlimit64", os.getpid(), 7, 0, (ctypes.c_uint64 * 2)())
    attempt("scheduler", sysc, "sched_setscheduler", pid, 5, (ctypes.c_int * 1)(0))
    attempt("scheduler parameters", sysc, "sched_setparam", pid, (ctypes.c_int * 1)(0))
    attempt("scheduler attributes", sysc, "sched_setattr", pid, (ctypes.c_uint32 * 12)(48, 5), 0)
    attempt("affinity", sysc, "sched_setaffinity", pid, 8, (ctypes.c_uint64 * 1)(1))
    attempt("priority", sysc, "setpriority", 0, pid, 19)
    attempt("priority of its group", sysc, "setpriority", 1, pid, 19)
    attempt("priority of the whole uid", sysc, "setpriority", 2, os.getuid(), 19)
    attempt("io priority", sysc, "ioprio_set", 1, pid, 3 << 13)
    attempt("io priority of the whole uid", sysc, "ioprio_set", 3, os.getuid(), 3 << 13)


if __name__ == "__main__":
    main(attack)
