"""Opens another terminal of the caller's by its name in /dev/pts.

Would gain: what the caller types there (passwords too), and whatever a terminal does on escapes.
"""
import os

from inside import attempt, main


def wrote(path):
    fd = os.open(path, os.O_WRONLY | os.O_NOCTTY)
    os.write(fd, b"\x1b]0;owned\x07")


def attack(terminal):
    attempt("read keys", lambda: os.close(os.open(terminal, os.O_RDONLY | os.O_NOCTTY)))
    attempt("write escapes", wrote, terminal)


def host(case):
    import pty
    master, slave = pty.openpty()
    if os.geteuid() == 0:
        os.chown(os.ttyname(slave), case.uid, case.uid)
    yield {"args": [os.ttyname(slave)]}
    os.set_blocking(master, False)
    try:
        heard = os.read(master, 100)
    except BlockingIOError:
        heard = b""
    os.close(master)
    os.close(slave)
    assert heard == b""


if __name__ == "__main__":
    main(attack)
