"""Raises its own limits, its priority, and its worth to the OOM killer.

Would gain: more than the policy gives; the host's CPU by a real-time scheduler.
"""
import ctypes
import os
import resource

from inside import attempt, main, sysc


def more(what):
    hard = resource.getrlimit(what)[1]
    if hard == resource.RLIM_INFINITY:
        return False
    sysc("prlimit64", 0, what, (ctypes.c_uint64 * 2)(hard + 1, hard + 1), 0)


def score(name, text):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)


def attack():
    for name in ("NOFILE", "NPROC", "MEMLOCK", "MSGQUEUE", "RTPRIO", "NICE", "SIGPENDING"):
        attempt(name, more, getattr(resource, f"RLIMIT_{name}"))
    attempt("nice", os.nice, -5)
    attempt("FIFO scheduler", os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))
    attempt("deadline scheduler", sysc, "sched_setattr", 0,
            (ctypes.c_uint64 * 6)(48 | 6 << 32, 0, 0, 1000000, 2000000, 2000000), 0)
    attempt("real-time io", sysc, "ioprio_set", 1, 0, 1 << 13)
    attempt("oom_score_adj", score, "oom_score_adj", "-900")
    attempt("loginuid", score, "loginuid", "0")


if __name__ == "__main__":
    main(attack)
