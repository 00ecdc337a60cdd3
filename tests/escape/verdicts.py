"""The table: what each attack must come to, behind each wall. docs/verdicts.md is made from it.

denied        refused by the kernel or by the monitor
not_visible   there is nothing to attack: the thing does not exist inside
limited       a limit ended it
allowed       it works, and the page says why that gives nothing away (allowed_documented)

`events` is the exact set of violations in the result, `may` what a race or a sample may add.
`but` names single attempts of the file with a verdict of their own. A wall's row for runs that
an ordinary user started, where it differs, is `…_user`.
"""
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


def row(process, landlock=None, **more):
    return {"process": process, "landlock": landlock or process, **more}


VERDICTS = {
    "abstract_socket": row(not_visible(), denied(NET)),
    "agent_limits": row(denied(SYSCALL)),
    "agent_memory": row(denied(SYSCALL)),
    "agent_proc": row(not_visible(), denied()),
    "agent_signals": row(denied()),
    "dns_lookup": row(denied(NET), denied(SYSCALL)),
    "fifo_ro": row(denied(WRITE)),
    "foreign_entry": row(denied()),
    "high_bits": row(denied(SYSCALL)),
    "mount_calls": row(denied(SYSCALL)),
    "namespaces": row(denied(SYSCALL)),
    "proc_machine": row(denied(WRITE)),
    "proc_sys": row(denied(WRITE)),
    "socket_families": row(denied(SYSCALL)),
    "tcp_host": row(denied(NET), denied(SYSCALL)),
    "tcp_loopback": row(denied(NET)),
    "udp_host": row(denied(NET), denied(SYSCALL)),
    "unix_socket_cow": row(denied(NET)),
    "unix_socket_dup2": row(denied(NET)),
    "unix_socket_ro": row(denied(NET, SYSCALL)),
    "unix_socket_rw": row(denied(NET)),
    "unix_socket_swap": row(denied(may=(NET,))),
}


def verdict_of(attack, wall, who):
    row_ = VERDICTS[attack]
    return row_.get(f"{wall}_{who}") or row_[wall]
