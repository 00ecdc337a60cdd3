"""Keepers in a pid namespace, where the agent is process 1, and behind a /proc that hides; listeners."""
import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
import threading
import time

import pytest
from speaker import AS_ROOT, NOBODY, Failed
from trees import ENDS, STAYS, STORM, argv, children, descendants, detach, one, text, until

OWN_PIDS = 'shift; set -- x unshare %s --pid --fork --kill-child --mount-proc "$@"'
# As the process wall has it: no capability, no way to see whom one may not trace.
NO_NET = ('shift; set -- x unshare --mount --pid --fork --kill-child sh -c "mount -t proc -o subset=pid proc /proc && '
          'exec \\"\\$@\\"" sh "$@"')
HIDING = ('shift; set -- x unshare --mount --pid --fork --kill-child sh -c "mount -t proc -o hidepid=2 proc /proc && '
          f'exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups --no-new-privs -- \\"\\$@\\"" sh "$@"')
LISTENING = 'shift; set -- x bash -c "exec 3<&%d; exec setpriv --no-new-privs -- \\"\\$@\\"" sh "$@"'
HIDES = "import ctypes; ctypes.CDLL(None).prctl(4, 0)\n"  # PR_SET_DUMPABLE
SYS_PIDFD_GETFD, NOTIF_RECV, NOTIF_SEND = 438, 0xC0502100, 0xC0182101


@pytest.fixture
def who(here):
    return "root" if AS_ROOT and here != "user" else "user"


@pytest.fixture(params=(["root", "hiding"] if AS_ROOT else []) + ["user"])
def here(request):
    """As whom, and behind which /proc; paths are no part of this."""
    return request.param


@pytest.fixture
def pid_1(here, start, ws):
    """An agent that is process 1 of its namespace; (agent, its pid outside)."""
    if here == "hiding":
        ws.chmod(0o777)
        agent = start(prelude=HIDING)
    else:
        agent = start(prelude=OWN_PIDS % ("" if here == "root" else "--user --map-root-user"))
    agent.call("ps")
    return agent, children(agent.process.pid)[0]


def test_leader_in_a_pid_namespace(pid_1):
    agent, outside = pid_1
    reply = agent.end(text(agent, "(setsid sleep 1000 &); sleep 1000 & ls -d /proc/[0-9]* | wc -l; exit 2"))
    assert reply["exit_code"] == 2
    until(lambda: children(outside) == [])


@pytest.mark.parametrize("hides", ["", HIDES])
def test_deadline_in_a_pid_namespace(pid_1, ws, hides):
    agent, outside = pid_1
    detach(agent, "exec sleep 1000", "server")
    ref = argv(agent, "python3", "-c", hides + STORM + STAYS, timeout_ms=3000)
    until(lambda: (ws / "up").exists() and len((ws / "up").read_bytes()) == 200)
    reply = agent.end(ref)
    assert reply["timed_out"] is True and reply["signal"] == 9
    until(lambda: len(descendants(outside)) == 2)
    assert one(agent, "server")["state"] == "running"


def test_hidden_tree_at_the_leaders_end(pid_1, ws):
    agent, outside = pid_1
    assert agent.end(argv(agent, "python3", "-c", HIDES + STORM + ENDS))["exit_code"] == 0
    until(lambda: children(outside) == [])


def test_killed_keeper_in_a_pid_namespace(pid_1):
    agent, outside = pid_1
    detach(agent, "exec sleep 1000", "server")
    kept = descendants(outside)
    ref = argv(agent, "python3", "-c", HIDES + "import os, time\nfor i in range(9):\n  if os.fork() == 0: os.setsid()\n"
               "os.write(1, b'x')\ntime.sleep(1000)")
    agent.frame_of(ref)
    until(lambda: len(descendants(outside)) == 2 + 513)
    victim, = set(children(outside)) - set(kept)
    os.kill(victim, signal.SIGKILL)
    with pytest.raises(Failed) as told:
        agent.end(ref)
    assert told.value.reason == "lost"
    until(lambda: descendants(outside) == kept)
    assert one(agent, "server")["state"] == "running"


@pytest.mark.skipif(not AS_ROOT, reason="root: mounts another /proc")
def test_port_without_a_list_of_sockets(start, here):
    if here != "root":
        pytest.skip("one is enough")
    agent = start(prelude=NO_NET)
    with socket.socket() as ours:
        ours.bind(("127.0.0.1", 0))
        port = ours.getsockname()[1]
        detach(agent, "test -e /proc/net/tcp || echo none; exec sleep 1000", "s")
        assert agent.call("wait", tag="s", text="none")["reached"] is True
        assert agent.call("wait", tag="s", port=port, timeout_ms=100)["timed_out"] is True
        ours.listen()
        assert agent.call("wait", tag="s", port=port)["reached"] is True
    no_loopback = start(prelude=NO_NET.replace("unshare", "unshare --net"))
    detach(no_loopback, "exec sleep 1000", "s")
    with pytest.raises(Failed) as told:
        no_loopback.call("wait", tag="s", port=port)
    assert told.value.reason == "not_supported"


# ---- listeners -----------------------------------------------------------------------------------


def let_pass(listener):
    """Answers whatever a command's filter asks with CONTINUE, until the command is gone."""
    ready = select.poll()
    ready.register(listener, select.POLLIN)
    while True:
        if not ready.poll(10_000)[0][1] & select.POLLIN:
            return
        notice = bytearray(80)
        try:
            fcntl.ioctl(listener, NOTIF_RECV, notice)
            fcntl.ioctl(listener, NOTIF_SEND, notice[:8] + struct.pack("qiI", 0, 0, 1))
        except FileNotFoundError:  # killed meanwhile
            pass


class Listeners:
    """The monitor's side of the socket on which commands announce theirs."""

    def __init__(self, start, ws):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.taken = []
        self.agent = start(init=False, pass_fds=[theirs.fileno()],
                           prelude=LISTENING % theirs.fileno())
        theirs.close()
        self.agent.send("init", {"workspace": os.fsencode(ws), "profile": b"command", "listener": True})
        assert self.agent.frame()[0] == "ready"

    def announced(self, wait=10):
        """(Ref, pid, number) of the next; None: nobody announces."""
        if not select.select([self.socket], [], [], wait)[0]:
            return None
        data, control, _, _ = self.socket.recvmsg(64, 64)
        number, _, ref = struct.unpack("iiq", data)
        return ref, struct.unpack("iii", control[0][2])[0], number

    def take(self, announced):
        ref, pid, number = announced
        pidfd = os.pidfd_open(pid)
        fd = ctypes.CDLL(None, use_errno=True).syscall(SYS_PIDFD_GETFD, pidfd, number, 0)
        os.close(pidfd)
        assert fd >= 0, os.strerror(ctypes.get_errno())
        assert "seccomp notify" in os.readlink(f"/proc/self/fd/{fd}")
        self.taken.append((fd, threading.Thread(target=let_pass, args=[fd])))
        self.taken[-1][1].start()

    def answer(self, ref):
        self.socket.send(struct.pack("q", ref))

    def close(self):
        for fd, thread in self.taken:
            thread.join()
            os.close(fd)
        self.socket.close()


@pytest.fixture
def listeners(start, ws, here):
    if here == "hiding":
        pytest.skip("nothing is looked up")
    made = Listeners(start, ws)
    yield made
    made.close()


def test_one_at_a_time_announces(listeners):
    agent = listeners.agent
    refs = [text(agent, "echo hi; exit 3") for _ in range(5)]
    for ref in refs:
        announced = listeners.announced()
        assert announced[0] == ref
        listeners.take(announced)
        assert listeners.announced(0.1) is None
        listeners.answer(ref)
    for ref in refs:
        assert agent.end(ref)["exit_code"] == 3


def test_an_answer_is_for_one_command(listeners):
    """What the dead did not read does not start the next without its listener."""
    agent = listeners.agent
    first, second = text(agent, "echo first"), text(agent, "echo second")
    announced = listeners.announced()
    assert announced[0] == first
    agent.send("cancel", first)
    assert agent.end(first)["signal"] == 9
    listeners.answer(first)
    announced = listeners.announced()
    assert announced[0] == second
    assert agent.frame_of(second, 0.2) is None
    listeners.take(announced)
    listeners.answer(second)
    assert agent.end(second)["data"] == b"second\n"


def test_queue_and_its_ends(listeners):
    agent = listeners.agent
    first = text(agent, "echo first")
    second, third, fourth = text(agent, "echo 2"), text(agent, "echo 3", timeout_ms=100), text(agent, "echo 4")
    assert {c["state"] for c in agent.call("ps")["commands"]} == {"starting"}
    agent.send("cancel", second)
    for ref, reason in ((second, "cancelled"), (third, "etimedout")):
        with pytest.raises(Failed) as told:
            agent.end(ref)
        assert told.value.reason == reason
    for ref, said in ((first, b"first\n"), (fourth, b"4\n")):
        announced = listeners.announced()
        assert announced[0] == ref
        listeners.take(announced)
        listeners.answer(ref)
        assert agent.end(ref)["data"] == said


def test_signals_and_sizes_wait_in_the_queue(listeners):
    """What is sent to one that has not begun arrives when it has, in its order; its terminal begins with the last size."""
    agent = listeners.agent
    first = text(agent, "true")
    second = text(agent, "while :; do sleep 0.05; done")
    third = text(agent, "stty size", tty=True, rows=10, cols=20)
    # Of two that wait in the kernel the lower number comes first anyhow.
    for sent in (("signal", second, 28), ("signal", second, 10), ("signal", second, 12), ("resize", third, 40, 50), ("resize", third, 0, 7)):
        agent.send(*sent)
    for ref, ended_by, said in ((first, None, b""), (second, 10, b""), (third, None, b"40 50\r\n")):
        announced = listeners.announced()
        assert announced[0] == ref
        listeners.take(announced)
        listeners.answer(ref)
        output = b""
        while (frame := agent.frame_of(ref))[0] != "reply":
            output += frame[3] if frame[0] == "data" else b""
        assert frame[2]["signal"] == ended_by and output == said, frame


def test_deadline_while_the_monitor_is_silent(listeners):
    begin = time.monotonic()
    ref = text(listeners.agent, "echo hi", timeout_ms=300)
    assert listeners.announced()[0] == ref
    assert listeners.agent.end(ref)["timed_out"] is True
    assert time.monotonic() - begin < 3
