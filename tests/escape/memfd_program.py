"""Executes a program that exists only in memory.

Would gain: nothing; a program from a memfd has the same rights as any other, and just-in-time
compilers need such memory anyway.
"""
import os
import subprocess

from inside import attempt, main


def executed(program):
    fd = os.memfd_create("x", 0)
    with open(program, "rb") as file:
        os.write(fd, file.read())
    out = subprocess.run([f"/proc/self/fd/{fd}", "/proc/self/status"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, pass_fds=[fd], text=True, check=True).stdout
    fields = dict(line.split(":\t", 1) for line in out.splitlines() if ":\t" in line)
    return fields


def attack():
    attempt("execute", lambda: bool(executed("/usr/bin/cat")))
    attempt("with a capability", lambda: int(executed("/usr/bin/cat")["CapEff"], 16) != 0)
    attempt("without a filter", lambda: executed("/usr/bin/cat")["Seccomp"] != "2")
    attempt("with new privileges", lambda: executed("/usr/bin/cat")["NoNewPrivs"] != "1")


if __name__ == "__main__":
    main(attack)
