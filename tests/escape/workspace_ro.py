"""Changes files of the read-only workspace.

Would gain: the caller's sources, and with them everything that is built from them.
"""
import os

from inside import attempt, main, opens


def attack():
    attempt("write", opens, "file", os.O_WRONLY)
    attempt("truncate", os.truncate, "file", 0)
    attempt("create", opens, "new", os.O_WRONLY | os.O_CREAT)
    attempt("unlink", os.unlink, "file")
    attempt("rename", os.rename, "file", "file2")
    attempt("mkdir", os.mkdir, "folder")
    attempt("symlink", os.symlink, "file", "link")
    attempt("hard link", os.link, "file", "link2")
    attempt("rights", os.chmod, "file", 0o777)
    attempt("times", os.utime, "file", (0, 0))
    attempt("attribute", os.setxattr, "file", "user.x", b"1")
    attempt("FIFO", os.mkfifo, "fifo")
    attempt("temporary", os.open, ".", os.O_TMPFILE | os.O_RDWR, 0o600)
    attempt("a socket", _bind, "sock")


def _bind(path):
    import socket
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)


def host(case):
    from hosts import picture
    (case.ws / "file").write_text("as it was")
    os.utime(case.ws / "file", (1000, 1000))
    case.give()
    before = picture(case.ws)
    yield {}
    assert picture(case.ws) == before and (case.ws / "file").stat().st_mtime == 1000


if __name__ == "__main__":
    main(attack)
