"""Reads and writes the agent's entry in /proc.

Would gain: the agent's memory and descriptors: its stream to the monitor, over which the record
of this run is made.
"""
import os

from inside import agent, attempt, main, opens, reads


def attack():
    base = f"/proc/{agent()}"
    for name in ("mem", "environ", "maps", "auxv", "syscall", "stack", "pagemap", "smaps"):
        attempt(f"read {name}", reads, f"{base}/{name}")
    for name in ("mem", "oom_score_adj", "comm", "clear_refs", "uid_map", "coredump_filter", "timens_offsets"):
        attempt(f"write {name}", opens, f"{base}/{name}", os.O_WRONLY)
    for name in ("root", "cwd", "exe", "fd/0", "fd/1", "ns/user"):
        attempt(f"link {name}", os.readlink, f"{base}/{name}")
    attempt("through its root", os.listdir, f"{base}/root/")
    attempt("through its cwd", os.listdir, f"{base}/cwd/")
    attempt("its descriptors", os.listdir, f"{base}/fd")
    attempt("its descriptor 1", opens, f"{base}/fd/1", os.O_WRONLY)
    attempt("its program", opens, f"{base}/exe", os.O_WRONLY)
    attempt("its threads", os.listdir, f"{base}/task")


if __name__ == "__main__":
    main(attack)
