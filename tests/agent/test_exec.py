"""Several commands at once, each with a keeper of its own; detached ones; what is left of a tree."""
import hashlib
import os
import pathlib
import signal
import subprocess
import time

import pytest
from etf import Atom
from speaker import WHO, Failed, WINDOW, fails
from trees import (ENDS, ENV, STAYS, STORM, argv, children, descendants, detach, is_alive, keeper_of, one, spare_of,
                   text, until)


@pytest.fixture(params=[who for who in WHO if who != "steps"])
def who(request):
    """Paths are no part of this."""
    return request.param


# ---- one ---------------------------------------------------------------------------------------


def test_status_and_signal(agent):
    assert agent.end(text(agent, "echo hi; exit 7")) | {"user_us": 0, "system_us": 0, "max_rss_bytes": 0} == \
        {"exit_code": 7, "signal": None, "data": b"hi\n", "user_us": 0, "system_us": 0, "max_rss_bytes": 0}
    reply = agent.end(text(agent, "kill -9 $$"))
    assert reply["exit_code"] is None and reply["signal"] == 9


def test_usage_is_the_commands(agent):
    reply = agent.end(argv(agent, "python3", "-c", "x = bytearray(80 << 20)\nwhile sum(range(100000)) and "
                           "__import__('time').process_time() < 0.3: pass"))
    assert reply["user_us"] > 200_000 and reply["max_rss_bytes"] > 80 << 20


def test_what_cannot_be_executed(agent):
    reply = agent.end(argv(agent, "no-such-program"))
    assert reply["error"] == "enoent" and reply["stage"] == b"exec" and reply["exit_code"] is None
    reply = agent.end(argv(agent, "no-such-program", detach=True, tag="x"))
    assert reply["error"] == "enoent" and "detached" not in reply
    assert agent.call("ps")["commands"] == []


def test_end_of_the_leader_ends_its_tree(agent, ws):
    reply = agent.end(text(agent, "(setsid sh -c 'echo $$ > bg; exec sleep 1000' &); "
                           "sleep 1000 & until test -s bg; do :; done; echo done"))
    assert reply["data"] == b"done\n" and reply["exit_code"] == 0
    assert not is_alive(int((ws / "bg").read_text()))
    until(lambda: children(agent.process.pid) == [])


def test_deadline_kills_a_storm_and_spares_a_detached_one(agent, ws):
    server = detach(agent, "exec sleep 1000", "server")
    begin = time.monotonic()
    ref = argv(agent, "python3", "-c", STORM + STAYS, timeout_ms=3000)
    until(lambda: (ws / "up").exists() and len((ws / "up").read_bytes()) == 200)
    assert len(descendants(agent.process.pid)) > 190
    reply = agent.end(ref)
    assert reply["timed_out"] is True and reply["signal"] == 9
    assert 2.9 < time.monotonic() - begin < 8
    until(lambda: descendants(agent.process.pid) == [keeper_of(agent, server), server])
    assert one(agent, "server")["state"] == "running"


def test_end_of_the_leader_kills_a_storm(agent, ws):
    assert agent.end(argv(agent, "python3", "-c", STORM + ENDS))["exit_code"] == 0
    until(lambda: descendants(agent.process.pid) == [])


@pytest.mark.parametrize("how", ["cancel", "signal"])
def test_asked_to_end(agent, ws, how):
    ref = text(agent, "setsid sh -c 'trap \"\" TERM; echo x; while :; do sleep 1; done' & wait")
    assert agent.frame_of(ref)[3] == b"x\n"
    agent.send(*(("cancel", ref) if how == "cancel" else ("signal", ref, 9)))
    assert agent.end(ref)["signal"] == 9
    until(lambda: children(agent.process.pid) == [])


def test_polite_end_reaches_the_tree(agent, ws):
    ref = text(agent, "exec 2>/dev/null; setsid sh -c 'trap \"echo bye > bye; exit 3\" TERM; echo x; while :; do sleep 0.05; done' & "
               "trap 'wait; exit 4' TERM; while :; do sleep 0.05; done")
    assert agent.frame_of(ref)[3] == b"x\n"
    agent.send("signal", ref, int(signal.SIGTERM))
    assert agent.end(ref)["exit_code"] == 4
    assert (ws / "bye").read_text() == "bye\n"


def test_other_signals_reach_the_group(agent):
    ref = text(agent, "trap 'echo got; exit 5' USR1; setsid sleep 1000 & echo x; wait")
    assert agent.frame_of(ref)[3] == b"x\n"
    agent.send("signal", ref, int(signal.SIGUSR1))
    assert agent.end(ref) | {"user_us": 0, "system_us": 0, "max_rss_bytes": 0} == \
        {"exit_code": 5, "signal": None, "data": b"got\n", "user_us": 0, "system_us": 0, "max_rss_bytes": 0}


# ---- several -------------------------------------------------------------------------------------


def test_two_at_once(agent):
    a = text(agent, "while read x; do echo a$x; done; exit 1", stdin=True)
    b = text(agent, "while read x; do echo b$x; done; exit 2", stdin=True)
    for i in range(20):
        for ref, name in ((a, b"a"), (b, b"b")):
            agent.send("data", ref, Atom("stdin"), b"%d\n" % i)
            frame = agent.frame_of(ref)
            while frame[0] == "window":
                frame = agent.frame_of(ref)
            assert frame[3] == b"%s%d\n" % (name, i)
    for ref in (b, a):
        agent.send("data", ref, Atom("stdin"), Atom("eof"))
    assert agent.end(b)["exit_code"] == 2 and agent.end(a)["exit_code"] == 1


def test_a_reader_that_stops_stalls_its_call_alone(agent):
    stalled = text(agent, "head -c 2000000 /dev/zero")
    got = 0
    while got < WINDOW:
        got += len(agent.frame_of(stalled)[3])
    other = agent.end(text(agent, "head -c 1000000 /dev/zero"))
    assert len(other["data"]) == 1000000
    assert agent.frame_of(stalled, 0.2) is None
    agent.send("window", stalled, got)
    assert got + len(agent.end(stalled)["data"]) == 2000000


def test_a_cancelled_call_waits_for_no_reader(agent):
    ref = text(agent, "head -c 2000000 /dev/zero")
    got = 0
    while got < WINDOW:
        got += len(agent.frame_of(ref)[3])
    agent.send("cancel", ref)
    assert agent.end(ref, grants=False)["signal"] in (9, 13)


def test_terminals_of_their_own(agent):
    refs = [text(agent, "stty size; read x; stty size", tty=True, rows=10 + i, cols=90, stdin=True) for i in range(3)]
    for i, ref in enumerate(refs):
        assert agent.frame_of(ref)[3] == b"%d 90\r\n" % (10 + i)
    for i, ref in enumerate(refs):
        agent.send("resize", ref, 50 + i, 60)
        agent.send("data", ref, Atom("stdin"), b"\n")
    for i, ref in enumerate(refs):
        output = b""
        while (frame := agent.frame_of(ref))[0] != "reply":
            output += frame[3] if frame[0] == "data" else b""
        assert output.endswith(b"%d 60\r\n" % (50 + i)) and frame[2]["exit_code"] == 0


def test_64_at_once(agent):
    refs = [text(agent, "read x; exit 9", stdin=True) for _ in range(64)]
    fails(agent, "eagain", "exec", command="true")
    assert len(agent.call("ps")["commands"]) == 64
    for ref in refs:
        agent.send("data", ref, Atom("stdin"), b"\n")
    assert {agent.end(ref)["exit_code"] for ref in refs} == {9}
    assert agent.end(text(agent, "true"))["exit_code"] == 0
    until(lambda: children(agent.process.pid) == [])


def test_no_descriptor_of_another_call(agent):
    """Input of the first ends though a second command was forked while it was open."""
    first = text(agent, "cat; echo end", stdin=True)
    second = argv(agent, "sleep", "1000")
    agent.call("ps")
    until(lambda: len(descendants(agent.process.pid)) == 5)  # two keepers, a shell, its cat, a sleep
    for keeper in children(agent.process.pid):
        try:
            held = os.listdir(f"/proc/{keeper}/fd")
        except PermissionError:  # it is not dumpable, and we are not root
            continue
        assert len(held) == 2, held
    agent.send("data", first, Atom("stdin"), Atom("eof"))
    assert agent.end(first)["data"] == b"end\n"
    agent.send("cancel", second)
    assert agent.end(second)["signal"] == 9


def test_a_foreign_process_cannot_read_a_keeper(agent):
    pid = detach(agent, "exec sleep 1000", "x")
    stat = os.stat(f"/proc/{keeper_of(agent, pid)}/environ")
    assert stat.st_uid == 0  # not dumpable


# ---- keepers under attack ------------------------------------------------------------------------


def attack(agent, pid, number):
    os.kill(keeper_of(agent, pid), number)


def test_killed_keeper(agent):
    server = detach(agent, "exec sleep 1000", "server")
    ref = text(agent, "setsid sleep 1000 & echo x; sleep 1000")
    assert agent.frame_of(ref)[3] == b"x\n"
    victim = [c["pid"] for c in agent.call("ps")["commands"] if c["ref"] == ref][0]
    attack(agent, victim, signal.SIGKILL)
    with pytest.raises(Failed) as told:
        agent.end(ref)
    assert told.value.reason == "lost"
    until(lambda: descendants(agent.process.pid) == [keeper_of(agent, server), server])
    assert agent.end(text(agent, "echo on"))["data"] == b"on\n"


def test_killed_keeper_of_a_detached_one(agent):
    pid = detach(agent, "setsid sleep 1000 & exec sleep 1000", "server")
    attack(agent, pid, signal.SIGKILL)
    until(lambda: one(agent, "server")["state"] == "lost")
    until(lambda: descendants(agent.process.pid) == [])
    assert agent.call("wait", tag="server") == \
        {"reached": True, "timed_out": False, "running": False, "exit_code": None, "signal": None}


def test_killed_keeper_where_nobody_can_tell(agent):
    """Beside a command without one: whose the orphans are is unknown, so all ends."""
    ref = text(agent, "echo x; sleep 1000")
    agent.frame_of(ref)
    last = text(agent, "echo x; sleep 1000", last=True)
    agent.frame_of(last)
    left = descendants(agent.process.pid)
    victim = [c["pid"] for c in agent.call("ps")["commands"] if c["ref"] == ref][0]
    attack(agent, victim, signal.SIGKILL)
    with pytest.raises(EOFError):
        while agent.frame() is not None:
            pass
    assert agent.process.wait(10) == 1
    until(lambda: not any(map(is_alive, left)))


def test_stopped_keeper(agent):
    pid = detach(agent, "exec sleep 0.5", "server")
    attack(agent, pid, signal.SIGSTOP)
    assert agent.call("wait", tag="server", timeout_ms=5000)["exit_code"] == 0


def test_keeper_that_is_stopped_again_and_again(agent):
    ref = text(agent, "echo x; setsid sleep 1000 & sleep 1000", timeout_ms=1500)
    agent.frame_of(ref)
    victim = [c["pid"] for c in agent.call("ps")["commands"] if c["ref"] == ref][0]
    keeper = keeper_of(agent, victim)
    begin = time.monotonic()
    while is_alive(keeper) and time.monotonic() < begin + 5:
        os.kill(keeper, signal.SIGSTOP)
        time.sleep(0.005)
    assert not is_alive(keeper)
    with pytest.raises(Failed) as told:
        agent.end(ref)
    assert told.value.reason == "lost"
    assert time.monotonic() - begin < 4
    until(lambda: descendants(agent.process.pid) == [])


def test_other_signals_do_nothing_to_a_keeper(agent):
    pid = detach(agent, "exec sleep 0.5", "server")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGTSTP, signal.SIGSEGV):
        attack(agent, pid, number)
    assert agent.call("wait", tag="server")["exit_code"] == 0


def test_nothing_outlives_the_agent(agent):
    detach(agent, "(setsid sleep 1000 &) ; exec sleep 1000", "server")
    ref = text(agent, "(setsid sleep 1000 &); echo x; exec sleep 1000")
    agent.frame_of(ref)
    until(lambda: len(descendants(agent.process.pid)) == 6)
    left = descendants(agent.process.pid)
    agent.stream.close()
    agent.process.wait(10)
    until(lambda: not any(map(is_alive, left)))


# ---- detached ones -------------------------------------------------------------------------------


def test_leaders_exit_spares_a_detached_one(agent, ws):
    server = detach(agent, "exec sleep 1000", "server")
    assert agent.end(text(agent, "sleep 1000 & true"))["exit_code"] == 0
    until(lambda: descendants(agent.process.pid) == [keeper_of(agent, server), server])


def test_ps(agent):
    pid = detach(agent, "echo out; echo err >&2; exec sleep 1000", "s")
    until(lambda: one(agent, "s")["bytes"] == 8)
    found = one(agent, "s")
    assert found["state"] == "running" and found["detached"] is True and found["pid"] == pid
    assert abs(found["started_ms"] - time.time() * 1000) < 60_000
    assert found["exit_code"] is None and found["signal"] is None and found["cut"] == 0


def test_tags(agent):
    detach(agent, "exec sleep 1000", "s")
    fails(agent, "eexist", "exec", command="true", tag="s", detach=True)
    agent.call("kill", tag="s", signal=9)
    assert agent.call("wait", tag="s")["signal"] == 9
    detach(agent, "exit 3", "s")
    assert agent.call("wait", tag="s")["exit_code"] == 3
    one(agent, "s")
    for verb in ("wait", "kill", "logs"):
        fails(agent, "enoent", verb, tag="other")
        fails(agent, "einval", verb)
        fails(agent, "einval", verb, tag="s", ref=1)
    fails(agent, "esrch", "kill", tag="s")
    assert agent.call("wait", tag="s", forget=True)["exit_code"] == 3
    fails(agent, "enoent", "wait", tag="s")


def test_ref_instead_of_a_tag(agent):
    ref = text(agent, "echo hi; exit 2", detach=True)
    agent.end(ref)
    assert agent.call("wait", ref=ref)["exit_code"] == 2
    assert agent.call("logs", ref=ref)["data"] == b"hi\n"
    ref = text(agent, "sleep 1000")
    agent.call("kill", ref=ref)
    assert agent.end(ref)["signal"] == 15


def test_detached_goes_without_input(agent):
    fails(agent, "einval", "exec", command="true", detach=True, stdin=True)
    fails(agent, "einval", "exec", command="true", detach=True, last=True)


def test_deadline_of_a_detached_one(agent):
    detach(agent, "setsid sleep 1000 & sleep 1000", "s", timeout_ms=300)
    assert agent.call("wait", tag="s")["signal"] == 9
    until(lambda: descendants(agent.process.pid) == [])


def test_kill_asks_first(agent):
    detach(agent, "exec 2>/dev/null; trap 'echo bye; exit 6' TERM; echo up; while :; do sleep 0.05; done", "polite")
    detach(agent, "trap '' TERM; echo up; while :; do sleep 0.05; done", "stubborn")
    for tag in ("polite", "stubborn"):
        assert agent.call("wait", tag=tag, text="up")["reached"] is True
        assert agent.call("kill", tag=tag) == {}
    assert agent.call("wait", tag="polite")["exit_code"] == 6
    assert agent.call("wait", tag="stubborn")["signal"] == 9
    assert agent.call("logs", tag="polite")["data"] == b"up\nbye\n"


def test_ended_ones_are_bounded(agent):
    for i in range(70):
        detach(agent, f"exit {i}", f"t{i}")
        agent.call("wait", tag=f"t{i}")
    kept = agent.call("ps")["commands"]
    assert [c["tag"] for c in kept] == [b"t%d" % i for i in range(6, 70)]
    assert agent.call("wait", tag="t6")["exit_code"] == 6


def test_output_of_ended_ones_is_bounded(agent):
    for i in range(20):
        detach(agent, "head -c 1100000 /dev/zero", f"t{i}")
        assert agent.call("wait", tag=f"t{i}")["exit_code"] == 0
    kept = agent.call("ps")["commands"]
    assert [c["tag"] for c in kept] == [b"t%d" % i for i in range(4, 20)]
    detach(agent, "exit 3", "small")
    assert agent.call("wait", tag="small")["exit_code"] == 3 and len(agent.call("ps")["commands"]) == 17
    status = pathlib.Path(f"/proc/{agent.process.pid}/status").read_text()
    assert int(status.partition("VmRSS:")[2].split()[0]) < 24 << 10


# ---- logs ----------------------------------------------------------------------------------------


def replay(agent, grants=True, **args):
    """Pieces as (stream, bytes), neighbours of a stream joined; and the reply."""
    ref, pieces = agent.begin("logs", **args), []
    while (frame := agent.frame_of(ref))[0] == "data":
        if pieces and pieces[-1][0] == frame[2]:
            pieces[-1] = (frame[2], pieces[-1][1] + frame[3])
        else:
            pieces.append((frame[2], frame[3]))
        if grants:
            agent.send("window", ref, len(frame[3]))
    assert frame[0] == "reply", frame
    return pieces, frame[2]


def test_logs_keep_the_order(agent):
    detach(agent, "for i in 1 2 3; do echo o$i; sleep 0.05; echo e$i >&2; sleep 0.05; done", "s")
    pieces, reply = replay(agent, tag="s", follow=True)
    assert pieces == [(s, b"%s%d\n" % (s[3:4].encode(), i)) for i in (1, 2, 3) for s in ("stdout", "stderr")]
    assert reply == {"bytes": 18, "cut": 0, "running": False}
    assert replay(agent, tag="s") == (pieces, reply)  # as often as one likes


def test_logs_of_one_that_runs(agent):
    detach(agent, "echo a; sleep 1000", "s")
    until(lambda: one(agent, "s")["bytes"] == 2)
    assert replay(agent, tag="s") == ([("stdout", b"a\n")], {"bytes": 2, "cut": 0, "running": True})
    ref = agent.begin("logs", tag="s", follow=True)
    assert agent.frame_of(ref)[3] == b"a\n"
    assert agent.frame_of(ref, 0.1) is None
    agent.send("cancel", ref)
    with pytest.raises(Failed) as told:
        agent.end(ref)
    assert told.value.reason == "cancelled" and one(agent, "s")["state"] == "running"


def test_ring_keeps_the_newest(agent):
    detach(agent, "seq 1 400000", "s")
    agent.call("wait", tag="s")
    whole = b"".join(b"%d\n" % i for i in range(1, 400001))
    pieces, reply = replay(agent, tag="s")
    assert len(pieces) == 1 and whole.endswith(pieces[0][1])
    assert (1 << 20) - (32 << 10) <= reply["bytes"] == len(pieces[0][1]) <= 1 << 20
    assert reply["bytes"] + reply["cut"] == len(whole)
    found = one(agent, "s")
    assert (found["bytes"], found["cut"]) == (len(whole), reply["cut"])


def test_ring_of_single_bytes(agent):
    """Changing streams at every byte costs room, and nothing else."""
    detach(agent, "exec python3 -c 'import os\nfor i in range(300000): os.write(1 + i % 2, b\"oe\"[i % 2:][:1])'", "s")
    assert agent.call("wait", tag="s")["exit_code"] == 0
    found = one(agent, "s")
    assert found["bytes"] == 300000
    pieces, reply = replay(agent, tag="s")
    assert sum(len(p) for _, p in pieces) == reply["bytes"] == 300000 - reply["cut"]
    assert all(set(p) == ({111} if s == "stdout" else {101}) for s, p in pieces)


def test_a_slow_follower_holds_nobody(agent):
    detach(agent, "seq 1 1000000", "s")
    ref = agent.begin("logs", tag="s", follow=True)
    got = 0
    while got < WINDOW:
        got += len(agent.frame_of(ref)[3])
    assert agent.call("wait", tag="s")["exit_code"] == 0
    agent.send("window", ref, got)
    rest = agent.end(ref)
    got += len(rest["data"])
    assert rest["bytes"] == got and got + rest["cut"] == 6888896


def test_terminal_of_a_detached_one(agent):
    detach(agent, "test -t 1 && stty size", "s", tty=True, rows=7, cols=9)
    agent.call("wait", tag="s")
    assert replay(agent, tag="s")[0] == [("tty", b"7 9\r\n")]


def test_logs_are_a_detached_ones(agent):
    ref = text(agent, "sleep 1000")
    for verb in ("logs", "wait"):
        fails(agent, "einval", verb, ref=ref)


# ---- wait ----------------------------------------------------------------------------------------


def test_wait_has_a_clock(agent):
    detach(agent, "exec sleep 1000", "s")
    begin = time.monotonic()
    assert agent.call("wait", tag="s", timeout_ms=200) == \
        {"reached": False, "timed_out": True, "running": True, "exit_code": None, "signal": None}
    assert 0.19 < time.monotonic() - begin < 2
    assert agent.call("wait", tag="s", timeout_ms=0)["timed_out"] is True


@pytest.mark.parametrize("how, what, line", [
    ("text", "on port", b"listening on port 80"),
    ("line", "port [0-9]+$", b"listening on port 80"),
    ("line", "^(x|listening) on", b"listening on port 80"),
    ("text", "a.c", None),
    ("line", "^port", None),
    ("text", "prompt> ", b"prompt> "),
])
def test_wait_for_a_line(agent, how, what, line):
    detach(agent, "echo abc; sleep 0.1; printf listen; sleep 0.1; echo 'ing on port 80'; printf 'prompt> '; sleep 0.2", "s")
    reply = agent.call("wait", tag="s", **{how: what})
    assert reply["reached"] is (line is not None) and reply["timed_out"] is False
    if line:
        assert reply["line"] == line and reply["running"] is True
    else:
        assert "line" not in reply and reply["exit_code"] == 0
    agent.call("wait", tag="s")
    assert agent.call("wait", tag="s", **{how: what})["reached"] is (line is not None)  # it was written


def test_lines_that_are_hostile(agent):
    detach(agent, "head -c 900000 /dev/zero | tr '\\0' a; printf 'x\\0y\\377\\n'; printf 'end\\r\\n'", "s")
    agent.call("wait", tag="s")
    begin = time.monotonic()
    assert agent.call("wait", tag="s", line="(a*)*b")["reached"] is False
    assert agent.call("wait", tag="s", line="x.y")["line"].endswith(b"x y\xff")
    assert agent.call("wait", tag="s", line="^end$")["reached"] is True
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2000}", "((a{99}){99}){99}", "(a)\\1", "x{1,70}{1,70}"])
def test_refused_expressions(agent, pattern):
    detach(agent, "true", "s")
    fails(agent, "einval", "wait", tag="s", line=pattern)
    fails(agent, "einval", "wait", tag="s", line="a", port=1)


SERVE = ("import socket, sys, time\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\nprint(s.getsockname()[1], flush=True)\n"
         "time.sleep(0.3)\ns.listen()\ntime.sleep(1000)")


def test_wait_for_a_port(agent):
    agent.end(agent.begin("exec", argv=["python3", "-c", SERVE], env=ENV, detach=True, tag="s"))
    port = int(agent.call("wait", tag="s", line="^[0-9]+")["line"])
    assert agent.call("wait", tag="s", port=port, timeout_ms=20)["timed_out"] is True
    assert agent.call("wait", tag="s", port=port)["reached"] is True
    detach(agent, "sleep 0.2; exit 8", "t")
    reply = agent.call("wait", tag="t", port=1)
    assert reply["reached"] is False and reply["exit_code"] == 8


def test_no_work_while_all_waits(agent):
    detach(agent, "echo up; exec sleep 1000", "s")
    agent.begin("wait", tag="s")
    agent.begin("logs", tag="s", follow=True)
    text(agent, "exec sleep 1000")
    time.sleep(0.3)
    used = agent.cpu_ms()
    time.sleep(0.7)
    assert agent.cpu_ms() - used < 50


@pytest.mark.parametrize("text, told", [("echo abc; exit 5", (5, None, False, 4)), ("kill -9 $$", (None, 9, False, 0))])
def test_the_end_of_a_detached_one_is_told(agent, text, told):
    """Once, and by its Ref: who reads no more of it has its end on record."""
    ref = agent.begin("exec", command=text.encode(), detach=True, tag=b"t")
    agent.end(ref)
    agent.call("wait", tag=b"t")
    agent.call("ps")
    facts = [(f["event"], f["ref"], f["exit_code"], f["signal"], f["lost"], f["bytes"]) for f in agent.facts]
    assert facts == [("ended", ref, *told)], agent.facts


def test_many_that_write_much(agent):
    """What all of them are remembered by has a bound."""
    for i in range(20):
        agent.call("exec", command=b"head -c 3000000 /dev/zero; echo over; exec sleep 60", detach=True, tag=f"t{i}".encode())
    for i in range(20):
        assert agent.call("wait", tag=f"t{i}", text=b"over")["reached"]
    kept = [len(agent.call("logs", tag=f"t{i}")["data"]) for i in range(20)]
    assert min(kept[:16]) > 900 << 10 and 200 << 10 < min(kept[16:]) and max(kept[16:]) <= 256 << 10, kept


# ---- the pair that is forked ahead ---------------------------------------------------------------

def spare(agent):
    """One that waits, after a first command."""
    assert agent.end(text(agent, "true"))["exit_code"] == 0
    until(lambda: spare_of(agent))
    return spare_of(agent)


def test_a_spare_runs_the_next_command(agent, ws):
    (ws / "sub").mkdir()
    (ws / "sub").chmod(0o755)
    keeper, leader = spare(agent)
    pid = detach(agent, "echo $$ $PPID; pwd; exec sleep 1000", "x", cwd="sub")
    assert (pid, keeper_of(agent, pid)) == (leader, keeper)
    until(lambda: one(agent, "x")["bytes"] > 0)
    until(lambda: spare_of(agent) is None)  # another one is forked when this one has ended


@pytest.mark.parametrize("ahead", [True, False])
def test_the_first_is_forked_ahead_where_commands_will_come(start, ws, ahead):
    agent = start(init=False)
    agent.send("init", {"workspace": os.fsencode(ws), "profile": b"none", "ahead": ahead})
    assert agent.frame()[0] == "ready"
    if ahead:
        until(lambda: spare_of(agent))
    else:
        time.sleep(0.2)
        assert spare_of(agent) is None
    assert agent.end(text(agent, "exit 3"))["exit_code"] == 3


@pytest.mark.parametrize("which", [0, 1])
def test_a_killed_spare_is_not_missed(agent, which):
    victim = spare(agent)[which]
    os.kill(victim, signal.SIGKILL)
    until(lambda: not is_alive(victim))
    assert [agent.end(text(agent, f"exit {n}"))["exit_code"] for n in range(4)] == [0, 1, 2, 3]


def test_a_signal_that_comes_too_late(agent):
    """A keeper that ends with an order unread has still said how the command ended."""
    for n in range(300):
        ref = argv(agent, "/bin/true")
        time.sleep(n % 30 / 10000)
        for _ in range(3):
            agent.send("signal", ref, int(signal.SIGCONT))
        assert agent.end(ref)["exit_code"] == 0


@pytest.mark.parametrize("which", [0, 1])
def test_a_stopped_spare_goes_on(agent, which):
    """Where no signal scope keeps commands from it, one could leave it stopped for the next."""
    os.kill(spare(agent)[which], signal.SIGSTOP)
    assert [agent.end(text(agent, f"exit {n}"))["exit_code"] for n in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize("count, size", [(1, 40 << 10), (1, 60 << 10), (1010, 3), (1030, 3), (9, 100 << 10)])
def test_what_a_spare_is_told_is_whole(agent, count, size):
    """Small calls are told to the one that waits, larger ones fork; both run the same."""
    spare(agent)
    words = [bytes([65 + n % 26]) * size for n in range(count)]
    script = "import hashlib,sys,os; print(hashlib.sha256(repr(sys.argv[1:]).encode()).hexdigest(), os.environ['A'])"
    ref = agent.begin("exec", argv=["/usr/bin/python3", "-c", script, *words], env=ENV | {b"A": b"b" * 10})
    end = agent.end(ref)
    expected = hashlib.sha256(repr([w.decode() for w in words]).encode()).hexdigest()
    assert end["data"] == f"{expected} bbbbbbbbbb\n".encode()


def test_a_spare_has_nothing_of_another_call(agent):
    """Input of the first ends though a pair was forked while it was open."""
    first = text(agent, "cat; echo end", stdin=True)
    spare(agent)
    agent.send("data", first, Atom("stdin"), Atom("eof"))
    assert agent.end(first)["data"] == b"end\n"


def test_streams_of_a_spare_are_the_calls(agent):
    spare(agent)
    ref = text(agent, "exec 2>&1; cat; echo err >&2; ls /proc/self/fd", stdin=True)
    agent.send("data", ref, Atom("stdin"), b"in\n")
    agent.send("data", ref, Atom("stdin"), Atom("eof"))
    end = agent.end(ref)
    assert sorted(end["data"].split()) == sorted([b"in", b"err", b"0", b"1", b"2", b"3"])


def test_a_spare_gets_a_terminal(agent, ws):
    spare(agent)
    ref = text(agent, "stty size > size; test -t 2; echo $? >> size", tty=True, rows=33, cols=77)
    assert agent.end(ref)["exit_code"] == 0 and (ws / "size").read_text() == "33 77\n0\n"


def test_a_failed_step_of_a_spare_is_named(agent):
    spare(agent)
    reply = agent.end(text(agent, "true", cwd="nowhere"))
    assert (reply["error"], reply["stage"], reply["exit_code"]) == ("enoent", b"cwd", None)
    spare(agent)
    assert agent.end(argv(agent, "no-such-program"))["stage"] == b"exec"
    assert agent.end(text(agent, "exit 3"))["exit_code"] == 3


def test_spares_end_with_the_agent(agent):
    pair = spare(agent)
    agent.process.kill()
    until(lambda: not any(is_alive(pid) for pid in pair))
