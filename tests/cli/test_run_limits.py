"""Each limit as a program meets it, by whatever means this machine and this user have."""
import json
import os
import re
import time

import pytest

from run_fixtures import *

EAT = "x = []\nwhile True: x.append(bytearray(1) * (8 << 20))"


def means(run, name):
    return run.result["limits"]["means"][name]


def test_memory(box):
    run = box.run(PYTHON, "-c", EAT, flags=["--memory", "128MiB"])
    if means(run, "memory") == "cgroup":
        assert (run.status, run.reason) == (137, "memory"), run
    else:  # a data limit: Python's own MemoryError, or the sample that saw it
        assert run.status in (1, 137) and run.reason in ("memory", "exited"), run
    assert run.seconds < 10, run


def test_memory_of_a_tree(box):
    """Four processes that are each below the limit: together they are not."""
    run = box.python("""
        import os, time
        for _ in range(4):
            if os.fork() == 0:
                keep = bytearray(b'x') * (60 << 20)
                time.sleep(20)
                os._exit(0)
        time.sleep(3)
        print("survived")
    """, flags=["--memory", "128MiB"])
    assert (run.status, run.reason) == (137, "memory") and b"survived" not in run.out, run
    assert run.events == {"MemoryLimitViolation"} and run.seconds < 8, run
    [fact] = run.facts
    assert fact["certain"] == (means(run, "memory") == "cgroup") and "128" in str(fact["detail"]), fact


def test_memory_of_a_helper_ends_the_run_as_memory(box):
    """A compiler killed by the OOM killer must not read as `exited 2`."""
    run = box.sh(f"{PYTHON} -c '{EAT}'; echo status $?; exit 2", flags=["--memory", "96MiB"])
    if means(run, "memory") == "cgroup":
        assert (run.status, run.reason) == (137, "memory"), run
    else:
        assert run.status in (2, 137), run


def test_memory_in_shared_memory_counts(root_box):
    run = root_box.sh("head -c 300M /dev/zero >/dev/shm/x; echo survived", flags=["--memory", "96MiB"])
    assert run.status in (0, 137), run
    assert run.status == 137 and run.reason == "memory" or run.result["usage"]["mem_peak_bytes"] <= 96 << 20, run


def test_peak_is_reported(box):
    run = box.run(PYTHON, "-c", "x = bytearray(b'x') * (50 << 20)")
    assert 50 << 20 < run.result["usage"]["mem_peak_bytes"] < 300 << 20, run.result["usage"]


def test_processes(box):
    run = box.python("""
        import os, time
        made = 0
        for _ in range(100):
            try:
                pid = os.fork()
            except OSError:
                break
            if pid == 0:
                time.sleep(5)
                os._exit(0)
            made += 1
        print(made)
    """, flags=["-l", "processes=20"])
    assert run.status == 0 and 10 <= int(run.text) <= 22, run
    if means(run, "processes") == "cgroup":
        assert run.events == {"ProcessLimitViolation"}, run


def test_a_fork_bomb_ends(box):
    started = time.monotonic()
    run = box.run("bash", "-c", "f() { f | f & }; f; sleep 30", flags=["-l", "processes=30", "--timeout", "1s"])
    assert run.status in (0, 124, 1, 254) and time.monotonic() - started < 8, run


def test_threads_are_processes(box):
    run = box.python("""
        import threading, time
        made = 0
        try:
            for _ in range(100):
                threading.Thread(target=time.sleep, args=(2,), daemon=True).start()
                made += 1
        except RuntimeError:
            pass
        print(made, flush=True)
        import os; os._exit(0)
    """, flags=["-l", "processes=20"])
    assert 5 <= int(run.text) <= 21, run


def test_processes_under_kill(root_box):
    policy = "version: 1\nlimits: {processes: 12}\non_violation: kill\n"
    run = root_box.python("import os, time\nfor _ in range(40):\n    try:\n        if os.fork() == 0: time.sleep(20); os._exit(0)\n"
                          "    except OSError: pass\ntime.sleep(2)", policy=policy)
    assert (run.status, run.reason) == (137, "processes") and run.events == {"ProcessLimitViolation"}, run


def test_scratch_under_kill(box):
    policy = "version: 1\nscratch: {size: 4MiB}\non_violation: kill\n"
    run = box.sh("head -c 8000000 /dev/zero >/tmp/x; sleep 2; echo survived", policy=policy)
    assert (run.status, run.reason) == (137, "scratch") and run.events == {"ScratchLimitViolation"}, run


def test_cpu_quota(root_box):
    """Two busy processes on half a processor."""
    run = root_box.sh(f"for i in 1 2; do {PYTHON} -c 'import time\ne = time.time() + 1\nwhile time.time() < e: pass' & done; wait",
                      flags=["--cpus", "0.5"])
    assert run.status == 0, run
    if means(run, "cpus") == "cgroup":
        usage = run.result["usage"]
        assert usage["cpu_ms"] < 0.7 * usage["wall_ms"], usage


@pytest.mark.parametrize("how", ["fifo", "round robin, reset", "nice", "idle"])
@pytest.mark.parametrize("wall", ["process", "landlock"])
def test_a_callers_priority_is_not_lent(root_box, how, wall):
    """A loop in a real-time class would be all that runs on this machine."""
    def taken():
        if how == "nice":
            os.setpriority(os.PRIO_PROCESS, 0, -7)
        elif how == "idle":
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        else:
            reset = os.SCHED_RESET_ON_FORK if "reset" in how else 0
            os.sched_setscheduler(0, (os.SCHED_FIFO if how == "fifo" else os.SCHED_RR) | reset, os.sched_param(5))
    policy = None if wall == "process" else f"version: 1\ntier: auto\nbackend: landlock\nworkspace: {{path: {root_box.ws}, at: host}}\n"
    run = root_box.python("import os; print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))", policy=policy, preexec_fn=taken)
    # "Reset on fork" takes every nice value along (sched(7)).
    usual = 0 if how in ("nice", "round robin, reset") else max(0, os.getpriority(os.PRIO_PROCESS, 0))
    assert (run.status, run.text) == (0, f"{os.SCHED_IDLE if how == 'idle' else os.SCHED_OTHER} {usual}\n"), run


def test_scratch(box):
    run = box.sh("head -c 40000000 /dev/zero >/tmp/x; s=$?; stat -c %s /tmp/x; exit $s", flags=["-l", "scratch=16MiB"])
    assert run.status == 1 and "No space left" in run.err, run
    assert int(run.text) <= 16 << 20 and run.events == {"ScratchLimitViolation"}, run


def test_scratch_in_small_files(box):
    run = box.sh("i=0; while echo x >/tmp/$i 2>/dev/null; do i=$((i+1)); [ $i -lt 60000 ] || break; done; echo $i",
                 flags=["-l", "scratch=2MiB"], timeout=40)
    assert run.status == 0 and int(run.text) < 60000, run


def test_open_files(box):
    run = box.sh("ulimit -Hn; ulimit -Sn; ulimit -n 5000 2>/dev/null && echo raised; true", flags=["-l", "open_files=200"])
    assert run.text.split() == ["200", "200"], run


@pytest.mark.parametrize("count", [16, 64])
def test_few_open_files(box, count):
    run = box.sh("ulimit -n", flags=["-l", f"open_files={count}"])
    assert (run.status, run.text) == (0, f"{count}\n"), run


def test_no_core_file(box):
    run = box.sh("ulimit -c unlimited 2>/dev/null; kill -SEGV $$", flags=["--rw"])
    assert run.status == 139 and not list(box.ws.glob("core*")), run


@pytest.mark.parametrize("limit", ["memory=8GiB", "processes=100000", "command=2h", "output=1GiB", "scratch=8GiB",
                                   "open_files=100000", "cpus=64", "memory=none", "budget=none"])
def test_flags_only_tighten(user_box, limit):
    run = user_box.run("true", flags=["-l", limit])
    name, value = limit.split("=")
    assert run.status == 125 and "limits" in run.err + "limits" and (name in run.err), run
    assert re.search(r"(limits|scratch): ?\{|overrides", run.err), "it prints the lines that would permit it"


def test_a_policy_file_loosens_and_it_is_recorded(box):
    run = box.run("true", policy="version: 1\nlimits: {memory: 3GiB, command: 10m}\n")
    assert run.status == 0 and run.result["limits"]["mem_bytes"] == 3 << 30, run
    assert "PolicyOverride" in {v["event"] for v in run.result["violations"]} | set(
        json.loads(line)["event"] for line in (box.record() / "logs" / "events.jsonl").read_text().splitlines()), run


def test_unlimited(box):
    policy = "version: 1\nlimits: {command: none, budget: none, memory: none, processes: none, output: none, cpus: none}\n"
    run = box.run("echo", "ran", policy=policy)
    assert run.status == 0 and run.out == b"ran\n", run
    assert run.result["limits"]["mem_bytes"] is None and run.result["limits"]["command_ms"] is None


def test_hard_limits_without_controllers(user_box):
    """Without delegation a user's limits are sampled: `hard` refuses and says which."""
    soft = user_box.run("true")
    if means(soft, "memory") == "cgroup":
        pytest.skip("a user without delegated groups")
    run = user_box.run("true", policy="version: 1\nlimits_mode: hard\n")
    assert run.status == 125 and "hard" in run.err and "memory" in run.err and "limits_mode: best" in run.err, run


def test_hard_limits_with_controllers(root_box):
    run = root_box.run("true", policy="version: 1\nlimits_mode: hard\n")
    assert run.status == 0 and set(run.result["limits"]["means"].values()) >= {"cgroup"}, run


def test_the_account_is_honest(user_box):
    """What is only sampled is not listed as enforced."""
    run = user_box.run("true")
    assert ("memory" in run.result["enforced"]) == (means(run, "memory") == "cgroup"), run.result


def test_a_sentence_for_whoever_met_a_limit(box):
    run = box.run("sleep", "9", flags=["--timeout", "200ms"])
    why = box.cli("why")
    assert why.status == 0 and "TimeoutViolation" in why.text and "limits" in why.text, why
    assert run.facts[0]["say"].endswith("."), run.facts


def test_memory_is_said_with_its_limit(root_box):
    root_box.run(PYTHON, "-c", EAT, flags=["--memory", "96MiB"])
    why = root_box.cli("why")
    assert "96" in why.text and "memory" in why.text and os.linesep in why.text, why


UNSEEN = """
import ctypes, time
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
time.sleep(1.5)
"""


@pytest.mark.parametrize("policy, is_seen", [("version: 1\n", True), (LANDLOCK, False)])
def test_a_process_that_hides_is_said(user_box, policy, is_seen):
    """PR_SET_DUMPABLE 0 shuts the monitor out where it owns no user namespace around the process."""
    held = os.memfd_create("held")  # so much is in memory that each look goes through descriptors
    try:
        for _ in range(100):
            os.write(held, b"x" * (1 << 20))
        run = user_box.python(UNSEEN, policy=policy, flags=["--memory", "96MiB"])
    finally:
        os.close(held)
    if means(run, "memory") == "cgroup":
        pytest.skip("sampling: this user has a memory controller")
    why = run.result["not_observed_why"].get("MemoryLimitViolation", "")
    assert run.status == 0 and run.facts == [] and ("refused" in why) is not is_seen, run
