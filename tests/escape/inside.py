"""What attacks share inside the wall: attempts, system calls by number, one line of JSON each.

An attempt that comes back with what it wanted has `got: true`. A control is something that must
work, so that an attack which could never have worked is not taken for one that was stopped.
"""
import ctypes
import errno
import json
import os
import platform
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)

# name: (x86_64, arm64); -1: absent there
NUMBERS = {
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280), "capset": (126, 91),
    "chroot": (161, 51), "clock_adjtime": (305, 266), "clock_settime": (227, 112), "clone": (56, 220),
    "clone3": (435, 435), "delete_module": (176, 106), "fanotify_init": (300, 262), "finit_module": (313, 273),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433),
    "init_module": (175, 105), "io_setup": (206, 0), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425), "ioperm": (173, -1), "iopl": (172, -1), "ioprio_set": (251, 30), "kcmp": (312, 272),
    "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219), "memfd_create": (319, 279),
    "mknodat": (259, 33), "modify_ldt": (154, -1), "mount": (165, 40), "mount_setattr": (442, 442),
    "move_mount": (429, 429), "mq_open": (240, 180), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "open_tree": (428, 428), "openat2": (437, 437), "perf_event_open": (298, 241), "personality": (135, 92),
    "pidfd_getfd": (438, 438), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pivot_root": (155, 41),
    "prlimit64": (302, 261), "process_madvise": (440, 440), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "ptrace": (101, 117), "quotactl": (179, 60), "reboot": (169, 142),
    "request_key": (249, 218), "rt_sigqueueinfo": (129, 138), "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "seccomp": (317, 277),
    "sendmmsg": (307, 269), "setdomainname": (171, 162), "setfsuid": (122, 151), "setgid": (106, 144),
    "setgroups": (116, 159), "sethostname": (170, 161), "setns": (308, 268), "setpriority": (141, 140),
    "setresgid": (119, 149), "setresuid": (117, 147), "settimeofday": (164, 170), "setuid": (105, 146),
    "socket": (41, 198), "socketpair": (53, 199), "swapoff": (168, 225), "swapon": (167, 224), "syslog": (103, 116),
    "tgkill": (234, 131), "tkill": (200, 130), "umount2": (166, 39), "unshare": (272, 97), "userfaultfd": (323, 282),
    "vhangup": (153, 58), "ioctl": (16, 29), "fchmodat2": (452, 452), "memfd_secret": (447, 447),
    "process_mrelease": (448, 448), "set_mempolicy": (238, 237), "move_pages": (279, 239), "prctl": (157, 167),
    "mmap": (9, 222), "setrlimit": (160, 164), "landlock_create_ruleset": (444, 444),
}
# What a wall answers; any other errno means that the kernel itself looked at the call.
REFUSALS = {errno.EPERM, errno.EACCES, errno.ENOSYS}


def say(**line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def sysc(name, *args):
    """The system call `name`; raises OSError. Integers are passed in full registers."""
    number = NUMBERS[name][platform.machine() == "aarch64"]
    if number < 0:
        raise OSError(errno.ENOSYS, "absent on this architecture")
    result = libc.syscall(ctypes.c_long(number),
                          *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def called(function, *args):
    """A libc function that tells by -1; raises OSError."""
    result = getattr(libc, function)(*args)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def judge(name, call, args, **more):
    line = {"attempt": name, "got": False, "errno": None, **more}
    try:
        value = call(*args)
        line["got"] = value is not False
        if isinstance(value, (int, str)) and not isinstance(value, bool):
            line["value"] = value
    except OSError as error:
        # socket.gaierror has numbers of its own
        known = not isinstance(error, socket.gaierror)
        line["errno"] = errno.errorcode.get(error.errno, str(error.errno)) if known else "EAI"
    return line


def attempt(name, call, *args):
    say(**judge(name, call, args))


def control(name, call, *args):
    """Something harmless beside the attack that has to work."""
    say(**judge(name, call, args, control=True))


def reach(name, call, *args):
    """Got as soon as the kernel answers anything but a refusal: EINVAL means it looked."""
    line = judge(name, call, args)
    if line["errno"]:
        line["got"] = line["errno"] not in {errno.errorcode[e] for e in REFUSALS}
    say(**line)


def opens(path, flags=os.O_RDONLY, mode=0o600):
    os.close(os.open(path, flags, mode))


def reads(path, size=64):
    """Some bytes of `path`; an empty file gives nothing away."""
    with open(path, "rb", buffering=0) as file:
        return len(file.read(size)) > 0


def agent():
    """The process that started this one; 1 behind a wall with a pid namespace."""
    return os.getppid()


def main(attack):
    attack(*sys.argv[1:])
    say(done=True)
