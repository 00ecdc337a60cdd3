"""What a run leaves on the host while it lasts, who shares it, and what is never taken for it."""
import os
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]

import killing  # noqa: E402
from run_fixtures import *  # noqa: E402,F403

NAMES = (".git", ".envrc", ".vscode")
UP = "echo up; sleep 54"


@pytest.fixture(scope="module", autouse=True)
def adopted():
    with killing.adopting():
        yield


def up(box, text=UP, **more):
    process = box.start("sh", "-c", text, **more)
    assert process.stdout.readline() == b"up\n", process.communicate()
    return process


def names(box):
    return sorted(path.name for path in box.ws.iterdir() if path.name in NAMES)


def kill_with_cleaner(process):
    """First both stand still, so that neither sees the other one die."""
    cleaner = wait_for(lambda: killing.cleaner_of(process.pid))  # its name comes a little after it
    assert cleaner
    both = [cleaner, process.pid]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in both:
            killing.kill(pid, number)
    process.communicate()
    assert killing.gone_within(2, killing.survivors)[1] == []


def end(process):
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)


# ---- who needs a cleaner ------------------------------------------------------------------------

def skip_with_groups(box):
    if "cgroup" in json.loads(box.result.read_text())["limits"]["means"].values():
        pytest.skip("no control groups: this user has some")


def test_a_plain_run_pays_nothing(user_box):
    """Nothing to remove: no second process, no note."""
    process = up(user_box)
    children = killing.children(process.pid)
    pending = (user_box.runs / ".pending").exists()
    end(process)
    skip_with_groups(user_box)
    assert len(children) == 1 and not pending  # the wall


def test_existing_names_need_none(user_box):
    for name in (".git/hooks", ".vscode"):
        (user_box.ws / name).mkdir(parents=True)
    user_box.file(".git/config", "")
    user_box.file(".envrc", "")
    process = up(user_box, flags=["--rw"])
    children = killing.children(process.pid)
    end(process)
    skip_with_groups(user_box)
    assert len(children) == 1


# ---- two runs in one workspace --------------------------------------------------------------------

def test_two_runs_share(box):
    """The end of one must not open the names to the program of the other."""
    first = up(box, flags=["--rw"])
    second = box.start("sh", "-c", "echo up; read x; echo evil >.envrc; mkdir -p .git/hooks; "
                       "rmdir .vscode; mv .git away; ls -A", flags=["--rw"], stdin=subprocess.PIPE)
    assert second.stdout.readline() == b"up\n"
    end(first)
    assert names(box) == sorted(NAMES)
    out, _ = second.communicate(b"go\n", timeout=10)
    assert names(box) == [] and not (box.ws / "away").exists(), out
    assert set(out.decode().split()) >= set(NAMES)


def test_the_last_of_many(box):
    processes = [up(box, flags=["--rw"]) for _ in range(3)]
    processes[1].kill()  # its cleaner leaves them too
    killing.gone_within(3, lambda: killing.cleaner_of(processes[1].pid))
    time.sleep(1.5)
    assert names(box) == sorted(NAMES)
    end(processes[0])
    assert names(box) == sorted(NAMES)
    end(processes[2])
    assert names(box) == []
    processes[1].communicate()


def test_many_at_once(box):
    """They come and go, some are killed: nothing stays, nobody fails."""
    running = []
    for number in range(24):
        running.append((number, box.start("sh", "-c", f"sleep 0.0{number % 7}; ! echo x >.envrc", flags=["--rw"], result=False)))
        if number % 3 == 0:
            time.sleep(0.05)
            running[-1][1].kill()
    for number, process in running:
        _, err = process.communicate(timeout=20)
        assert number % 3 == 0 or process.returncode == 0, err
    assert killing.gone_within(3, lambda: names(box), killing.survivors)[1] == []


# ---- after both were killed -----------------------------------------------------------------------

def test_gc_removes_what_is_left(box):
    process = up(box, flags=["--rw"])
    kill_with_cleaner(process)
    assert names(box) == sorted(NAMES)
    assert box.cli("runs", "gc").status == 0
    assert names(box) == [] and not (box.runs / ".pending").exists()


def test_any_next_start_removes_it(box):
    """In another workspace, which it only reads."""
    process = up(box, flags=["--rw"])
    kill_with_cleaner(process)
    other = box.home / "other"
    other.mkdir()
    assert box.run("true", cwd=other).status == 0
    assert names(box) == []


def test_without_a_record_the_next_one_there_does(box):
    process = up(box, flags=["--rw", "--no-record"])
    kill_with_cleaner(process)
    assert names(box) == sorted(NAMES)
    assert box.run("sh", "-c", "! echo evil >.envrc", flags=["--rw"]).status == 0
    assert names(box) == []


def test_scratch_without_a_record(box):
    """The next start of that wall looks through /tmp; somebody else's start there may be quicker."""
    process = up(box, "echo up; echo $TMPDIR; chmod 0 $HOME $TMPDIR; sleep 54", policy=LANDLOCK, flags=["--no-record"])
    folder = next(part for part in process.stdout.readline().decode().strip().split("/") if part.startswith("caisson-"))
    assert folder in killing.scratch_folders()
    kill_with_cleaner(process)
    try:
        assert box.run("true", policy=LANDLOCK).status == 0
        assert folder not in killing.scratch_folders()
    finally:
        shutil.rmtree(f"/tmp/{folder}", ignore_errors=True)


def test_living_runs_are_spared(box):
    process = up(box, "echo up; read x; ls -A; ! echo evil >.envrc", flags=["--rw"], stdin=subprocess.PIPE)
    assert box.cli("runs", "gc").status == 0 and box.run("true").status == 0
    assert names(box) == sorted(NAMES)
    process.communicate(b"go\n", timeout=10)
    assert process.returncode == 0 and names(box) == []


# ---- what is the user's own -----------------------------------------------------------------------

def test_own_empty_folders_stay(box):
    for name in NAMES:
        (box.ws / name).mkdir()
    process = up(box, flags=["--rw"])
    kill_with_cleaner(process)
    assert box.run("true", flags=["--rw"]).status == 0 and box.cli("runs", "gc").status == 0
    assert names(box) == sorted(NAMES)


def replace(box):
    """The user makes his own, while it runs or afterwards."""
    (box.ws / ".envrc").rmdir()
    box.file(".envrc", "export X=1\n")
    (box.ws / ".vscode").rmdir()
    (box.ws / ".vscode").mkdir()
    (box.ws / ".git").chmod(0o755)
    box.file(".git/config", "[core]\n")
    box.give()


def kept(box):
    return (box.ws / ".envrc").read_text() and (box.ws / ".vscode").is_dir() and (box.ws / ".git/config").read_text()


def test_made_meanwhile_stays(box):
    process = up(box, flags=["--rw"])
    replace(box)
    end(process)
    assert kept(box)


def test_made_meanwhile_stays_after_a_kill(box):
    process = up(box, flags=["--rw"])
    replace(box)
    process.kill()
    process.communicate()
    assert killing.gone_within(3, killing.survivors)[1] == []
    assert kept(box)


def test_made_afterwards_stays(box):
    process = up(box, flags=["--rw"])
    kill_with_cleaner(process)
    replace(box)
    assert box.cli("runs", "gc").status == 0 and box.run("true", flags=["--rw"]).status == 0
    assert kept(box) and not (box.runs / ".pending").exists()


# ---- the last instants ------------------------------------------------------------------------------

def test_not_before_the_last_process_ended(box):
    """A program that waits for its chance: the names stay until it is dead."""
    text = "echo up; while :; do echo evil >.envrc; mkdir .git/hooks; done 2>/dev/null"
    for _ in range(12):
        process = box.start("sh", "-c", f"for i in 1 2 3 4 5 6; do ({text}) & done; wait", flags=["--rw", "--timeout", "9s"])
        assert process.stdout.readline() == b"up\n"
        process.kill()
        process.communicate()
        assert killing.gone_within(3, killing.survivors)[1] == []
        assert names(box) == []
