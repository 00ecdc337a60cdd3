"""Changes what other programs of the caller's will run: git hooks, git's configuration, .envrc.

Would gain: code that runs outside the wall at the caller's next commit, or when he enters the folder.
"""
import os
import shutil

from inside import attempt, control, main, opens


def wrote(path, text="#!/bin/sh\ntouch /tmp/owned\n"):
    with open(path, "w") as file:
        file.write(text)


def renewed():
    """Another .git in the old one's place, with hooks of one's own."""
    os.rename(".git", ".git-old")
    shutil.copytree(".git-old", ".git", symlinks=True)
    wrote(".git/hooks/post-checkout")


def attack():
    control("other files can be written", wrote, "plain")
    attempt("write a hook", wrote, ".git/hooks/pre-commit")
    attempt("write the sample", wrote, ".git/hooks/present")
    attempt("rename hooks", os.rename, ".git/hooks", ".git/hooks-old")
    attempt("remove hooks", shutil.rmtree, ".git/hooks")
    attempt("symlink a hook", os.symlink, "../../plain", ".git/hooks/pre-push")
    attempt("write config", wrote, ".git/config", "[core]\n\thooksPath = /tmp\n")
    attempt("replace config", os.replace, "plain", ".git/config")
    attempt("append config", opens, ".git/config", os.O_WRONLY | os.O_APPEND)
    attempt("unlink config", os.unlink, ".git/config")
    attempt("write .envrc", wrote, ".envrc")
    attempt("replace .envrc", os.replace, "other", ".envrc")
    attempt("write .vscode", wrote, ".vscode/tasks.json")
    attempt("rename .vscode", os.rename, ".vscode", ".vs")
    attempt("renew .git as a whole", renewed)


def host(case):
    from hosts import picture
    for name in (".git/hooks/present", ".git/config", ".envrc", ".vscode/settings.json"):
        path = case.ws / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("as it was\n")
    for name in ("plain", "other"):
        (case.ws / name).write_text("")
    case.give()
    watched = [case.ws / ".git/hooks", case.ws / ".git/config", case.ws / ".envrc", case.ws / ".vscode"]
    before = picture(*watched)
    yield {"flags": ["--rw"]}
    assert case.wall == "landlock" or picture(*watched) == before


if __name__ == "__main__":
    main(attack)
