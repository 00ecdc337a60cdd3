"""Starts caisson itself inside, to choose its own walls.

Would gain: a sandbox whose monitor is the program: with namespaces, and the capabilities in them.
"""
import subprocess

from inside import attempt, main


def started(program, *flags):
    done = subprocess.run([program, "run", "--no-record", *flags, "--", "/bin/true"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode == 0


def attack():
    attempt("the process wall", started, "programs/caisson", "--backend", "process")
    attempt("user namespaces", lambda: subprocess.run(["/usr/bin/unshare", "-Ur", "/bin/true"],
                                                      stdin=subprocess.DEVNULL).returncode == 0)


def host(case):
    case.copy_programs(case.ws / "programs")
    yield {}


if __name__ == "__main__":
    main(attack)
