"""Reads where on the host the folders inside come from.

Would gain: names of the caller's folders: his account, his projects; not what is in them.

The run root is named where the root is a view of a skeleton that lies in it (SECURITY.md); its records are not.
"""
import re

from inside import attempt, main


def names(pattern, file):
    with open(f"/proc/self/{file}") as table:
        return bool(re.search(pattern, table.read()))


def attack(path):
    attempt("the workspace's host path", names, re.escape(path), "mountinfo")
    attempt("the layer's or record's", names, "/runs/[^.]", "mountinfo")


def host(case):
    yield {"args": [str(case.ws)]}


if __name__ == "__main__":
    main(attack)
