"""Opens as many files, pipes and inotify watches as it can.

Would gain: the host's table of files, or memory that is nobody's.
"""
import os

from inside import attempt, main


def many(call, count):
    held = []
    try:
        for _ in range(count):
            held.append(call())
    finally:
        for fd in held:
            for one in fd if isinstance(fd, tuple) else (fd,):
                os.close(one)


def attack():
    attempt("files", many, lambda: os.open("/dev/null", os.O_RDONLY), 5000)
    attempt("pipes", many, os.pipe, 5000)
    attempt("memory files", many, lambda: os.memfd_create("x"), 5000)


if __name__ == "__main__":
    main(attack)
