"""Traces a process of the host that has the caller's own uid, and reads its memory.

Would gain: an ssh agent's keys, a browser's cookies, a shell that runs commands.
"""
import ctypes
import os

from inside import attempt, main, reads, sysc


def vm(call, pid):
    buffer = ctypes.create_string_buffer(8)
    local = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 8)
    sysc(call, pid, local, 1, (ctypes.c_uint64 * 2)(0x400000, 8), 1, 0)


def taken(pid):
    sysc("pidfd_getfd", sysc("pidfd_open", pid, 0), 1, 0)


def attack(pid):
    pid = int(pid)
    attempt("ptrace attach", sysc, "ptrace", 16, pid, 0, 0)
    attempt("ptrace seize", sysc, "ptrace", 0x4206, pid, 0, 0)
    attempt("process_vm_readv", vm, "process_vm_readv", pid)
    attempt("process_vm_writev", vm, "process_vm_writev", pid)
    attempt("pidfd_getfd", taken, pid)
    attempt("mem", reads, f"/proc/{pid}/mem")
    attempt("environ", reads, f"/proc/{pid}/environ")
    attempt("maps", reads, f"/proc/{pid}/maps")
    attempt("its root", os.listdir, f"/proc/{pid}/root/")
    attempt("its folder", os.listdir, f"/proc/{pid}/cwd/")
    attempt("its descriptors", os.listdir, f"/proc/{pid}/fd")
    attempt("limits", sysc, "prlimit64", pid, 7, (ctypes.c_uint64 * 2)(0, 0), 0)


def host(case):
    from hosts import is_alive, state_of
    victim = case.victim()
    yield {"args": [str(victim.pid)]}
    assert is_alive(victim) and state_of(victim) in "SR"


if __name__ == "__main__":
    main(attack)
