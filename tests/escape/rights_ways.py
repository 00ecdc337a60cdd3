"""Changes rights, owners, times and attributes of files outside a writable workspace, and of hidden ones in it, by all
the ways to name a file: links, folders and files by descriptor, no path at all, hard links.

Would gain: a private key that everybody can read; an owner, a time, an attribute that somebody outside trusts.
"""
import ctypes
import os
import shutil
import subprocess

from inside import attempt, called, control, main, sysc

EMPTY, NOFOLLOW, CWD = 0x1000, 0x100, -100
TIMES = (ctypes.c_long * 4)(5, 0, 5, 0)


ROOM = os.path.abspath("room")  # without hidden files, so that Landlock lets new ones be made in it


def o_path(path):
    return os.open(path, os.O_PATH)


def linked(path, name):
    os.symlink(path, name)
    os.chmod(name, 0o666)


def hard_linked(path, name):
    os.link(path, name)
    os.chmod(name, 0o666)


def from_below(folder, name):
    """A path without a slash in front, from a folder that the plan does not lend."""
    os.chdir(folder)
    try:
        os.chmod(name, 0o666)
    finally:
        os.chdir(ROOM)


def programs():
    """What builds do all day, with links, folders, times and rights to be kept."""
    subprocess.run("mkdir -p d/e && cp mine d/f && ln -s f d/l && chmod 640 d/f && touch -d @7 d/f && touch -h -d @8 d/l && "
                   "cp -a d copy && cp -p d/f kept && tar cf d.tar d && mkdir out && tar xf d.tar -C out && "
                   "install -m 750 d/f made && install -d -m 700 folder && chgrp $(id -g) d/f && chmod -R go-w d",
                   shell=True, stdin=subprocess.DEVNULL)
    shutil.copystat("d/f", "made")
    kept = [os.lstat(path) for path in ("copy/f", "kept", "out/d/f", "made")]
    return all(st.st_mtime == 7 and st.st_mode & 0o777 == 0o640 for st in kept) and os.lstat("copy/l").st_mtime == 8


def attack(home):
    os.chdir(ROOM)
    key, folder = f"{home}/.ssh/id_ed25519", f"{home}/.ssh"
    control("a link of its own", os.symlink, "mine", "own")
    control("rights of its own", os.chmod, "mine", 0o640)
    control("times of its own", os.utime, "mine", (7, 7))
    control("cp, tar, install, touch", programs)
    control("by descriptor", lambda: os.chmod(f"/proc/self/fd/{os.open('mine', os.O_RDONLY)}", 0o644))
    attempt("by a link", linked, key, "link")
    attempt("by a link to the folder", lambda: os.symlink(folder, "way") or os.chmod("way/id_ed25519", 0o666))
    attempt("by a hard link", hard_linked, key, "hard")
    attempt("by dots", os.chmod, "../../home/.ssh/id_ed25519", 0o666)
    attempt("by /proc/self/root", os.chmod, f"/proc/self/root{key}", 0o666)
    attempt("by /proc/self/cwd", os.chmod, "/proc/self/cwd/../../home/.ssh/id_ed25519", 0o666)
    attempt("from its folder", from_below, folder, "id_ed25519")
    attempt("by its folder's descriptor", lambda: os.chmod("id_ed25519", 0o666, dir_fd=o_path(folder)))
    attempt("by a folder of one's own and dots",
            lambda: os.chmod("../../home/.ssh/id_ed25519", 0o666, dir_fd=os.open(".", os.O_RDONLY)))
    attempt("by /proc/self/fd", lambda: os.chmod(f"/proc/self/fd/{o_path(key)}", 0o666))
    attempt("by /dev/fd", lambda: os.chmod(f"/dev/fd/{o_path(key)}", 0o666))
    attempt("by /proc/PID/fd", lambda: os.chmod(f"/proc/{os.getpid()}/fd/{o_path(key)}", 0o666))
    attempt("by a link to /proc/self/fd", lambda: linked(f"/proc/self/fd/{o_path(key)}", "magic"))
    attempt("fchmod of O_PATH", lambda: called("fchmod", o_path(key), 0o666))
    attempt("fchmodat2, no path", lambda: sysc("fchmodat2", o_path(key), b"", 0o666, EMPTY))
    attempt("fchownat, no path", lambda: called("fchownat", o_path(key), b"", os.getuid(), os.getgid(), EMPTY))
    attempt("utimensat, no path", lambda: called("utimensat", o_path(key), b"", TIMES, EMPTY))
    attempt("utimensat, null", lambda: called("utimensat", o_path(key), None, TIMES, 0))
    attempt("utimensat, null, open", lambda: called("utimensat", os.open("/usr/bin/env", os.O_RDONLY), None, TIMES, 0))
    attempt("utimensat of a link", lambda: called("utimensat", CWD, f"{home}/link".encode(), TIMES, NOFOLLOW))
    attempt("lchown of a link", os.lchown, f"{home}/link", os.getuid(), os.getgid())
    attempt("utime", lambda: called("utime", key.encode(), (ctypes.c_long * 2)(5, 5)))
    attempt("utimes", lambda: called("utimes", key.encode(), TIMES))
    attempt("futimesat", lambda: called("futimesat", o_path(folder), b"id_ed25519", TIMES))
    attempt("now", os.utime, key)
    attempt("setxattr", os.setxattr, key, "user.x", b"1")
    attempt("lsetxattr", lambda: os.setxattr(key, "user.x", b"1", follow_symlinks=False))
    attempt("removexattr", os.removexattr, key, "user.there")
    attempt("lremovexattr", lambda: os.removexattr(key, "user.there", follow_symlinks=False))
    attempt("an access list", os.setxattr, key, "system.posix_acl_access",
            bytes.fromhex("02000000 01000600ffffffff 04000400ffffffff 20000400ffffffff"))
    attempt("the folder", os.chmod, folder, 0o777)
    attempt("the workspace's own folder", os.chmod, "../..", 0o777)
    for path in ("../.env", "../sub/server.pem"):
        attempt(f"hidden {path[3:]}", os.chmod, path, 0o666)
        attempt(f"times of hidden {path[3:]}", lambda: called("utime", path.encode(), (ctypes.c_long * 2)(5, 5)))
        attempt(f"hidden {path[3:]}, by descriptor", lambda: os.chmod(f"/proc/self/fd/{o_path(path)}", 0o666))
    attempt("set-id", os.chmod, "mine", 0o4755)
    attempt("another's", os.chown, "mine", 1, 1)
    attempt("a trusted attribute", os.setxattr, "mine", "trusted.x", b"1")


def host(case):
    import contextlib
    from hosts import picture
    key = case.home / ".ssh/id_ed25519"
    secrets = [key, case.ws / ".env", case.ws / "sub/server.pem"]
    for path in secrets:
        path.parent.mkdir(exist_ok=True)
        path.write_text("csn-secret-value")
        path.chmod(0o600)
        with contextlib.suppress(OSError):
            os.setxattr(path, "user.there", b"1")
    (case.home / "link").symlink_to(key)
    (case.ws / "room").mkdir()
    (case.ws / "room/mine").write_text("mine")
    case.give()
    for path in (*secrets, case.home / "link"):
        os.utime(path, (1000, 1000), follow_symlinks=False)
    before = picture(case.home, *secrets), [os.listxattr(path) for path in secrets], os.stat(case.base).st_mode
    yield {"flags": ["--rw"], "args": [str(case.home)]}
    assert (picture(case.home, *secrets), [os.listxattr(path) for path in secrets], os.stat(case.base).st_mode) == before
    assert {path.lstat().st_mtime for path in (*secrets, case.home / "link")} == {1000}
    assert not (case.ws / "room/mine").stat().st_mode & 0o6000


if __name__ == "__main__":
    main(attack)
