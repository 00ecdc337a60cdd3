"""Changes the control groups that carry the limits.

Would gain: no limits; with release_agent of cgroup v1, a program that the kernel starts as root.
"""
import os

from inside import attempt, main, opens, sysc
import ctypes


def attack():
    scratch = os.environ["TMPDIR"].encode()
    attempt("list", os.listdir, "/sys/fs/cgroup")
    for name in ("cgroup.procs", "memory/memory.limit_in_bytes", "release_agent", "memory/release_agent", "memory.max"):
        attempt(f"write {name}", opens, f"/sys/fs/cgroup/{name}", os.O_WRONLY)
    attempt("mount v1", sysc, "mount", b"none", scratch, b"cgroup", 0, b"memory")
    attempt("mount v2", sysc, "mount", b"none", scratch, b"cgroup2", 0, ctypes.c_char_p(None))
    attempt("a namespace of groups", sysc, "unshare", 0x2000000)


if __name__ == "__main__":
    main(attack)
