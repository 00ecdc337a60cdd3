"""Asks what lies where on the host, without opening anything: stat, readlink, access, watches.

Would gain: names, sizes and times of the caller's files, and when he changes them.
"""
import os

from inside import attempt, called, main


def watched(path):
    fd = called("inotify_init1", 0)
    called("inotify_add_watch", fd, path.encode(), 0x100)


def attack(home):
    attempt("stat", os.stat, f"{home}/.ssh/id_ed25519")
    attempt("access", lambda: os.access(f"{home}/.ssh/id_ed25519", os.F_OK))
    attempt("readlink", os.readlink, f"{home}/link")
    attempt("change to it", os.chdir, home)
    attempt("its free space", os.statvfs, home)
    attempt("a watch", watched, f"{home}/.ssh")
    attempt("its attributes", os.listxattr, f"{home}/.ssh/id_ed25519")


def host(case):
    (case.home / ".ssh").mkdir()
    (case.home / ".ssh/id_ed25519").write_text("csn-secret-value")
    (case.home / "link").symlink_to("target")
    yield {"args": [str(case.home)]}


if __name__ == "__main__":
    main(attack)
