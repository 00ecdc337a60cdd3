"""Executes set-user-id and set-group-id programs of the host, and one in the workspace.

Would gain: root's uid, by a program that trusts whoever starts it.
"""
import os
import subprocess

from inside import attempt, main


def ids(path):
    out = subprocess.run([path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout.split()
    return out != [str(os.getuid())] * 2 if len(out) == 2 else False


def raised(argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.returncode == 0 and done.stdout.strip() == "0"


def attack():
    attempt("a set-uid program in the workspace", ids, "./show-ids")
    for name in ("sudo", "pkexec", "doas"):
        if os.path.exists(f"/usr/bin/{name}"):
            attempt(name, raised, [f"/usr/bin/{name}", "-n", "id", "-u"])


def host(case):
    import shutil
    shutil.copy(case.ws / "attack/show_ids", case.ws / "show-ids")

    def run(flags, command):
        case.give()
        if os.geteuid() == 0:
            os.chown(case.ws / "show-ids", 0, 0)
            os.chmod(case.ws / "show-ids", 0o6755)
        case.give = lambda: None
        return case.run(flags, command)

    yield {"run": run}


if __name__ == "__main__":
    main(attack)
