"""Prepares a copy-on-write layer so that committing it writes elsewhere.

Would gain: files outside the workspace, written by the caller himself.
"""
import os
import shutil

from inside import attempt, control, main


def wrote(path, mode=0o644):
    with open(path, "w") as file:
        file.write("#!/bin/sh\necho owned\n")
    os.chmod(path, mode)


def attack(outside):
    control("a new file in an old folder", wrote, "folder/new")
    control("a link instead of a folder", lambda: shutil.rmtree("other") or os.symlink(outside, "other"))
    control("a link to a file", os.symlink, f"{outside}/file", "to-file")
    attempt("the host's file, through the link", wrote, "to-file")


def host(case):
    import subprocess
    from hosts import picture
    for name in ("folder/old", "other/old"):
        (case.ws / name).parent.mkdir()
        (case.ws / name).write_text("old")
    (case.outside / "file").write_text("outside")
    case.give()
    before = picture(case.outside)
    run = yield {"flags": ["--cow"], "args": [str(case.outside)]}
    # Meanwhile another run has put a link in the workspace where the layer has a folder.
    shutil.rmtree(case.ws / "folder")
    (case.ws / "folder").symlink_to(case.outside)
    done = subprocess.run([case.caisson, "runs", "commit", run.result["run_id"], "--run-dir", str(case.runs)],
                          env=case.env, cwd=case.ws, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **case.as_starter())
    assert picture(case.outside) == before, done.stdout


if __name__ == "__main__":
    main(attack)
