"""Finds System V shared memory, semaphores and queues of the host by their keys.

Would gain: the memory that databases and X clients share; mode 0666 is common there.
"""
import ctypes
import os

from inside import attempt, called, main

KEY = 0x63736e21


def readable():
    with open("/proc/sysvipc/shm") as file:
        return str(KEY) in file.read()


def attack():
    attempt("shared memory", called, "shmget", KEY, 0, 0)
    attempt("semaphores", called, "semget", KEY, 0, 0)
    attempt("a queue", called, "msgget", KEY, 0)
    attempt("the list", readable)


def host(case):
    libc = ctypes.CDLL(None, use_errno=True)
    made = [libc.shmget(KEY, 4096, 0o1666), libc.semget(KEY, 1, 0o1666), libc.msgget(KEY, 0o1666)]
    assert min(made) >= 0, os.strerror(ctypes.get_errno())
    case.cleanups += [lambda: libc.shmctl(made[0], 0, None), lambda: libc.semctl(made[1], 0, 0),
                      lambda: libc.msgctl(made[2], 0, None)]
    yield {}


if __name__ == "__main__":
    main(attack)
