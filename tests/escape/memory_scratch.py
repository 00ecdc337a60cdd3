"""Takes memory by files on scratch, which stay charged when their writer is dead.

Would gain: a memory limit that kills the agent after the command, so that nobody tells why.
"""
import os
import time

from inside import main, say


def attack():
    block = b"x" * (1 << 20)
    for i in range(4):
        with open(f"{os.environ['TMPDIR']}/{i}", "wb", buffering=0) as file:
            for _ in range(32):
                file.write(block)
    time.sleep(0.7)
    say(attempt="128 MiB on scratch", got=True, errno=None)


def host(case):
    yield {"flags": ["--memory", "96MiB", "-l", "scratch=512MiB"]}


if __name__ == "__main__":
    main(attack)
