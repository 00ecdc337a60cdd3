"""Forks and exits in a chain, in a session of its own, faster than anybody reads /proc.

Would gain: a process that outlives its run because it is never where one looks.
"""
import os
import time

from daemon import host  # noqa: F401  (the same: soon over, nobody is left)
from inside import attempt, main


def attack(token):
    for _ in range(8):
        if os.fork() == 0:
            os.setsid()
            for fd in (0, 1, 2):
                os.close(fd)
            end = time.monotonic() + 60
            while time.monotonic() < end:
                try:
                    if os.fork():
                        os._exit(0)
                except OSError:
                    pass
            os._exit(0)
    time.sleep(0.2)
    attempt("the leader ends", lambda: False)


if __name__ == "__main__":
    main(attack)
