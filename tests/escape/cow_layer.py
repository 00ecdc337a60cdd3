"""Reaches for the layer behind a copy-on-write workspace, and writes to the workspace itself.

Would gain: the lower files, unseen by the difference that the caller looks at before he commits.
"""
import os

from inside import attempt, control, main, opens


def wrote(path):
    with open(path, "w") as file:
        file.write("changed")


def attack(outside):
    control("a write goes to the layer", wrote, "file")
    control("a new file", wrote, "new")
    control("a removal", os.unlink, "gone")
    attempt("the layer's folder", lambda: bool(os.listdir("/run/caisson/layer")))
    attempt("the lower folder", lambda: bool(os.listdir("/run/caisson/lower")))
    attempt("the host's path", os.listdir, outside)
    attempt("a whiteout", os.mknod, "white", 0o020000, 0)
    attempt("a forged mark hides the lower files", lambda: os.setxattr("folder", "user.overlay.opaque", b"y")
            or not os.listdir("folder"))
    attempt("opaque", os.setxattr, "folder", "trusted.overlay.opaque", b"y")
    attempt("hidden parts", opens, "/run/caisson/hidden-file", os.O_RDONLY)


def host(case):
    from hosts import picture
    for name in ("file", "gone"):
        (case.ws / name).write_text("as it was")
    (case.ws / "folder").mkdir()
    (case.ws / "folder/inner").write_text("as it was")
    case.give()
    before = picture(case.ws)
    yield {"flags": ["--cow"], "args": [str(case.ws)]}
    assert picture(case.ws) == before


if __name__ == "__main__":
    main(attack)
