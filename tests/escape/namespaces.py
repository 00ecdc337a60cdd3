"""Makes or enters namespaces.

Would gain: in a user namespace of its own a program has every capability again, and with them
all those parts of the kernel that only root could reach before.
"""
import ctypes
import os

from inside import agent, attempt, main, sysc

KINDS = {"user": 0x10000000, "mnt": 0x20000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x8000000, "uts": 0x4000000,
         "cgroup": 0x2000000, "time": 0x80}


def cloned(flags):
    pid = sysc("clone", flags | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def cloned3(flags):
    pid = sysc("clone3", (ctypes.c_uint64 * 11)(flags, 0, 0, 0, 17), 88)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def entered(pid, kind, flag):
    fd = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
    sysc("setns", fd, flag)


def entered_by_pidfd(pid, flag):
    sysc("setns", sysc("pidfd_open", pid, 0), flag)


def attack():
    for kind, flag in KINDS.items():
        attempt(f"unshare {kind}", sysc, "unshare", flag)
        if kind != "time":
            attempt(f"clone {kind}", cloned, flag)
        attempt(f"clone3 {kind}", cloned3, flag)
        attempt(f"setns own {kind}", entered, "self", kind, flag)
        attempt(f"setns the agent's {kind}", entered, agent(), kind, flag)
        attempt(f"setns by pidfd {kind}", entered_by_pidfd, agent(), flag)
    attempt("all at once", sysc, "unshare", 0x7e020000)


if __name__ == "__main__":
    main(attack)
