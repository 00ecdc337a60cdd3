"""Writes through a hard link in the read-only workspace, and makes new ones.

Would gain: the file outside that the link is another name of.
"""
import os

from inside import attempt, main, opens


def attack():
    scratch = os.environ["TMPDIR"]
    attempt("write", opens, "linked", os.O_WRONLY)
    attempt("rights", os.chmod, "linked", 0o777)
    attempt("a link on scratch", os.link, "linked", f"{scratch}/linked")
    attempt("a link by descriptor", lambda: os.link(f"/proc/self/fd/{os.open('linked', os.O_RDONLY)}", f"{scratch}/l2",
                                                    follow_symlinks=True))
    attempt("a link of a system file", os.link, "/usr/bin/env", f"{scratch}/env")
    attempt("a link in the workspace", os.link, f"{scratch}/none", "new")


def host(case):
    from hosts import picture
    (case.outside / "file").write_text("outside")
    os.link(case.outside / "file", case.ws / "linked")
    case.give()
    before = picture(case.outside)
    yield {}
    assert picture(case.outside) == before


if __name__ == "__main__":
    main(attack)
