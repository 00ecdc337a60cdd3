"""Opens the host's devices.

Would gain: disks, memory, the hypervisor's door, input devices, loop devices.
"""
import os

from inside import attempt, main, opens

KNOWN = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd", "stdin", "stdout", "stderr"}


def attack():
    for name in ("mem", "kmem", "port", "kmsg", "sda", "vda", "nvme0n1", "loop-control", "loop0", "mapper/control",
                 "kvm", "fuse", "net/tun", "vhost-net", "vhost-vsock", "vsock", "uinput", "input/event0", "dri/card0",
                 "tty0", "tty1", "console", "ttyS0", "vcs", "hpet", "rtc0", "watchdog", "userfaultfd", "btrfs-control",
                 "mqueue", "hugepages", "snd/seq", "ppp", "autofs", "cuse", "nvram", "uhid", "cpu/0/msr"):
        attempt(f"read {name}", opens, f"/dev/{name}", os.O_RDONLY | os.O_NONBLOCK)
        attempt(f"write {name}", opens, f"/dev/{name}", os.O_RDWR | os.O_NONBLOCK)
    attempt("nodes beyond the usual", lambda: bool(set(os.listdir("/dev")) - KNOWN))


if __name__ == "__main__":
    main(attack)
