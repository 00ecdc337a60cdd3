"""Puts a link in the place of the folder above a protected name's placeholder, which is removed when
the run is over.

Would gain: the removal of a folder outside of the workspace, by whoever cleans up (root, after root's run).
"""
import os

from inside import attempt, main


def swapped(outside):
    os.rename(".git", ".git-old")
    os.symlink(outside, ".git")


def attack(outside):
    attempt("a link instead of .git", swapped, outside)


def host(case):
    (case.ws / ".git").mkdir()
    for name in ("hooks", "config"):
        (case.outside / name).mkdir()
    yield {"flags": ["--rw"], "args": [str(case.outside)]}
    import time
    time.sleep(0.3)
    assert sorted(path.name for path in case.outside.iterdir()) == ["config", "hooks"]


if __name__ == "__main__":
    main(attack)
