"""Changes rights, owners, times and attributes of files of the read-only workspace that it has opened for reading.

Would gain: sources that everybody may write. A read-only mount refuses it for open files too; Landlock does not.
"""
import ctypes
import os

from inside import attempt, called, main, sysc

EMPTY = 0x1000
TIMES = (ctypes.c_long * 4)(5, 0, 5, 0)


def attack():
    fd, folder = os.open("file", os.O_RDONLY), os.open(".", os.O_RDONLY)
    attempt("fchmod", os.fchmod, fd, 0o666)
    attempt("fchmod of the folder", os.fchmod, folder, 0o777)
    attempt("fchown", os.fchown, fd, os.getuid(), os.getgid())
    attempt("futimens", lambda: called("futimens", fd, TIMES))
    attempt("futimens, now", lambda: called("futimens", fd, None))
    attempt("futimesat, null", lambda: called("futimesat", fd, None, TIMES))
    attempt("fsetxattr", os.setxattr, fd, "user.x", b"1")
    attempt("fremovexattr", os.removexattr, fd, "user.there")
    attempt("no path", lambda: sysc("fchmodat2", fd, b"", 0o666, EMPTY))
    attempt("/proc/self/fd", os.chmod, f"/proc/self/fd/{fd}", 0o666)
    attempt("beneath the folder", lambda: os.chmod("file", 0o666, dir_fd=folder))
    attempt("touch", os.utime, "file")
    os.dup2(fd, 1000)
    attempt("a high number", os.fchmod, 1000, 0o666)


def host(case):
    import contextlib
    from hosts import picture
    path = case.ws / "file"
    path.write_text("as it was")
    with contextlib.suppress(OSError):
        os.setxattr(path, "user.there", b"1")
    os.utime(path, (1000, 1000))
    case.give()
    before = picture(case.ws), os.listxattr(path)
    yield {}
    assert (picture(case.ws), os.listxattr(path)) == before and path.stat().st_mtime == 1000


if __name__ == "__main__":
    main(attack)
