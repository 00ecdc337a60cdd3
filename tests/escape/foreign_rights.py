"""Changes rights, owners, times and attributes of the caller's other files, without opening them.

Would gain: a private key that everybody can read; Landlock does not cover such calls.
"""
import os

from inside import attempt, main


def by_descriptor(path):
    fd = os.open(path, os.O_PATH)
    os.chmod(f"/proc/self/fd/{fd}", 0o666)


def attack(home):
    path = f"{home}/.ssh/id_ed25519"
    attempt("chmod", os.chmod, path, 0o666)
    attempt("chmod of the folder", os.chmod, home, 0o777)
    attempt("chmod by descriptor", by_descriptor, path)
    attempt("chmod without following", os.chmod, f"{home}/link", 0o666)
    attempt("chown", os.chown, path, os.getuid(), os.getgid())
    attempt("times", os.utime, path, (0, 0))
    attempt("attribute", os.setxattr, path, "user.x", b"1")


def host(case):
    from hosts import picture
    path = case.home / ".ssh/id_ed25519"
    path.parent.mkdir()
    path.write_text("csn-secret-value")
    os.utime(path, (1000, 1000))
    path.chmod(0o600)
    (case.home / "link").symlink_to(path)
    case.give()
    before = picture(case.home)
    yield {"args": [str(case.home)]}
    assert picture(case.home) == before and path.stat().st_mtime == 1000 and not os.listxattr(path)


if __name__ == "__main__":
    main(attack)
