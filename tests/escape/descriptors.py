"""Looks for descriptors that were left open.

Would gain: whatever they refer to; no wall is asked again about an open file.
"""
import os

from inside import attempt, main


def attack():
    own = os.open("/proc/self/fd", os.O_RDONLY)
    others = [int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) not in (0, 1, 2, own)]
    others = [fd for fd in others if _is_open(fd)]
    attempt("more than three", lambda: bool(others))
    for fd in range(3, 128):
        if fd != own:
            attempt(f"descriptor {fd}", lambda fd=fd: bool(os.fstat(fd)))
    for fd in (0, 1, 2):
        attempt(f"{fd} is a socket", lambda fd=fd: os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"))


def _is_open(fd):
    try:
        os.fstat(fd)
        return True
    except OSError:
        return False


def host(case):
    (case.outside / "secret").write_text("csn-secret-value")
    left = [os.open(case.outside / "secret", os.O_RDONLY), os.open("/", os.O_RDONLY | os.O_DIRECTORY)]
    high = os.dup2(left[0], 77, inheritable=True)
    case.pass_fds = (*left, high)
    yield {}
    for fd in case.pass_fds:
        os.close(fd)


if __name__ == "__main__":
    main(attack)
