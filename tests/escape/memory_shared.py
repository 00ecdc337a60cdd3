"""Takes shared memory, and gives each page back to the kernel, which keeps it: it may be wanted again.

Would gain: the host's memory, in no process's count and behind no descriptor.
"""
import mmap
import time

from inside import main, say


def attack():
    held = []
    for _ in range(8):
        part = mmap.mmap(-1, 64 << 20)
        for at in range(0, len(part), 1 << 20):
            part[at:at + (1 << 20)] = b"x" * (1 << 20)
            part.madvise(mmap.MADV_DONTNEED)
        held.append(part)
    time.sleep(2)
    say(attempt="half a gigabyte of shared memory", got=True, errno=None)


def host(case):
    yield {"flags": ["--memory", "96MiB"]}


if __name__ == "__main__":
    main(attack)
