"""The table: what each attack must come to, behind each wall. docs/verdicts.md is made from it.

denied        refused by the kernel or by the monitor
not_visible   there is nothing to attack: the thing does not exist inside
limited       a limit ended it
allowed       it works, and the page says why that gives nothing away

`events` is the exact set of violations in the result, `may` what a race or a sample may add.
`but` names single attempts of the file with a verdict of their own; `either` there depends on the host.
A wall's row for runs that an ordinary user started, where it differs, is `…_user`; the one of a kernel
without a scope for signals (Landlock's ABI below 6, Linux before 6.12) is `…_unscoped`.
"""
import ctypes
from dataclasses import dataclass, field

NET, WRITE, READ, SYSCALL = ("NetworkAccessViolation", "FilesystemWriteViolation", "FilesystemReadViolation",
                             "SyscallViolation")
MEMORY, PROCESSES, SCRATCH, OUTPUT, TIMEOUT = ("MemoryLimitViolation", "ProcessLimitViolation", "ScratchLimitViolation",
                                               "OutputLimitViolation", "TimeoutViolation")
WALLS = ("process", "landlock")


@dataclass(frozen=True)
class Verdict:
    word: str
    events: tuple = ()
    may: tuple = ()
    but: dict = field(default_factory=dict)
    ends: str = "exited"
    why: str = ""
    broken: str = ""  # a real hole, not yet closed: the reason, and the test is an expected failure


def denied(*events, **more):
    return Verdict("denied", events, **more)


def not_visible(*events, **more):
    return Verdict("not_visible", events, **more)


def limited(*events, **more):
    return Verdict("limited", events, **more)


def allowed(why, *events, **more):
    return Verdict("allowed", events, why=why, **more)


def row(process, landlock=None, **users):
    """`users`: process_user=…, landlock_user=… where the wall's row is root's only; …_unscoped."""
    return {"process": process, "landlock": landlock or process, **users}


LISTED = "This wall shares the host's process list; what the processes hold is not readable."
OWN_END = ("Before Linux 6.12 nothing keeps a command of this wall from signals to the agent, which has the same uid: "
           "it can end its own run, which is then reported as lost, and nothing of it is left.")
OWN_PROCESSES = ("Before Linux 6.12 a command of this wall that a user started reaches his other processes by signals; "
                 "`caisson doctor` says so.")
GROUPS = "Only newgidmap could drop a user's supplementary groups; `caisson doctor` names them."
BOUND = "Only a privileged process could empty the bounding set; no_new_privs makes it meaningless."
NAMES = "Landlock's right to list a folder covers all beneath it: names of hidden files are seen, contents are not."
NAMES_SEEN = {"the folder of a hidden folder": "allowed"}
UNREAD = "A program may hide its memory from the monitor here: the write is refused and not recorded."
UNCOUNTED = "Without a control group or a user namespace there is no limit to a user's processes; the result says so."
ON_DISK = "Scratch is a folder of the host's here, without a size; the result does not list it as enforced."
UNPROTECTED = "This wall has no protected names; `caisson doctor` says so."
TOLD = "/proc/self/mountinfo names where mounts come from; programs need the file."
METADATA = "Landlock does not cover looking at names, sizes and times; contents stay closed."
NO_POLICY = "This wall cannot keep the file read-only in a writable workspace and refuses to start."
NO_COW = denied(ends="start_failed", why="This wall has no copy-on-write and says so at start.")
NO_LOOPBACK = denied(ends="start_failed", why="This wall has no loopback of its own and says so at start.")

VERDICTS = {
    "abstract_socket": row(not_visible(), denied(NET)),
    "agent_file": row(not_visible(), denied(WRITE)),
    "agent_limits": row(denied(SYSCALL)),
    "agent_memory": row(denied(SYSCALL)),
    "agent_proc": row(not_visible(), denied(but={"its threads": "allowed"}, why=LISTED)),
    "agent_signals": row(denied(), landlock_unscoped=allowed(OWN_END, ends="lost")),
    "blind_monitor": row(denied(NET, WRITE), landlock_user=denied(NET, may=(WRITE,), why=UNREAD)),
    "capabilities": row(denied(SYSCALL),
                      landlock_user=denied(SYSCALL, but={"CapBnd is not empty": "allowed"}, why=BOUND)),
    "cgroup_files": row(denied(SYSCALL, may=(WRITE,))),
    "commit_links": row(denied(), NO_COW),
    "commit_setid": row(denied(may=(SYSCALL,)), NO_COW),
    "core_dumps": row(denied()),
    "cow_layer": row(denied(SYSCALL, may=(WRITE,)), NO_COW),
    "crash_handler": row(denied(may=(SYSCALL,))),
    "daemon": row(denied()),
    "deaf_tree": row(limited(TIMEOUT, ends="timeout")),
    "descriptors": row(denied()),
    "device_nodes": row(denied(SYSCALL)),
    "devices": row(not_visible(), denied(may=(WRITE,))),
    "dns_lookup": row(denied(NET)),
    "environment": row(denied()),
    "fifo_ro": row(denied(WRITE)),
    "file_attributes": row(denied(WRITE)),
    "file_capabilities": row(denied()),
    "file_handles": row(denied(SYSCALL)),
    "foreign_entry": row(denied()),
    "foreign_rights": row(not_visible(), denied(WRITE)),
    "forged_denial": row(denied(ends="exited")),
    "forged_frames": row(denied(WRITE)),
    "fork_bomb": row(limited(PROCESSES), limited(may=(PROCESSES,)),
                     process_user=limited(may=(PROCESSES,)),
                     landlock_user=allowed(UNCOUNTED, may=(PROCESSES,))),
    "fork_chain": row(denied(may=(PROCESSES,))),
    "groups": row(denied(), process_user=allowed(GROUPS), landlock_user=allowed(GROUPS)),
    "hard_links": row(denied(WRITE)),
    "held_stdout": row(denied()),
    "hidden_files_cow": row(denied(WRITE), NO_COW),
    "hidden_files_ro": row(denied(WRITE), denied(WRITE, but=NAMES_SEEN, why=NAMES)),
    "hidden_files_rw": row(denied(WRITE), denied()),
    "high_bits": row(denied(SYSCALL)),
    "home_folder": row(not_visible(may=(READ, WRITE)), denied(may=(READ, WRITE))),
    "host_files": row(not_visible(may=(READ,)), denied(may=(READ,))),
    "host_memory": row(denied(SYSCALL), landlock_user=denied(SYSCALL, but={"its descriptors": "allowed"}, why=LISTED)),
    "host_metadata": row(not_visible(), allowed(METADATA)),
    "host_signals": row(not_visible(), denied(),
                        landlock_unscoped_user=allowed(OWN_PROCESSES, but={"its group": "denied"})),
    "kernel_code": row(denied(SYSCALL)),
    "kernel_uid": row(denied()),
    "keyrings": row(denied(SYSCALL)),
    "kill_all": row(allowed("it reaches the sandbox's own processes only"),
                    landlock_unscoped_user=allowed(OWN_PROCESSES, ends="cancelled")),
    "listener_theft": row(denied(SYSCALL)),
    "machine_calls": row(denied(SYSCALL)),
    "many_files": row(limited()),
    "memfd_program": row(denied(but={"execute": "allowed"}, why="a program in memory has no more rights than one on disk.")),
    "memory_bomb": row(limited(MEMORY, ends="memory")),
    "memory_memfd": row(limited(MEMORY, ends="memory")),
    "memory_queued": row(limited(MEMORY, ends="memory")),
    "memory_scratch": row(limited(MEMORY, ends="memory"), allowed(ON_DISK)),
    "memory_shared": row(limited(MEMORY, ends="memory")),
    "memory_sysv": row(limited(MEMORY, ends="memory"), denied(SYSCALL)),
    "memory_undumpable": row(limited(MEMORY, ends="memory")),
    "monitor_killed": row(denied(ends="killed")),
    "mount_calls": row(denied(SYSCALL)),
    "mount_symlink": row(denied(ends="start_failed")),
    "mount_table": row(allowed(TOLD, but={"the layer's or record's": "denied"}), denied()),
    "namespaces": row(denied(SYSCALL)),
    "nested_run": row(denied(SYSCALL, may=(WRITE,))),
    "netlink_route": row(denied(SYSCALL, may=(WRITE,))),
    "notify_flood": row(limited(SYSCALL, WRITE, TIMEOUT, ends="timeout")),
    "other_processes": row(not_visible(), allowed(LISTED)),
    "other_terminals": row(not_visible(), denied()),
    "output_flood": row(limited(OUTPUT, ends="output")),
    "own_record": row(denied(may=(WRITE, READ)), denied(may=(WRITE, READ), but={"list": "allowed"}, why=NAMES)),
    "personalities": row(denied(SYSCALL)),
    "placeholder_symlink": row(denied(may=(WRITE,)), denied(may=(WRITE,)), landlock_user=allowed(UNPROTECTED)),
    "planted_policy": row(denied(ends="start_failed")),
    "policy_file": row(denied(WRITE), denied(ends="start_failed", why=NO_POLICY)),
    "posix_ipc": row(not_visible(), denied(SYSCALL, may=(WRITE,))),
    "proc_links": row(denied(WRITE)),
    "proc_machine": row(denied(WRITE), denied(WRITE, but={"read key-users": "allowed", "read keys": "either"}, why=LISTED)),
    "proc_sys": row(denied(WRITE)),
    "protected_absent": row(denied(WRITE), denied(may=(WRITE,)),
                            landlock_user=allowed(UNPROTECTED, but={"write to .envrc then": "denied"})),
    "protected_names": row(denied(WRITE), denied(but={"other files can be written": "denied"}),
                           landlock_user=allowed(UNPROTECTED, but=dict.fromkeys(("remove hooks", "renew .git as a whole", "symlink a hook"), "denied"))),
    "protected_symlink": row(denied(may=(READ, WRITE))),
    "raise_limits": row(denied()),
    "rights_open": row(denied(WRITE)),
    "rights_swap": row(denied(may=(READ, WRITE)),
                       denied(WRITE, but=dict.fromkeys(("a link was made", *(f"{what}: some were our own" for what in ("a text", "a link", "a number"))),
                                                       "denied")),
                       landlock_user=denied(WRITE)),
    "rights_ways": row(denied(SYSCALL, WRITE),
                       denied(SYSCALL, WRITE, but=dict.fromkeys(("rights of its own", "times of its own", "by descriptor",
                                                                 "cp, tar, install, touch", "a link of its own"), "denied")),
                       landlock_user=denied(SYSCALL, WRITE)),
    "scratch_fill": row(limited(SCRATCH), allowed(ON_DISK, WRITE, but={"the same by /dev/shm": "denied"})),
    "setid_files": row(denied(SYSCALL, may=(WRITE,)), denied(but={"an ordinary program": "denied"}, may=(WRITE, SYSCALL)),
                       landlock_user=denied(SYSCALL, may=(WRITE,))),
    "setuid_binary": row(denied(may=(SYSCALL,))),
    "sibling_runs": row(not_visible(may=(READ, WRITE)), denied(may=(READ, WRITE))),
    "socket_families": row(denied(SYSCALL), denied(SYSCALL, NET)),
    "stalled_reader": row(limited(TIMEOUT, may=(WRITE, OUTPUT), ends="timeout")),
    "symlinks_out": row(not_visible(may=(READ, WRITE)), denied(may=(READ, WRITE))),
    "system_files": row(denied(WRITE)),
    "sysv_ipc": row(not_visible(), denied(SYSCALL, but={"the list": "allowed"}, why=LISTED)),
    "take_ids": row(denied()),
    "tcp_host": row(denied(NET)),
    "tcp_loopback": row(denied(NET), NO_LOOPBACK),
    "timer_storm": row(denied(SYSCALL)),
    "tiocsti": row(denied(SYSCALL)),
    "tty_inside": row(denied(SYSCALL)),
    "udp_host": row(denied(NET)),
    "unix_socket_cow": row(denied(NET), NO_COW),
    "unix_socket_dup2": row(denied(NET)),
    "unix_socket_ro": row(denied(NET, SYSCALL)),
    "unix_socket_rw": row(denied(NET)),
    "unix_socket_swap": row(denied(may=(NET,))),
    "unreadable_program": row(denied(NET, may=(WRITE,))),
    "workspace_ro": row(denied(WRITE)),
}


def has_scope():
    """Does this kernel keep signals inside a domain?"""
    create_ruleset, version, scope_abi = 444, 1, 6
    return ctypes.CDLL(None).syscall(create_ruleset, None, 0, version) >= scope_abi


def verdict_of(attack, wall, who):
    row_ = VERDICTS[attack]
    names = [f"{wall}_{who}", wall]
    if not has_scope():
        names = [f"{wall}_unscoped_{who}", f"{wall}_unscoped", *names]
    return next(row_[name] for name in names if name in row_)
