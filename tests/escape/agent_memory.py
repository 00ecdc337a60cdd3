"""Traces the agent, reads its memory, takes its descriptors.

Would gain: the stream to the monitor: whoever holds it writes the result of this run.
"""
import ctypes

from inside import agent, attempt, main, sysc


def vm(call, pid):
    buffer = ctypes.create_string_buffer(8)
    local = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 8)
    remote = (ctypes.c_uint64 * 2)(0x400000, 8)
    sysc(call, pid, local, 1, remote, 1, 0)


def attack():
    pid = agent()
    attempt("ptrace attach", sysc, "ptrace", 16, pid, 0, 0)
    attempt("ptrace seize", sysc, "ptrace", 0x4206, pid, 0, 0)
    attempt("ptrace traceme", sysc, "ptrace", 0, 0, 0, 0)
    attempt("process_vm_readv", vm, "process_vm_readv", pid)
    attempt("process_vm_writev", vm, "process_vm_writev", pid)
    attempt("kcmp", sysc, "kcmp", pid, pid, 0, 0, 0)
    fd = -1
    try:
        fd = sysc("pidfd_open", pid, 0)
    except OSError:
        pass
    for number in range(12):
        attempt(f"pidfd_getfd {number}", sysc, "pidfd_getfd", fd, number, 0)
    attempt("process_madvise", sysc, "process_madvise", fd, (ctypes.c_uint64 * 2)(0x400000, 4096), 1, 4, 0)
    attempt("process_mrelease", sysc, "process_mrelease", fd, 0)
    attempt("move_pages", sysc, "move_pages", pid, 0, 0, 0, 0, 0)


if __name__ == "__main__":
    main(attack)
