"""Executes a program that carries file capabilities.

Would gain: those capabilities; CAP_DAC_OVERRIDE reads everything.
"""
import subprocess

from inside import attempt, main


def capable(path):
    """Any capability in the program's effective or permitted set."""
    out = subprocess.run([path, "/proc/self/status"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout
    sets = [line.split()[1] for line in out.splitlines() if line.startswith(("CapPrm", "CapEff"))]
    return any(int(s, 16) for s in sets)


def attack():
    attempt("a capable cat", capable, "./capable-cat")
    attempt("an ordinary cat", capable, "/usr/bin/cat")


def host(case):
    import os
    import shutil
    import struct
    shutil.copy("/usr/bin/cat", case.ws / "capable-cat")

    def run(flags, command):
        case.give()
        case.give = lambda: None
        if os.geteuid() == 0:  # VFS_CAP_REVISION_2, effective: CAP_DAC_OVERRIDE
            os.setxattr(case.ws / "capable-cat", "security.capability",
                        struct.pack("<IIIII", 0x02000001, 1 << 1, 0, 0, 0))
        return case.run(flags, command)

    yield {"run": run}


if __name__ == "__main__":
    main(attack)
