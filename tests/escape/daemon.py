"""Leaves a daemon behind: two forks, a session of its own, no descriptors.

Would gain: code that runs when the run is over and nobody looks any more.
"""
import os
import time

from inside import attempt, main


def attack(token):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for fd in (0, 1, 2):
            os.close(fd)
        time.sleep(60)
        os._exit(0)
    time.sleep(0.1)
    attempt("the leader ends", lambda: False)


def host(case):
    run = yield {"args": [case.token]}
    assert run.seconds < 10
    assert case.survivors() == []


if __name__ == "__main__":
    main(attack)
