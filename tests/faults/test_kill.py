"""Any part of a run is killed at any instant: nothing may stay but the record."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]

import killing  # noqa: E402
from run_fixtures import *  # noqa: E402,F403

ROUNDS = 3000 if os.environ.get("CSN_SOAK") == "1" else 25  # of each table
GONE_S = 1.0
WALLS = {"process": None, "landlock": LANDLOCK}
each_wall = pytest.mark.parametrize("policy", WALLS.values(), ids=WALLS)
BUSY = "sleep 51 & setsid sleep 52 & (trap '' TERM INT HUP; sleep 53) & echo up; echo x >x; sleep 54"


@pytest.fixture(scope="module", autouse=True)
def adopted():
    before = killing.scratch_folders()
    with killing.adopting():
        yield
    killing.remove_dead_scratch(before)


@pytest.fixture(scope="module")
def groups():
    made = killing.Groups()
    yield made
    made.close()


@pytest.fixture
def watched(box, groups):
    """A box, and a check that a run left nothing: watched.check(seconds)."""
    box.groups, box.tmp_before = groups, killing.scratch_folders()
    groups.forget()
    yield box
    for pid in killing.family(os.getpid()):  # what a failed test left must not fail the next one
        killing.kill(pid)
    killing.gone_within(2, killing.survivors)


def launch(box, *argv, **more):
    if box.is_root and box.groups.folders:
        more["preexec_fn"] = box.groups.enter
    return box.start(*argv, **more)


def up(box, text=BUSY, **more):
    process = launch(box, "sh", "-c", text, **more)
    assert process.stdout.readline() == b"up\n", process.communicate()
    return process


def placeholders(box):
    return [path.name for path in box.ws.iterdir() if path.name in (".git", ".envrc", ".vscode")]


def clean(box, process, within=GONE_S):
    """Nothing is left, within a second; how long it took."""
    if process:
        process.stdout.close()
        process.stderr.close()
        assert process.wait(timeout=10) is not None
    took, left = killing.gone_within(
        within, killing.survivors, lambda: killing.mounts(str(box.base)), box.groups.left if box.is_root else list,
        lambda: placeholders(box))
    assert not left, left
    return took


def notes(box):
    """Ids of runs that made, or were about to make, what must be gone afterwards."""
    folder = box.runs / ".pending"
    return [path.name for path in folder.iterdir()] if folder.exists() else []


def flags_for(policy):
    return [] if policy else ["--rw"]


def test_the_check_sees_what_is_left():
    subprocess.run(["sh", "-c", "setsid sleep 55 &"], check=True)
    assert killing.survivors()
    for pid in killing.children(os.getpid()):
        killing.kill(pid)
    assert killing.gone_within(2, killing.survivors)[1] == []


# ---- each part, while the command runs ---------------------------------------------------------

@each_wall
def test_monitor_killed(watched, policy):
    process = up(watched, policy=policy, flags=flags_for(policy))
    process.kill()
    clean(watched, process)
    listed = json.loads(watched.cli("runs", "ls", "--json").out)
    assert [run["status"] for run in listed] == ["lost"], listed
    assert watched.record().is_dir()


@each_wall
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_monitor_told_to_end(watched, policy, number):
    process = up(watched, policy=policy, flags=flags_for(policy))
    process.send_signal(number)
    assert process.wait(timeout=10) == 128 + number
    clean(watched, process)
    assert json.loads(watched.result.read_text())["termination"]["reason"] == "cancelled"


@each_wall
def test_agent_killed(watched, policy):
    process = up(watched, policy=policy, flags=flags_for(policy))
    started = time.monotonic()
    killing.kill(killing.wall_of(process.pid))
    assert process.wait(timeout=10) == 125 and time.monotonic() - started < 2
    clean(watched, process)
    result = json.loads(watched.result.read_text())
    assert result["termination"]["reason"] == "lost" and result["error"]["text"], result


@each_wall
def test_agent_stopped_meets_the_clock(watched, policy):
    process = up(watched, policy=policy, flags=[*flags_for(policy), "--timeout", "600ms"])
    killing.kill(killing.wall_of(process.pid), signal.SIGSTOP)
    assert process.wait(timeout=5) == 124
    clean(watched, process)


@each_wall
def test_leader_killed(watched, policy):
    process = up(watched, policy=policy, flags=flags_for(policy))
    killing.kill(killing.leader_of(process.pid))
    assert process.wait(timeout=10) == 137
    clean(watched, process)
    termination = json.loads(watched.result.read_text())["termination"]
    assert (termination["reason"], termination["signal"]) == ("signaled", 9)


@each_wall
def test_cleaner_killed(watched, policy):
    """The run does not need it, and takes its own things away."""
    process = up(watched, "echo up; sleep 0.3; exit 6", policy=policy, flags=flags_for(policy))
    cleaner = wait_for(lambda: killing.cleaner_of(process.pid))  # its name comes a little after it
    if not cleaner:
        pytest.skip("a cleaner: this run needs none")
    killing.kill(cleaner)
    assert process.wait(timeout=10) == 6
    clean(watched, process)


def test_killed_in_the_grace_of_a_clock(watched):
    process = up(watched, "trap '' TERM; echo up; sleep 51 & while :; do sleep 0.02; done", flags=["--rw", "--timeout", "200ms"])
    time.sleep(0.4)
    process.kill()
    clean(watched, process)


def test_killed_while_a_reader_sleeps(watched):
    process = launch(watched, "sh", "-c", "echo up; yes", flags=["--rw"])
    assert process.stdout.readline() == b"up\n"
    time.sleep(0.2)
    process.kill()
    clean(watched, process)


def test_killed_with_a_layer(watched):
    process = up(watched, flags=["--cow"])
    process.kill()
    clean(watched, process)
    assert watched.cli("runs", "ls").status == 0
    run_id = watched.record().name
    assert watched.cli("runs", "rm", run_id).status == 0 and not (watched.runs / run_id).exists()


def test_killed_in_a_storm_of_forks(watched):
    """The tree makes new processes all the time; its limit is the sandbox's own."""
    storm = "echo up; f() { f & f & wait; }; f 2>/dev/null"
    process = launch(watched, "bash", "-c", storm, flags=["--rw", "-l", "processes=40", "--timeout", "20s"])
    assert process.stdout.readline() == b"up\n"
    time.sleep(0.2)
    process.kill()
    clean(watched, process)


def test_monitor_and_cleaner_killed(watched):
    """Then only the kernel is left to end the sandbox; the groups go with a later start."""
    process = up(watched, policy="version: 1\n")
    cleaner = wait_for(lambda: killing.cleaner_of(process.pid))  # its name comes a little after it
    for pid in filter(None, (process.pid, cleaner)):
        killing.kill(pid, signal.SIGSTOP)
    for pid in filter(None, (cleaner, process.pid)):
        killing.kill(pid)
    process.communicate()
    took, left = killing.gone_within(GONE_S, killing.survivors)
    assert not left, left
    if not watched.is_root or not watched.groups.folders:
        return
    assert watched.groups.left(), "the groups cannot be gone: nobody was there to remove them"
    launch(watched, "true").communicate()
    assert watched.groups.left(), "a young group may be a sandbox that is just being made"
    time.sleep(10.2)
    launch(watched, "true").communicate()
    assert watched.groups.left() == []


# ---- at each call of the kernel ------------------------------------------------------------------

@pytest.fixture(scope="module")
def kill_at(tmp_path_factory):
    with tempfile.TemporaryDirectory(prefix="csn-kill-at-") as folder:
        os.chmod(folder, 0o755)
        tool = pathlib.Path(folder) / "kill_at"
        subprocess.run(["cc", "-O1", "-Wall", "-o", tool, HERE / "kill_at.c"], check=True)
        yield str(tool)


def traced(box, tool, where, flags, **more):
    """A run that is killed at `where`; the number of stops that it made."""
    box.give()
    if box.is_root and box.groups.folders:
        more["preexec_fn"] = box.groups.enter
    # `sleep` ends by itself a little after the last stop that a short run makes.
    with tempfile.TemporaryFile() as out:  # a pipe would wait for what a defect leaves behind
        subprocess.run([tool, str(where), box.caisson, "run", *flags, "--", "sleep", "0.02"], cwd=box.ws, env=box.env,
                       stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL, timeout=20, **box.as_owner(), **more)
        out.seek(0)
        return int(out.read().split()[-1])


MANY = ROUNDS > 100


def stops(box, tool, flags):
    """Where to kill: some of a run's whole life, and more of where it makes what must be gone afterwards."""
    total, first, second = (traced(box, tool, where, flags) for where in (0, "fork", "forked2"))
    spread = range(1, total, max(1, total // (1000 if MANY else 12)))
    making = range(first, second + 2, max(1, (second - first) // (1000 if MANY else 20)))
    clean(box, None, 3.0)
    return sorted({*spread, *making})


@each_wall
def test_killed_at_each_stop(watched, kill_at, policy):
    """At any instant, also before and while what must be gone is made."""
    flags = [*flags_for(policy), *(watched.policy(policy) if policy else [])]
    before = killing.scratch_folders()
    for where in stops(watched, kill_at, flags):
        traced(watched, kill_at, where, flags)
        try:
            clean(watched, None, 3.0)
        except AssertionError as error:
            raise AssertionError(f"at stop {where}: {error}") from None
    time.sleep(0.6)  # dead_scratch() looks at folders of that age
    assert killing.dead_scratch(before) == []
    assert notes(watched) == []


@each_wall
def test_killed_before_the_cleaner(watched, kill_at, policy):
    """Whatever it would remove is made after it."""
    flags = [*flags_for(policy), *(watched.policy(policy) if policy else [])]
    traced(watched, kill_at, "fork", flags)
    assert placeholders(watched) == [] and watched.groups.left() == []
    time.sleep(0.6)
    assert killing.dead_scratch(watched.tmp_before) == []


def next_run(box, flags):
    """Whatever it is for, it removes what a lost run left."""
    process = launch(box, "true", flags=flags)
    process.communicate(timeout=20)
    assert process.returncode == 0


@each_wall
def test_cleaner_and_monitor_killed_at_each_stop(watched, kill_at, policy):
    """Nobody is left to remove anything but the next start; the kernel ends what runs."""
    flags = [*flags_for(policy), *(watched.policy(policy) if policy else [])]
    left = 0
    for where in stops(watched, kill_at, flags):
        traced(watched, kill_at, f"both:{where}", flags)
        try:
            assert killing.gone_within(3, killing.survivors)[1] == []
            scratch = [f"caisson-{name}" for name in notes(watched)]
            left += bool(placeholders(watched)) + any(os.path.lexists(f"/tmp/{name}") for name in scratch)
            next_run(watched, flags)
            assert placeholders(watched) == [] and notes(watched) == []
            assert [name for name in scratch if os.path.lexists(f"/tmp/{name}")] == []
            assert killing.mounts(str(watched.base)) == []
        except AssertionError as error:
            raise AssertionError(f"at stop {where}: {error}") from None
    assert left, "no kill left anything: the test does not test"
    if watched.groups.left():
        time.sleep(10.2)  # a younger group may be a sandbox that is just being made
        next_run(watched, flags)
        assert watched.groups.left() == []


def test_killed_as_the_helper_begins(root_box, groups, kill_at):
    """Its copy of the cleaner's pipe keeps the cleaner waiting too: then nothing is ever removed."""
    root_box.groups, left = groups, []
    for _ in range(10):
        traced(root_box, kill_at, "forked2", ["--rw"])
        left += killing.gone_within(1, killing.survivors)[1]
        for pid in killing.family(os.getpid()):
            killing.kill(pid)
        killing.gone_within(1, killing.survivors)
        for path in placeholders(root_box):
            shutil.rmtree(root_box.ws / path)
    assert not left, left


# ---- random instants --------------------------------------------------------------------------

def finished(box, process):
    """A part was killed: the monitor itself must come to an end, and soon."""
    try:
        process.wait(timeout=8)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"the monitor hangs; beneath it {[(p, killing.name_of(p)) for p in killing.family(process.pid)]}")


def rounds(box, victims, policy, seed):
    rng, slow = random.Random(seed), []
    for number in range(ROUNDS):
        part, sig = rng.choice(victims)
        process = launch(box, "sh", "-c", BUSY, policy=policy, flags=[*flags_for(policy), "--timeout", "3s"])
        time.sleep(rng.choice((0.001, 0.004, 0.012, 0.04)) * rng.random() * 2)
        victim = part(process.pid) if part else process.pid
        if victim:
            killing.kill(victim, sig)
        if not victim or part is killing.cleaner_of:
            process.send_signal(signal.SIGTERM)
        finished(box, process)
        try:
            slow.append(clean(box, process, 3.0))
        except AssertionError as error:
            raise AssertionError(f"round {number} of seed {seed}: {part} {sig!r}: {error}") from None
    assert sorted(slow)[len(slow) * 9 // 10] < GONE_S, sorted(slow)[-10:]


@each_wall
def test_random_kills_of_the_monitor(watched, policy):
    seed = random.randrange(1 << 32)
    rounds(watched, [(None, signal.SIGKILL)] * 3 + [(None, signal.SIGTERM), (None, signal.SIGINT)], policy, seed)
    listed = json.loads(watched.cli("runs", "ls", "--json").out)
    recorded = [path.name for path in watched.runs.iterdir() if path.is_dir() and path.name[0] != "."]
    assert sorted(run["run_id"] for run in listed) == sorted(recorded)
    assert {run["status"] for run in listed} <= {"lost", "finished"}, listed


def test_random_kills_of_the_parts(watched):
    parts = [killing.wall_of, killing.leader_of, killing.cleaner_of]
    rounds(watched, [(part, signal.SIGKILL) for part in parts], None, random.randrange(1 << 32))
