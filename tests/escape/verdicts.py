"""The table: what each attack must come to, behind each wall. docs/verdicts.md is made from it.

denied        refused by the kernel or by the monitor
not_visible   there is nothing to attack: the thing does not exist inside
limited       a limit ended it
allowed       it works, and the page says why that gives nothing away

`events` is the exact set of violations in the result, `may` what a race or a sample may add.
`but` names single attempts of the file with a verdict of their own; `either` there depends on the host.
docker, podman, oci (runc and crun alike) and gvisor come to what `process` comes to, without the events that they
do not see, but where they have a verdict of their own. docker is started by an ordinary user there, the others by root.
A wall's row for runs that an ordinary user started, where it differs, is `…_user`; the one of a kernel
without a scope for signals (Landlock's ABI below 6, Linux before 6.12) is `…_unscoped`.
"""
import ctypes
from dataclasses import dataclass, field, replace

NET, WRITE, READ, SYSCALL = ("NetworkAccessViolation", "FilesystemWriteViolation", "FilesystemReadViolation",
                             "SyscallViolation")
MEMORY, PROCESSES, SCRATCH, OUTPUT, TIMEOUT = ("MemoryLimitViolation", "ProcessLimitViolation", "ScratchLimitViolation",
                                               "OutputLimitViolation", "TimeoutViolation")
OWN_WALLS = ("process", "landlock")
# What the walls of engines and runtimes see of attempts: the clock and the output; a runtime's control groups are ours, too.
CLOCKS, GROUPS_OF_OURS = {TIMEOUT, OUTPUT}, {TIMEOUT, OUTPUT, MEMORY, PROCESSES}
OBSERVED = {"docker": CLOCKS, "podman": CLOCKS, "oci": GROUPS_OF_OURS, "gvisor": GROUPS_OF_OURS}
EVENTS = {NET, WRITE, READ, SYSCALL, MEMORY, PROCESSES, SCRATCH, OUTPUT, TIMEOUT}
WALLS = (*OWN_WALLS, *OBSERVED)


@dataclass(frozen=True)
class Verdict:
    word: str
    events: tuple = ()
    may: tuple = ()
    but: dict = field(default_factory=dict)
    ends: str = "exited"
    or_ends: str = ""  # a race decides between two
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


def row(process, landlock=None, engines=None, contained=None, **more):
    """`more`: process_user=…, landlock_user=… where the wall's row is root's only; …_unscoped; docker=…, oci=… where
    one of them differs from `engines` (docker, podman) or from `contained`, all that are not `OWN_WALLS`."""
    made = {"process": process, "landlock": landlock or process}
    for wall, seen in OBSERVED.items():
        verdict = engines if engines and wall in ("docker", "podman") else contained or process
        made[wall] = replace(verdict, events=tuple(e for e in verdict.events if e in seen),
                             may=tuple(e for e in verdict.may if e in seen))
    return made | more


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
SYS = "/sys is there, read-only, and of the container's own groups or of gVisor's; nothing of it can be written."
MQUEUE = "An engine mounts a /dev/mqueue of the container's own."
OWN_NODES = "A node of the runtime's or of gVisor's own kernel, which reaches nothing of the host's."
GVISOR_LIST = "The agent's threads are listed, and by gVisor its descriptors' names; what they hold is not readable."
GVISOR_END = ("gVisor does not keep a signal from the first process: a command can end its own sandbox, which is then reported as lost, "
              "and nothing of it is left.")
GVISOR_OWN = "It changes gVisor's own kernel, which is this sandbox's alone."
GVISOR_FORKS = "What is refused a thread may be gVisor's kernel: then the sandbox ends, and the reason is the limit."
SIGSYS = "A call of another architecture ends the program."
FIFO = ("A FIFO in a folder that is lent read-only can be written: the kernel's read-only mounts do not cover it, and the agent of "
        "this wall takes no Landlock domain for files")
ENGINE_MEMORY = "The engine's limit ends the command by a signal; the result lists the violation as not observed."
MASKED = "The engine masks timer_list by /dev/null; a user's PSI trigger and the numbers of key-users tell about the machine only."
MASKED_NULL = "timer_list is /dev/null there."
LOGIN = "A login uid that is unset may be set once by its process itself; it is a word for the audit log."
INODES = "The number of empty files is not bounded there; they are memory of the sandbox's, which is."
OWN_LOOPBACK = "It comes from the sandbox and goes to it: a namespace of its own, in which nothing of the host's listens."
NO_CONNECT = "`connect` is refused altogether, also to a socket of one's own."
RACY = "A race: what it meets differs."
OWN_UDP = denied(but=dict.fromkeys(("sendto, loopback", "sendmsg, loopback", "sendmmsg, loopback"), "allowed"), why=OWN_LOOPBACK)
KILLED = limited(ends="signaled", why=ENGINE_MEMORY)
LISTED_SYS = denied(but={"list": "allowed"}, why=SYS)
SEEN_SYS = not_visible(but=dict.fromkeys(("list /sys", "list /sys/fs/cgroup", "list /sys/kernel"), "allowed"), why=SYS)
NO_LOOPBACK = denied(ends="start_failed", why="This wall has no loopback of its own and says so at start.")

VERDICTS = {
    "abstract_socket": row(not_visible(), denied(NET), contained=denied(), gvisor=not_visible()),
    "agent_file": row(not_visible(), denied(WRITE), contained=denied()),
    "agent_limits": row(denied(SYSCALL)),
    "agent_memory": row(denied(SYSCALL)),
    "agent_proc": row(not_visible(), denied(but={"its threads": "allowed"}, why=LISTED), contained=denied(but={"its threads": "allowed"}, why=GVISOR_LIST),
                      gvisor=denied(but=dict.fromkeys(("link ns/user", "its descriptors", "its threads"), "allowed"), why=GVISOR_LIST)),
    "agent_signals": row(denied(), landlock_unscoped=allowed(OWN_END, ends="lost"), gvisor=allowed(GVISOR_END, ends="lost")),
    "blind_monitor": row(denied(NET, WRITE), landlock_user=denied(NET, may=(WRITE,), why=UNREAD)),
    "capabilities": row(denied(SYSCALL),
                      landlock_user=denied(SYSCALL, but={"CapBnd is not empty": "allowed"}, why=BOUND)),
    "cgroup_files": row(denied(SYSCALL, may=(WRITE,)), engines=LISTED_SYS, gvisor=LISTED_SYS),
    "commit_links": row(denied(), NO_COW, contained=NO_COW),
    "commit_setid": row(denied(may=(SYSCALL,)), NO_COW, contained=NO_COW),
    "core_dumps": row(denied()),
    "cow_layer": row(denied(SYSCALL, may=(WRITE,)), NO_COW, contained=NO_COW),
    "crash_handler": row(denied(may=(SYSCALL,))),
    "daemon": row(denied()),
    "deaf_tree": row(limited(TIMEOUT, ends="timeout")),
    "descriptors": row(denied()),
    "device_nodes": row(denied(SYSCALL)),
    "devices": row(not_visible(), denied(may=(WRITE,)), engines=not_visible(but={"read mqueue": "allowed", "write mqueue": "denied", "nodes beyond the usual": "allowed"}, why=MQUEUE),
                   oci=not_visible(but={"nodes beyond the usual": "either"}, why=OWN_NODES),
                   gvisor=not_visible(but=dict.fromkeys(("read fuse", "write fuse", "read net/tun", "write net/tun", "nodes beyond the usual"), "allowed"),
                                      why=OWN_NODES)),
    "dns_lookup": row(denied(NET)),
    "environment": row(denied()),
    "fifo_ro": row(denied(WRITE), contained=denied(broken=FIFO), gvisor=denied()),
    "file_attributes": row(denied(WRITE)),
    "file_capabilities": row(denied()),
    "file_handles": row(denied(SYSCALL)),
    "foreign_entry": row(denied(), contained=denied(ends="signaled", why=SIGSYS), gvisor=denied()),
    "foreign_rights": row(not_visible(), denied(WRITE)),
    "forged_denial": row(denied(ends="exited")),
    "forged_frames": row(denied(WRITE)),
    "fork_bomb": row(limited(PROCESSES), limited(may=(PROCESSES,)),
                     process_user=limited(may=(PROCESSES,)),
                     landlock_user=allowed(UNCOUNTED, may=(PROCESSES,)), engines=limited(), oci=limited(may=(PROCESSES,)),
                     gvisor=limited(may=(PROCESSES,), or_ends="processes", why=GVISOR_FORKS)),
    "fork_chain": row(denied(may=(PROCESSES,))),
    "groups": row(denied(), process_user=allowed(GROUPS), landlock_user=allowed(GROUPS)),
    "hard_links": row(denied(WRITE)),
    "held_stdout": row(denied()),
    "hidden_files_cow": row(denied(WRITE), NO_COW, contained=NO_COW),
    "hidden_files_ro": row(denied(WRITE), denied(WRITE, but=NAMES_SEEN, why=NAMES)),
    "hidden_files_rw": row(denied(WRITE), denied()),
    "high_bits": row(denied(SYSCALL)),
    "home_folder": row(not_visible(may=(READ, WRITE)), denied(may=(READ, WRITE))),
    "host_files": row(not_visible(may=(READ,)), denied(may=(READ,)), engines=SEEN_SYS, gvisor=SEEN_SYS),
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
    "memory_bomb": row(limited(MEMORY, ends="memory"), engines=KILLED),
    "memory_memfd": row(limited(MEMORY, ends="memory"), engines=KILLED),
    "memory_queued": row(limited(MEMORY, ends="memory"), engines=KILLED),
    "memory_scratch": row(limited(MEMORY, ends="memory"), allowed(ON_DISK), engines=KILLED),
    "memory_shared": row(limited(MEMORY, ends="memory"), engines=KILLED),
    "memory_sysv": row(limited(MEMORY, ends="memory"), denied(SYSCALL), engines=KILLED),
    "memory_undumpable": row(limited(MEMORY, ends="memory"), engines=KILLED),
    "monitor_killed": row(denied(ends="killed")),
    "mount_calls": row(denied(SYSCALL)),
    "mount_symlink": row(denied(ends="start_failed")),
    "mount_table": row(allowed(TOLD, but={"the layer's or record's": "denied"}), denied(), gvisor=denied()),
    "namespaces": row(denied(SYSCALL)),
    "nested_run": row(denied(SYSCALL, may=(WRITE,))),
    "netlink_route": row(denied(SYSCALL, may=(WRITE,)), gvisor=denied(but={"a tunnel": "allowed"}, why=GVISOR_OWN)),
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
    "proc_machine": row(denied(WRITE), denied(WRITE, but={"read key-users": "allowed", "read keys": "either"}, why=LISTED), engines=denied(but=dict.fromkeys(("write pressure/memory", "write timer_list", "read key-users"), "allowed"), why=MASKED),
                        oci=denied(but={"write timer_list": "allowed"}, why=MASKED_NULL)),
    "proc_sys": row(denied(WRITE)),
    "protected_absent": row(denied(WRITE), denied(may=(WRITE,)),
                            landlock_user=allowed(UNPROTECTED, but={"write to .envrc then": "denied"})),
    "protected_names": row(denied(WRITE), denied(but={"other files can be written": "denied"}),
                           landlock_user=allowed(UNPROTECTED, but=dict.fromkeys(("remove hooks", "renew .git as a whole", "symlink a hook"), "denied"))),
    "protected_symlink": row(denied(may=(READ, WRITE))),
    "raise_limits": row(denied(), engines=denied(but={"loginuid": "allowed"}, why=LOGIN), gvisor=denied(but={"nice": "allowed"}, why=GVISOR_OWN)),
    "rights_open": row(denied(WRITE)),
    "rights_swap": row(denied(may=(READ, WRITE)),
                       denied(WRITE, but=dict.fromkeys(("a link was made", *(f"{what}: some were our own" for what in ("a text", "a link", "a number"))),
                                                       "denied")),
                       landlock_user=denied(WRITE), contained=denied(but=dict.fromkeys((f"{what}: some were our own" for what in ("a text", "a link", "a number")), "either"),
                                        why=RACY)),
    "rights_ways": row(denied(SYSCALL, WRITE),
                       denied(SYSCALL, WRITE, but=dict.fromkeys(("rights of its own", "times of its own", "by descriptor",
                                                                 "cp, tar, install, touch", "a link of its own"), "denied")),
                       landlock_user=denied(SYSCALL, WRITE)),
    "scratch_fill": row(limited(SCRATCH), allowed(ON_DISK, WRITE, but={"the same by /dev/shm": "denied"}), engines=limited(but={"empty files": "allowed"}, why=INODES), gvisor=limited(but={"empty files": "allowed"}, why=INODES)),
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
    "tcp_loopback": row(denied(NET), NO_LOOPBACK, contained=NO_LOOPBACK, gvisor=denied()),
    "timer_storm": row(denied(SYSCALL)),
    "tiocsti": row(denied(SYSCALL)),
    "tty_inside": row(denied(SYSCALL)),
    "udp_host": row(denied(NET), contained=OWN_UDP, gvisor=denied(but=OWN_UDP.but | {"connect and send, loopback": "allowed"}, why=OWN_LOOPBACK)),
    "unix_socket_cow": row(denied(NET), NO_COW, contained=NO_COW),
    "unix_socket_dup2": row(denied(NET), contained=denied(but={"our own was connected at least once": "denied"}, why=NO_CONNECT), gvisor=denied()),
    "unix_socket_ro": row(denied(NET, SYSCALL), contained=denied(but={"a socket of one's own on scratch": "denied"}, why=NO_CONNECT), gvisor=denied()),
    "unix_socket_rw": row(denied(NET)),
    "unix_socket_swap": row(denied(may=(NET,)), contained=denied(but={"some connects reached our own": "denied"}, why=NO_CONNECT), gvisor=denied()),
    "unreadable_program": row(denied(NET, may=(WRITE,)), gvisor=denied(ends="start_failed", why="gVisor does not execute what cannot be read.")),
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
