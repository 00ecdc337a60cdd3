"""Takes memory that no process has mapped: files in memory.

Would gain: the host's memory, unseen by whoever adds up the processes' own.
"""
import os
import time

from inside import main, say


def attack():
    held, block = [], b"x" * (1 << 20)
    for _ in range(4):
        fd = os.memfd_create("x")
        held.append(fd)
        for _ in range(128):
            os.write(fd, block)
    time.sleep(2)
    say(attempt="half a gigabyte in memfds", got=True, errno=None)


def host(case):
    yield {"flags": ["--memory", "96MiB"]}


if __name__ == "__main__":
    main(attack)
