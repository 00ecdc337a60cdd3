"""Prints without end.

Would gain: the host's disk by way of records, the memory of whoever reads.
"""
import os

from inside import main, say


def attack():
    for _ in range(200):
        os.write(1, b"x" * 65536)
    say(attempt="twelve megabytes", got=True, errno=None)


def host(case):
    run = yield {"flags": ["-l", "output=64KiB"]}
    assert len(run.out) < 256 << 10
    assert sum(path.stat().st_size for path in case.runs.rglob("*") if path.is_file()) < 1 << 20


if __name__ == "__main__":
    main(attack)
