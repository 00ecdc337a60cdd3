"""Reads where on the host the folders inside come from.

Would gain: names of the caller's folders: his account, his projects; not what is in them.
"""
from inside import attempt, main


def names(path, file):
    with open(f"/proc/self/{file}") as table:
        return path in table.read()


def attack(path):
    attempt("the workspace's host path", names, path, "mountinfo")
    attempt("the layer's or record's", names, "/runs/", "mountinfo")


def host(case):
    yield {"args": [str(case.ws)]}


if __name__ == "__main__":
    main(attack)
