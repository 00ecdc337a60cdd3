"""Makes a set-user-id program in a copy-on-write workspace, which the caller then commits.

Would gain: a program that runs as the caller for whoever starts it.
"""
import os

from inside import control, main, say


def wrote(path, mode):
    with open(path, "w") as file:
        file.write("#!/bin/sh\n")
    os.chmod(path, mode)


def attack():
    control("an ordinary program", wrote, "plain", 0o755)
    try:
        wrote("program", 0o6755)
    except OSError:
        pass
    say(attempt="judged on the host, after the commit", got=False, errno=None)


def host(case):
    import subprocess
    run = yield {"flags": ["--cow"]}
    if run.reason == "start_failed":  # no copy-on-write there
        return
    done = subprocess.run([case.caisson, "runs", "commit", run.result["run_id"], "--run-dir", str(case.runs)],
                          env=case.env, cwd=case.ws, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **case.as_starter())
    assert (case.ws / "plain").exists(), done.stdout
    assert not (case.ws / "program").exists() or (case.ws / "program").stat().st_mode & 0o6000 == 0, done.stdout


if __name__ == "__main__":
    main(attack)
