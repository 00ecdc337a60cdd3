"""Whatever is killed whenever, and whatever a disk does: no unit of work is lost from the books or counted twice.

A unit is one iteration of examples/job_worker.py, which numbers its reports and reports again what was not entered. The
books are right when they hold as many units as its journal, and the words of each once. CSN_SOAK=1 makes it 200 rounds.
"""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = 200 if os.environ.get("CSN_SOAK") == "1" else 10
LINES = 20000


def prepare(jobs, lines):
    data = jobs.base / "lines.txt"
    data.write_text("".join(f"word {'more ' * (number % 7)}\n" for number in range(lines)))
    folder = jobs.root / "one"
    folder.mkdir()
    shutil.copy(TOP / "examples/job_worker.py", folder)
    return data


def children(pid):
    """All processes beneath one."""
    found, row = [], [pid]
    while row:
        parent = row.pop()
        try:
            below = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        except OSError:
            continue
        found += map(int, below)
        row += map(int, below)
    return found


def has_begun(jobs):
    path = jobs.root / "one/logs/events.jsonl"
    return path.exists() and b"\n" in path.read_bytes()


def check(jobs):
    """The books against the journal, and against themselves."""
    state, events = jobs.state("one"), jobs.events("one")
    entered = [event["payload"] for event in events if event["event"] == "WorkerEvent" and event["payload"].get("kind") == "iteration"]
    assert [payload["report"]["seq"] for payload in entered] == list(range(1, len(entered) + 1)), "each once, in order"
    assert [line["iteration"] for line in jobs.iterations("one")] == list(range(1, len(entered) + 1))
    words = sum(payload["report"]["tokens"] for payload in entered)
    assert state["cumulative"]["tokens"] == words and state["iteration"] == len(entered)
    assert state["cumulative"]["cost_usd"] == pytest.approx(0.001 * len(entered), abs=1e-9)
    return len(entered)


def test_killed_at_any_moment(jobs):
    seed = int(os.environ.get("CSN_SEED", random.randrange(1 << 30)))
    dice = random.Random(seed)
    data = prepare(jobs, LINES)
    words = jobs.started("one", data=data, worker=["python3", "/workspace/run/job_worker.py"])
    entered = 0
    for number in range(ROUNDS):
        launcher = jobs.popen(*(["resume", "one"] if has_begun(jobs) else words))
        if dice.random() < 0.7:  # else early: while it reads the chain, makes the wall, writes its first lines
            jobs.wait_for("one", lambda state: state.get("pid") == launcher.pid)
        time.sleep(dice.uniform(0, 0.4))
        victim = dice.choice([launcher.pid] * 3 + (children(launcher.pid) or [launcher.pid]))
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if victim != launcher.pid:  # what died may have been the worker's whole world, or a helper
            launcher.send_signal(signal.SIGTERM)
        launcher.wait(timeout=60)
        said = launcher.stderr.read().decode()
        assert "does not verify" not in said, (seed, number, said)
        events = jobs.root / "one/logs/events.jsonl"
        if events.exists():
            now = sum(b'"kind":"iteration"' in line for line in events.read_bytes().splitlines(keepends=True) if line.endswith(b"\n"))
            assert now >= entered, (seed, number, "what was entered is gone")
            entered = now
    journal = (jobs.root / "one/journal.jsonl")
    data.write_text("".join(data.read_text().splitlines(keepends=True)[: journal.read_bytes().count(b"\n") + 5]))
    last = jobs.cli(*(["resume", "one"] if has_begun(jobs) else words))
    assert last.returncode == 0, (seed, last.stderr)
    units = check(jobs)
    assert units == journal.read_bytes().count(b"\n") >= entered, seed
    assert jobs.state("one")["cumulative"]["tokens"] == json.loads((jobs.root / "one/answer.json").read_text())["words"]
    jobs.verify("one")
    print(f"seed {seed}: {ROUNDS} kills, {units} units")


def crashed(jobs, data, lines=4):
    """A launcher that was killed after some units; returns the bytes of its chain."""
    launcher = jobs.popen(*jobs.started("one", data=data, worker=["python3", "/workspace/run/job_worker.py"]))
    jobs.wait_for("one", lambda state: state.get("iteration", 0) >= lines)
    launcher.send_signal(signal.SIGKILL)
    launcher.wait(timeout=60)
    return (jobs.root / "one/logs/events.jsonl").read_bytes()


def test_torn_last_lines(jobs):
    """Of the chain, of the iterations and of the state: what a power cut leaves."""
    whole = crashed(jobs, prepare(jobs, 60))
    for size in (1, 40, 200):
        (jobs.root / "one/logs/events.jsonl").write_bytes(whole[:-size])
    iterations = jobs.root / "one/logs/iterations.jsonl"
    iterations.write_bytes(iterations.read_bytes()[:-30])
    (jobs.root / "one/state.json").write_bytes(b"\0" * 4096)
    assert json.loads(jobs.cli("show", "one", "--json").stdout)["status"] == "unknown"
    done = jobs.cli("resume", "one")
    assert done.returncode == 0, done.stderr
    assert check(jobs) == 60
    jobs.verify("one")


def test_a_changed_line_is_not_continued(jobs):
    whole = crashed(jobs, prepare(jobs, 60))
    (jobs.root / "one/logs/events.jsonl").write_bytes(whole.replace(b'"cost_usd":0.001', b'"cost_usd":0.002', 1))
    done = jobs.cli("resume", "one")
    assert done.returncode == 125 and "hash does not match" in done.stderr


def test_after_a_reboot(jobs):
    """The launcher's number belongs to somebody else then."""
    crashed(jobs, prepare(jobs, 60))
    state = jobs.state("one")
    state["pid"], state["pid_start"] = os.getpid(), 1
    (jobs.root / "one/state.json").write_text(json.dumps(state).ljust(4095) + "\n")
    while json.loads(jobs.cli("show", "one", "--json").stdout)["status"] == "running":
        time.sleep(0.1)  # what it left is swept
    assert json.loads(jobs.cli("show", "one", "--json").stdout)["status"] == "lost"
    assert "is not running" in jobs.cli("stop", "one").stderr
    assert jobs.cli("resume", "one").returncode == 0
    assert check(jobs) == 60
    assert jobs.state("one")["resume_history"][-1]["after"] == "running", "with no end on record"


def test_two_launchers(jobs):
    """One of them is the job's, and the other one says so."""
    data = prepare(jobs, 60)
    crashed(jobs, data)
    both = [jobs.popen("resume", "one") for _ in range(2)]
    said = [(launcher.communicate(timeout=60)[1].decode(), launcher.returncode) for launcher in both]
    codes = sorted(code for _, code in said)
    assert codes in ([0, 125], [0, 0]), said
    if codes == [0, 0]:  # one was done before the other looked
        assert jobs.state("one")["launches"] == 3
    else:
        assert any("one is still running" in text for text, _ in said), said
    assert check(jobs) == 60
    jobs.verify("one")


@pytest.fixture
def small_disk(jobs):
    """The run root on a file system of 2 MiB."""
    if os.geteuid() != 0:
        pytest.skip("root: a small file system has to be mounted")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,nr_inodes=100k,mode=755", "small", jobs.root], check=True)
    yield jobs.root
    subprocess.run(["umount", "-l", jobs.root], check=True)


def test_a_full_disk_ends_it_and_costs_nothing(jobs, small_disk):
    """Who cannot write the books down lets nobody spend; with room again it goes on where the books stand."""
    data = prepare(jobs, 400)
    launcher = jobs.popen(*jobs.started("one", data=data, worker=["python3", "/workspace/run/job_worker.py"]))
    jobs.wait_for("one", lambda state: state.get("iteration", 0) >= 5)
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    assert launcher.wait(timeout=60) == 1
    state = jobs.state("one")
    assert (state["status"], state["reason"]) == ("failed", "No space left on device")
    ballast.unlink()
    done = jobs.cli("resume", "one")
    assert done.returncode == 0, done.stderr
    assert check(jobs) == 400
    jobs.verify("one")
