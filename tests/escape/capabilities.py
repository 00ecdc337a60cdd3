"""Looks for capabilities that are left, and raises some.

Would gain: any one of them inside a user namespace reaches parts of the kernel that are not meant
for strangers.
"""
import ctypes

from inside import attempt, main, sysc


def status():
    with open("/proc/self/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def raise_all():
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sysc("capset", header, (ctypes.c_uint32 * 6)(*[0xffffffff] * 6))


def attack():
    seen = status()
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        attempt(f"{name} is not empty", lambda: int(seen[name], 16) != 0)
    attempt("new privileges", lambda: seen["NoNewPrivs"].strip() != "1")
    attempt("no filter", lambda: seen["Seccomp"].strip() != "2")
    attempt("one filter only", lambda: int(seen.get("Seccomp_filters", "2")) < 2)
    attempt("capset", raise_all)
    for capability in (0, 1, 7, 12, 21, 38):
        attempt(f"ambient {capability}", sysc, "prctl", 47, 2, capability, 0, 0)
    attempt("new privileges again", sysc, "prctl", 38, 0, 0, 0, 0)
    attempt("keep capabilities over setuid", lambda: sysc("prctl", 8, 1, 0, 0, 0) or int(status()["CapPrm"], 16) != 0)
    attempt("securebits", sysc, "prctl", 28, 0x2f, 0, 0, 0)
    attempt("forged memory layout", sysc, "prctl", 35, 8, 0x400000, 0, 0)


if __name__ == "__main__":
    main(attack)
