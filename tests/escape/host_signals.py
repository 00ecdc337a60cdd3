"""Kills and stops a process of the host that has the caller's own uid.

Would gain: the end of the caller's other programs: his editor, his shell, caisson itself.
"""
import os
import signal

from inside import attempt, main, sysc


def by_pidfd(pid, number):
    sysc("pidfd_send_signal", sysc("pidfd_open", pid, 0), int(number), 0, 0)


def attack(pid):
    pid = int(pid)
    for number in (signal.SIGSTOP, signal.SIGKILL, signal.SIGUSR1):
        attempt(f"kill {number.name}", os.kill, pid, number)
        attempt(f"pidfd {number.name}", by_pidfd, pid, number)
        attempt(f"tgkill {number.name}", sysc, "tgkill", pid, pid, int(number))
    attempt("its group", os.killpg, pid, signal.SIGKILL)


def host(case):
    from hosts import is_alive, state_of
    from verdicts import verdict_of
    victim = case.victim()
    yield {"args": [str(victim.pid)]}
    if verdict_of("host_signals", case.wall, case.who).word != "allowed":
        assert is_alive(victim) and state_of(victim) in "SR"


if __name__ == "__main__":
    main(attack)
