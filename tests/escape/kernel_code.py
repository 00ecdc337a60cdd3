"""Loads code into the kernel, or watches the machine through it.

Would gain: bpf, perf and modules are the kernel itself; io_uring, userfaultfd and their like are
what most kernel exploits have been built with.
"""
import ctypes

from inside import main, reach, sysc

NONE = ctypes.c_char_p(None)


def attack():
    reach("bpf map", sysc, "bpf", 0, (ctypes.c_uint32 * 32)(2, 4, 8, 1), 128)
    reach("bpf program", sysc, "bpf", 5, (ctypes.c_uint32 * 32)(), 128)
    reach("perf", sysc, "perf_event_open", (ctypes.c_uint32 * 32)(1, 128), 0, -1, -1, 0)
    reach("userfaultfd", sysc, "userfaultfd", 1)
    reach("io_uring_setup", sysc, "io_uring_setup", 4, (ctypes.c_uint32 * 64)())
    reach("io_uring_enter", sysc, "io_uring_enter", 99, 0, 0, 0, 0, 0)
    reach("io_uring_register", sysc, "io_uring_register", 99, 0, 0, 0)
    reach("io_setup", sysc, "io_setup", 1, (ctypes.c_uint64 * 1)())
    reach("fanotify", sysc, "fanotify_init", 0, 0)
    reach("init_module", sysc, "init_module", b"x", 1, b"")
    reach("finit_module", sysc, "finit_module", 0, b"", 0)
    reach("delete_module", sysc, "delete_module", b"csn-none", 0)
    reach("kexec_load", sysc, "kexec_load", 0, 0, 0, 0xffff)
    reach("kexec_file_load", sysc, "kexec_file_load", -1, -1, 0, NONE, 0xffff)
    reach("modify_ldt", sysc, "modify_ldt", 0, 0, 0)
    reach("memfd_secret", sysc, "memfd_secret", 0)
    reach("set_mempolicy", sysc, "set_mempolicy", 0, 0, 0)


if __name__ == "__main__":
    main(attack)
