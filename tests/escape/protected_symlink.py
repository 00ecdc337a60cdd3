"""Runs in a workspace whose .git is a link to another folder, planted by an earlier run.

Would gain: placeholders that are made, and mounts that are placed, where the link leads.
"""
import os

from inside import attempt, main, opens


def attack():
    attempt("a file behind the link", opens, ".git/hooks/pre-commit", os.O_WRONLY | os.O_CREAT)
    attempt("list behind the link", os.listdir, ".git/")


def host(case):
    from hosts import picture
    (case.ws / ".git").symlink_to(case.outside)
    (case.ws / ".vscode").symlink_to("../outside/none")
    (case.ws / ".envrc").symlink_to("/etc/passwd")
    case.give()
    before = picture(case.outside)
    yield {"flags": ["--rw"]}
    assert picture(case.outside) == before


if __name__ == "__main__":
    main(attack)
