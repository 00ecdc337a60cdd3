"""Reads and rewrites the record of this very run, whose root lies in the writable workspace.

Would gain: a record that says what the program wants; a state that a later resume believes.
"""
import os

from inside import attempt, main, opens


def inner():
    """Some file beneath the run root."""
    for folder, _, files in os.walk("records"):
        for name in files:
            opens(os.path.join(folder, name), os.O_WRONLY | os.O_APPEND)
            return True
    return False


def attack():
    attempt("list", lambda: bool(os.listdir("records")))
    attempt("write a file of it", inner)
    attempt("new file", opens, "records/new", os.O_WRONLY | os.O_CREAT)
    attempt("rename it", os.rename, "records", "moved")
    attempt("remove it", os.rmdir, "records")


def host(case):
    import subprocess
    case.runs = case.ws / "records"
    case.runs.mkdir()
    run = yield {"flags": ["--rw"]}
    done = subprocess.run([case.caisson, "runs", "verify", run.result["run_id"], "--run-dir", str(case.runs)],
                          env=case.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **case.as_starter())
    assert done.returncode == 0, done.stdout


if __name__ == "__main__":
    main(attack)
