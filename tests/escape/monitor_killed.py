"""Waits for caisson to be killed, and goes on.

Would gain: a sandbox without a monitor: no clock, no limits, no record.
"""
import os
import sys
import time

from inside import main


def attack(token):
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            break
    print("ready", flush=True)
    while True:
        time.sleep(60)


def host(case):
    import subprocess

    def run(flags, command):
        process = case.start(flags, command, stdin=subprocess.DEVNULL)
        assert process.stdout.readline() == b"ready\n"
        process.kill()
        process.wait()
        case.left = case.survivors()
        process.stdout.close()
        process.stderr.close()

        class Killed:
            reason, events, attempts, is_done = "killed", set(), [], True
        return Killed()

    yield {"run": run, "args": [case.token]}
    assert case.left == []


if __name__ == "__main__":
    main(attack)
