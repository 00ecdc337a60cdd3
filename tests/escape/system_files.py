"""Changes the system's files by every call that changes files.

Would gain: a program or a library of the attacker's in everybody's path.
"""
import os

from inside import attempt, main, opens


def attack():
    scratch = os.environ["TMPDIR"]
    for path in ("/usr/bin/env", "/usr/lib/os-release", "/etc/passwd", "/etc/hosts", "/etc/ld.so.cache", "/etc/resolv.conf"):
        attempt(f"write {path}", opens, path, os.O_WRONLY)
        attempt(f"append {path}", opens, path, os.O_RDWR | os.O_APPEND)
        attempt(f"truncate {path}", os.truncate, path, 0)
        attempt(f"unlink {path}", os.unlink, path)
        attempt(f"rename {path}", os.rename, path, path + ".old")
        attempt(f"chmod {path}", os.chmod, path, 0o777)
        attempt(f"own xattr {path}", os.setxattr, path, "user.x", b"x")
        attempt(f"replace {path}", os.replace, f"{scratch}/new", path)
    for path in ("/new", "/usr/new", "/etc/ld.so.preload", "/etc/new", "/usr/local/bin/git", "/lib/new", "/dev/new",
                 "/proc/new", "/run/new", "/var/new"):
        attempt(f"create {path}", opens, path, os.O_WRONLY | os.O_CREAT)
        attempt(f"mkdir {path}", os.mkdir, path)
        attempt(f"symlink {path}", os.symlink, "/x", path)
    attempt("hard link out", os.link, "/usr/bin/env", f"{scratch}/env")
    attempt("rmdir", os.rmdir, "/usr/local/share/man")
    attempt("temporary in /usr", os.open, "/usr", os.O_TMPFILE | os.O_RDWR, 0o600)
    attempt("truncating read", opens, "/etc/passwd", os.O_RDONLY | os.O_TRUNC)


if __name__ == "__main__":
    main(attack)
