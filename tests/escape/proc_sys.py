"""Opens the kernel's switches for writing.

Would gain: with the kernel's uid 0 and no capability at all, core_pattern can still be written;
the next crash on the host then runs a program of the attacker's as root.
"""
import os

from inside import attempt, main, opens

FILES = ["kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "kernel/domainname", "kernel/sysrq",
         "kernel/ns_last_pid", "kernel/randomize_va_space", "kernel/yama/ptrace_scope", "kernel/panic",
         "kernel/unprivileged_bpf_disabled", "kernel/core_uses_pid", "kernel/poweroff_cmd", "kernel/usermodehelper/bset",
         "vm/overcommit_memory", "vm/memfd_noexec", "vm/drop_caches", "vm/mmap_min_addr", "fs/binfmt_misc/register",
         "fs/suid_dumpable", "fs/protected_symlinks", "fs/aio-max-nr", "net/core/somaxconn", "net/ipv4/ip_forward",
         "net/ipv4/ping_group_range", "user/max_user_namespaces"]


def attack():
    for file in FILES:
        attempt(file, opens, f"/proc/sys/{file}", os.O_WRONLY)
    attempt("core_pattern past /proc/self/root", opens, "/proc/self/root/proc/sys/kernel/core_pattern", os.O_WRONLY)
    attempt("core_pattern rights", os.chmod, "/proc/sys/kernel/core_pattern", 0o666)


def host(case):
    with open("/proc/sys/kernel/core_pattern") as file:
        before = file.read()
    yield {}
    with open("/proc/sys/kernel/core_pattern") as file:
        assert file.read() == before


if __name__ == "__main__":
    main(attack)
