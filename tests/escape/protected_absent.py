"""Makes protected names that were not there when the run began.

Would gain: the same as changing them: a hook, an .envrc that the caller's shell runs.
"""
import os

from inside import attempt, main


def wrote(path):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as file:
        file.write("#!/bin/sh\n")


def attack():
    attempt(".envrc", wrote, ".envrc")
    attempt(".vscode/tasks.json", wrote, ".vscode/tasks.json")
    attempt(".git/hooks/pre-commit", wrote, ".git/hooks/pre-commit")
    attempt(".git/config", wrote, ".git/config")
    for folder in (".envrc", ".vscode", ".git"):
        attempt(f"rights of {folder}", os.chmod, folder, 0o777)
        attempt(f"write to {folder} then", wrote, f"{folder}/config")


def host(case):
    run = yield {"flags": ["--rw"]}
    made = [name for name in (".envrc", ".vscode", ".git") if (case.ws / name).exists()]
    assert case.wall == "landlock" or not made, f"made, or a placeholder that was left behind: {made}\n{run}"


if __name__ == "__main__":
    main(attack)
