"""Lists the host's processes and reads their command lines.

Would gain: passwords in arguments, what the caller does, targets for everything else.
"""
import os

from inside import attempt, main, reads


def foreign():
    """Any process that is neither this one nor of its own tree."""
    own = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            own.add(int(entry))
    return bool(own - {os.getpid(), os.getppid(), 1, 2})


def attack(pid):
    attempt("the list", foreign)
    attempt("a command line", reads, f"/proc/{pid}/cmdline")
    attempt("a status", reads, f"/proc/{pid}/status")
    attempt("its parent", reads, f"/proc/{pid}/stat")


def host(case):
    victim = case.victim()
    yield {"args": [str(victim.pid)]}


if __name__ == "__main__":
    main(attack)
