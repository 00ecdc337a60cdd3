"""Writes to read-only files by way of /proc/self: its root, its descriptors, its mappings.

Would gain: a second name under which a file would be writable that is not under the first.
"""
import ctypes
import os

from inside import attempt, main, opens


def reopened(path, how=os.O_RDONLY):
    fd = os.open(path, how)
    opens(f"/proc/self/fd/{fd}", os.O_WRONLY)


def by_fd_path(path):
    fd = os.open(path, os.O_RDONLY)
    opens(f"/dev/fd/{fd}", os.O_RDWR)


def own_memory():
    """Forces a write into a read-only shared mapping, as a debugger would."""
    fd = os.open("attack/inside.py", os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    at = libc.mmap(None, 4096, 1, 1, fd, 0)
    mem = os.open("/proc/self/mem", os.O_RDWR)
    try:
        os.pwrite(mem, b"OWNED", at)
    finally:
        os.close(mem)
    with open("attack/inside.py", "rb") as file:
        return file.read(5) == b"OWNED"


def attack():
    attempt("/proc/self/root", opens, "/proc/self/root/etc/passwd", os.O_WRONLY)
    attempt("/proc/thread-self/root", opens, "/proc/thread-self/root/etc/passwd", os.O_WRONLY)
    attempt("/proc/self/cwd", opens, "/proc/self/cwd/attack/inside.py", os.O_WRONLY)
    attempt("/proc/self/exe", opens, "/proc/self/exe", os.O_WRONLY)
    attempt("descriptor of a file", reopened, "attack/inside.py")
    attempt("descriptor of a path", reopened, "attack/inside.py", os.O_PATH)
    attempt("/dev/fd", by_fd_path, "attack/inside.py")
    attempt("own memory", own_memory)


def host(case):
    from hosts import picture
    case.give()
    before = picture(case.ws)
    yield {}
    assert picture(case.ws) == before


if __name__ == "__main__":
    main(attack)
