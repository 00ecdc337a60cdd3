"""Follows links in the workspace that lead out of it.

Would gain: whatever they point to, if somebody outside follows them for the program.
"""
import os

from inside import attempt, main, opens, reads


def attack():
    attempt("to a file", reads, "to-file")
    attempt("to a file, writing", opens, "to-file", os.O_WRONLY)
    attempt("to a folder", os.listdir, "to-folder")
    attempt("through a folder", reads, "to-folder/file")
    attempt("to the home folder", os.listdir, "to-home")
    attempt("to shadow", reads, "to-shadow")
    attempt("to /root", os.listdir, "to-root-home")
    attempt("relative", reads, "relative")


def host(case):
    from hosts import picture
    (case.outside / "file").write_text("csn-secret-value")
    (case.ws / ".env").write_text("hidden: walls that grant its neighbours one by one must not follow them")
    for name, to in (("to-file", case.outside / "file"), ("to-folder", case.outside), ("to-home", case.home),
                     ("to-shadow", "/etc/shadow"), ("to-root-home", "/root"), ("relative", "../outside/file")):
        (case.ws / name).symlink_to(to)
    case.give()
    before = picture(case.outside)
    yield {}
    assert picture(case.outside) == before


if __name__ == "__main__":
    main(attack)
