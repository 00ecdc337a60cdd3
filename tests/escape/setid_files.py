"""Leaves set-user-id programs in a writable workspace, whose files belong to the caller (or root).

Would gain: an accomplice with any account on the host executes them and is the caller; after a
run that root started, he is root.
"""
import ctypes
import os
import shutil
import stat

from inside import attempt, control, main, opens, sysc

HAS = stat.S_ISUID | stat.S_ISGID


def is_set(path):
    return bool(os.stat(path).st_mode & HAS)


def by_chmod(path, mode):
    shutil.copy("attack/show_ids", path)
    os.chmod(path, mode)
    return is_set(path)


def by_fchmod(path, mode):
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o755)
    os.fchmod(fd, mode)
    return is_set(path)


def by_open(path, mode):
    opens(path, os.O_CREAT | os.O_WRONLY, mode)
    return is_set(path)


def by_mknod(path, mode):
    os.mknod(path, stat.S_IFREG | mode)
    return is_set(path)


def by_fchmodat2(path, mode):
    opens(path, os.O_CREAT | os.O_WRONLY, 0o755)
    sysc("fchmodat2", -100, path.encode(), mode, 0)
    return is_set(path)


def by_tmpfile(path, mode):
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR, mode)
    os.link(f"/proc/self/fd/{fd}", path, follow_symlinks=True)
    return is_set(path)


def by_high_bits(path, mode):
    opens(path, os.O_CREAT | os.O_WRONLY, 0o755)
    os.umask(0)
    fd = os.open(path, os.O_RDWR)
    if ctypes.CDLL(None).syscall(ctypes.c_long(91 if os.uname().machine == "x86_64" else 52), ctypes.c_long(fd),
                                 ctypes.c_long(mode | 1 << 32)) < 0:
        raise OSError(1, "")
    return is_set(path)


def attack():
    control("an ordinary program", lambda: by_chmod("plain", 0o755) or True)
    for name, mode in (("uid", 0o4755), ("gid", 0o2755), ("both", 0o6755)):
        for way in (by_chmod, by_fchmod, by_open, by_mknod, by_fchmodat2, by_tmpfile, by_high_bits):
            attempt(f"{way.__name__} {name}", way, f"{way.__name__}-{name}", mode)


def host(case):
    yield {"flags": ["--rw"]}
    left = [path.name for path in case.ws.rglob("*") if path.is_file() and path.lstat().st_mode & HAS]
    assert left == []


if __name__ == "__main__":
    main(attack)
