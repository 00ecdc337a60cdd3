"""Writes to, and reads from, what /proc has of the machine.

Would gain: a reboot by sysrq, interrupts of another CPU, physical memory, kernel addresses.
"""
import os

from inside import attempt, main, opens, reads

WRITES = ["sysrq-trigger", "irq/default_smp_affinity", "irq/0/smp_affinity", "mtrr", "bus/pci/00/00.0", "acpi/wakeup",
          "scsi/scsi", "fs/nfsd/threads", "pressure/memory", "sys/kernel/hostname", "timer_list", "slabinfo", "kcore",
          "kmsg", "kpageflags", "latency_stats"]
READS = ["kcore", "kmsg", "keys", "key-users", "timer_list", "sched_debug", "kpageflags", "kpagecount", "slabinfo",
         "vmallocinfo", "pagetypeinfo", "kpagecgroup", "1/environ", "1/mem"]


def addresses():
    """Kernel addresses that are not zero."""
    with open("/proc/kallsyms") as file:
        return any(int(line.split()[0], 16) for line in file)


def attack():
    for name in WRITES:
        attempt(f"write {name}", opens, f"/proc/{name}", os.O_WRONLY)
    for name in READS:
        attempt(f"read {name}", reads, f"/proc/{name}")
    attempt("kernel addresses", addresses)


if __name__ == "__main__":
    main(attack)
