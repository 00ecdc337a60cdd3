"""Kills, stops and pesters the agent.

Would gain: a run whose end nobody reports, or one that outlives its clock. Where the kernel has no scope for
signals (Landlock's ABI is below 6) it accepts them; there the attempt is judged by what it does to the agent.
"""
import fcntl
import os
import signal
import time

from inside import agent, attempt, control, main, sysc

SCOPE_ABI = 6


def has_scope():
    try:
        return sysc("landlock_create_ruleset", 0, 0, 1) >= SCOPE_ABI
    except OSError:
        return False


def harms(pid, call, *args):
    """A signal is taken before its target runs again; a stopped or dead one does not. Where the agent is not
    shown to us, its death would be ours, and the run of a stopped one would not end as `exited`."""
    call(*args)
    time.sleep(0.02)
    os.kill(pid, 0)
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] in "TtZX"
    except FileNotFoundError:
        return False


def stay_behind():
    """A process that would outlive the run, if only the agent looked for it."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(3):
                os.close(number)
            time.sleep(300)
        os._exit(0)
    os.wait()


def siginfo(pid, number):
    import ctypes
    info = (ctypes.c_int * 32)(number, 0, -1)
    sysc("rt_sigqueueinfo", pid, number, info)


def by_pidfd(pid, number):
    sysc("pidfd_send_signal", sysc("pidfd_open", pid, 0), number, 0, 0)


def by_io(pid):
    """SIGKILL by the kernel, when a pipe of ours becomes readable."""
    r, w = os.pipe()
    fcntl.fcntl(r, fcntl.F_SETOWN, pid)
    fcntl.fcntl(r, 10, signal.SIGSTOP)  # F_SETSIG
    fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(w, b"x")
    os.kill(pid, 0)


def attack(token):
    pid, is_scoped = agent(), has_scope()
    stay_behind()

    def strike(name, call, *args):
        attempt(name, *(() if is_scoped else (harms, pid)), call, *args)

    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGUSR1, 0, signal.SIGKILL):
        name = signal.Signals(number).name if number else "0"
        strike(f"kill {name}", os.kill, pid, number)
        strike(f"tkill {name}", sysc, "tkill", pid, int(number))
        strike(f"tgkill {name}", sysc, "tgkill", pid, pid, int(number))
        strike(f"sigqueue {name}", siginfo, pid, int(number))
        strike(f"pidfd {name}", by_pidfd, pid, int(number))
    if pid > 1:  # the group of process 1 has no name: -1 is everybody
        strike("its process group", os.killpg, pid, signal.SIGKILL)
    strike("SIGIO", by_io, pid)
    control("we go on", os.getpid)


def host(case):
    yield {"args": [case.token]}
    assert not case.survivors()


if __name__ == "__main__":
    main(attack)
