"""Puts a link where the caller will mount a folder: into the workspace, before the run.

Would gain: a mount at a place of the program's choice, such as over /etc.
"""
from inside import attempt, main


def attack():
    attempt("the run begins", lambda: True)


def host(case):
    (case.ws / "link").symlink_to("/etc")
    (case.outside / "passwd").write_text("root::0:0::/:/bin/sh\n")
    at = case.ws if case.wall == "landlock" else "/workspace"
    run = yield {"flags": ["-m", f"{case.outside}:{at}/link"]}
    assert run.status == 125, run


if __name__ == "__main__":
    main(attack)
