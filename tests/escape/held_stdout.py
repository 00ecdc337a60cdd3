"""Lets a grandchild keep the output's pipe open.

Would gain: a caller that waits for the end of a stream that never ends.
"""
import os
import signal
import time

from daemon import host  # noqa: F401  (the same: soon over, nobody is left)
from inside import attempt, main


def attack(token):
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(60)
        os._exit(0)
    attempt("the leader ends", lambda: False)


if __name__ == "__main__":
    main(attack)
