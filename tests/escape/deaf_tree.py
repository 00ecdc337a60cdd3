"""Ignores and stops signals in a whole tree of processes when its time is over.

Would gain: a run that goes on after its deadline.
"""
import os
import signal
import time

from inside import main


def attack(token):
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    for i in range(4):
        if os.fork() == 0:
            if i % 2:
                os.setsid()
            if i == 3:
                os.kill(os.getpid(), signal.SIGSTOP)
            break
    while True:
        time.sleep(60)


def host(case):
    run = yield {"flags": ["--timeout", "700ms"], "args": [case.token]}
    assert run.seconds < 6
    assert run.status == 124 and run.result["termination"]["clock"] == "command"
    assert case.survivors() == []


if __name__ == "__main__":
    main(attack)
