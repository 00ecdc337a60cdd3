"""Prints and makes reported calls while the caller does not read.

Would gain: a deadlock: the agent waits for an answer, the monitor waits to write to the agent.
"""
import os
import threading

from inside import main


def attack(token):
    def print_all():
        while True:
            os.write(1, b"x" * 65536)

    threading.Thread(target=print_all, daemon=True).start()
    while True:
        try:
            os.mkdir("/usr/new")
        except OSError:
            pass


def host(case):
    import time

    def run(flags, command):
        started = time.monotonic()
        process = case.start(flags, command)
        time.sleep(2.5)
        case.left = case.survivors(within=1)
        return case.finish(process, started)

    run_ = yield {"run": run, "flags": ["--timeout", "1s"], "args": [case.token]}
    assert case.left == [], "the deadline holds although nobody reads"
    assert run_.seconds < 10


if __name__ == "__main__":
    main(attack)
