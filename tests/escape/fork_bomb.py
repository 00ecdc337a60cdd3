"""Forks without end.

Would gain: a host that can start no more processes.
"""
import os
import signal
import time

from inside import attempt, main


def fork_many(count):
    children = []
    try:
        for _ in range(count):
            pid = os.fork()
            if pid == 0:
                time.sleep(30)
                os._exit(0)
            children.append(pid)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def attack():
    attempt("more than the limit", fork_many, 64)


def host(case):
    import subprocess
    yield {"flags": ["-l", "processes=32"]}
    assert subprocess.run(["/bin/true"], **case.as_starter()).returncode == 0


if __name__ == "__main__":
    main(attack)
