"""Kills, stops and pesters the agent.

Would gain: a run whose end nobody reports, or one that outlives its clock.
"""
import fcntl
import os
import signal

from inside import agent, attempt, control, main, sysc


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


def attack():
    pid = agent()
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGUSR1, 0):
        name = signal.Signals(number).name if number else "0"
        attempt(f"kill {name}", os.kill, pid, number)
        attempt(f"tkill {name}", sysc, "tkill", pid, int(number))
        attempt(f"tgkill {name}", sysc, "tgkill", pid, pid, int(number))
        attempt(f"sigqueue {name}", siginfo, pid, int(number))
        attempt(f"pidfd {name}", by_pidfd, pid, int(number))
    attempt("its process group", os.killpg, os.getpgid(0) if pid == 0 else pid, signal.SIGKILL)
    attempt("SIGIO", by_io, pid)
    control("we go on", os.getpid)


if __name__ == "__main__":
    main(attack)
