"""The pair that is forked ahead for the next command: a command that runs can do nothing to it, and what the next
command finds is what the first one found."""
import json
import pathlib
import shutil

import pytest
from run_fixtures import *  # noqa: F403
from test_stay import Atom, agent, children, stay  # noqa: F401

TOP = pathlib.Path(__file__).resolve().parents[2]
# Pids as arguments: leader, keeper, agent. Only these are attacked: behind landlock the host's processes are in sight.
ATTACK = r"""
import ctypes, fcntl, os, signal, struct, sys
from inside import attempt, control, main, opens, reads, reach, sysc

def listed(path):
    return len(os.listdir(path)) > 0

def by_io(pid):
    r, w = os.pipe()
    fcntl.fcntl(r, fcntl.F_SETOWN, pid)
    fcntl.fcntl(r, 10, signal.SIGSTOP)  # F_SETSIG
    fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(w, b"x")
    return False  # the kernel says nothing; what became of it is looked at from outside

def take(pid, number):
    return sysc("pidfd_getfd", os.pidfd_open(pid), number, 0)

def strike(who, pid):
    limit, idle = struct.pack("QQ", 3, 3), struct.pack("i", 0)
    iov = struct.pack("PN", ctypes.addressof(ctypes.create_string_buffer(64)), 64)
    for name in ("environ", "mem", "auxv", "maps", "stack", "syscall", "pagemap"):
        attempt(f"{who} read {name}", reads, f"/proc/{pid}/{name}")
    for name in ("fd", "root/"):
        attempt(f"{who} list {name}", listed, f"/proc/{pid}/{name}")
    for name in ("mem", "oom_score_adj", "autogroup", "coredump_filter", "timerslack_ns", "comm", "uid_map", "clear_refs"):
        attempt(f"{who} write {name}", opens, f"/proc/{pid}/{name}", os.O_WRONLY)
    for what in range(16):
        attempt(f"{who} limit {what}", sysc, "prlimit64", pid, what, limit, 0)
    attempt(f"{who} affinity", sysc, "sched_setaffinity", pid, 8, struct.pack("Q", 1))
    attempt(f"{who} scheduler", sysc, "sched_setscheduler", pid, 5, idle)
    attempt(f"{who} parameters", sysc, "sched_setparam", pid, idle)
    attempt(f"{who} attributes", sysc, "sched_setattr", pid, struct.pack("IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0), 0)
    for kind in range(3):
        attempt(f"{who} nice {kind}", sysc, "setpriority", kind, os.getuid() if kind == 2 else pid, 19)
        attempt(f"{who} ionice {kind}", sysc, "ioprio_set", kind + 1, os.getuid() if kind == 2 else pid, 3 << 13)
    attempt(f"{who} group", os.setpgid, pid, os.getpgid(0))
    attempt(f"{who} its group", os.setpgid, 0, pid)
    for request in (16, 0x4206):
        attempt(f"{who} ptrace {request}", sysc, "ptrace", request, pid, 0, 0)
    attempt(f"{who} memory", sysc, "process_vm_readv", pid, iov, 1, iov, 1, 0)
    attempt(f"{who} memory to", sysc, "process_vm_writev", pid, iov, 1, iov, 1, 0)
    for number in range(14):
        attempt(f"{who} descriptor {number}", take, pid, number)
    for number in (0, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL):
        attempt(f"{who} kill {number}", os.kill, pid, number)
        if pid > 1:
            attempt(f"{who} its group {number}", os.killpg, pid, number)
        attempt(f"{who} tkill {number}", sysc, "tkill", pid, int(number))
        attempt(f"{who} tgkill {number}", sysc, "tgkill", pid, pid, int(number))
        attempt(f"{who} sigqueue {number}", sysc, "rt_sigqueueinfo", pid, int(number),
                struct.pack("iii", number, 0, -1) + bytes(116))
        attempt(f"{who} pidfd {number}", lambda: sysc("pidfd_send_signal", os.pidfd_open(pid), int(number), 0, 0))
    attempt(f"{who} SIGIO", by_io, pid)

def attack(*pids):
    for who, pid in zip(("leader", "keeper", "agent"), map(int, pids)):
        strike(who, pid)
    control("we go on", os.getpid)

main(attack)
"""
STATE = r"""
import json, os, signal
def text(name):
    with open(f"/proc/self/{name}") as file:
        return file.read()
varies = ("Pid", "Tgid", "PPid", "NSpid", "NSpgid", "NStgid", "NSsid", "Vm", "Rss", "voluntary", "nonvoluntary", "Threads")
state = {n: text(n) for n in ("limits", "cgroup", "oom_score_adj", "personality", "timerslack_ns", "coredump_filter")}
state["status"] = [line for line in text("status").splitlines() if not line.startswith(varies)]
state["scheduling"] = [os.getpriority(0, 0), os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))]
state["timers"] = [signal.getitimer(n) for n in range(3)]
state["leads"] = [os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()]
state["descriptors"] = sorted(os.listdir("/proc/self/fd"))
state["namespaces"] = {n: os.readlink(f"/proc/self/ns/{n}") for n in sorted(os.listdir("/proc/self/ns"))}
state["variables"] = dict(os.environ)
state["folder"] = os.getcwd()
print(json.dumps(state))
"""


def fields(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return {"Name": "", "State": ""}
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def spare_of(monitor):
    """Host pids of the leader that waits, its keeper and the agent."""
    for pid in children(monitor):
        if fields(pid)["Name"] == "caisson-spare":
            return [pid, int(fields(pid)["PPid"]), agent(monitor)]
    return None


def within(pid):
    """Its number in the innermost namespace."""
    return int(fields(pid)["NSpid"].split()[-1])


@pytest.mark.parametrize("policy", ["version: 1\n", LANDLOCK], ids=["process", "landlock"])
def test_the_next_command_is_out_of_reach(stay, policy):  # noqa: F811
    stay.box.file("attack.py", ATTACK)
    stay.box.file("state.py", STATE)
    shutil.copy(TOP / "tests" / "escape" / "inside.py", stay.box.ws)
    client = stay.started(policy=policy).client()
    monitor, before = stay.monitor(), json.loads(client.sh("exec python3 state.py")["out"])
    assert wait_for(lambda: spare_of(monitor), 5)
    client.send("call", 2, Atom("exec"), {"command": b"read go; exec python3 attack.py $go", "stdin": True})
    assert client.sh("true", 3)["exit_code"] == 0
    assert wait_for(lambda: spare_of(monitor), 5)
    spare = spare_of(monitor)
    client.send("data", 2, Atom("stdin"), " ".join(str(within(pid)) for pid in spare).encode() + b"\n")
    done, out, err = client.answer(2)
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines and lines[-1] == {"done": True}, (done, out[-500:], err)
    lines.pop()
    assert len(lines) > 200 and [line for line in lines if line.get("got") and not line.get("control")] == []
    assert {line["errno"] for line in lines if " kill " in line["attempt"]} == {"EPERM"}, "they were there"
    assert spare_of(monitor) == spare and fields(spare[0])["State"].startswith("S"), "it waits as before"
    after = json.loads(client.sh("exec python3 state.py", 4)["out"])
    assert after == before
