"""kill(-1): a signal to every process that may be signalled.

Would gain: the end of everything else of the caller's; without a pid namespace that is his session.
"""
import os
import signal
import time

from inside import attempt, control, main


def attack():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        time.sleep(60)
        os._exit(0)
    time.sleep(0.05)
    attempt("kill(-1, SIGTERM)", os.kill, -1, signal.SIGTERM)
    control("a child of one's own was met", lambda: os.WIFSIGNALED(os.waitpid(child, 0)[1]))


def host(case):
    from hosts import is_alive
    from verdicts import verdict_of
    victim = case.victim()
    yield {}
    assert is_alive(victim) or verdict_of("kill_all", case.wall, case.who).ends != "exited"


if __name__ == "__main__":
    main(attack)
