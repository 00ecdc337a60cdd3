"""The monitor against an agent that lies: it ends the sandbox with a reason, and survives."""
import os
import pathlib
import shutil
import subprocess

import pytest

from run_fixtures import *

HERE = pathlib.Path(__file__).resolve().parent
ENDS = ["garbage", "close_at_once", "crash", "half_frame_closed", "oversized", "too_long", "empty_frames", "twice_ready",
        "reply_first", "other_ref", "data_first", "big_piece", "other_stream", "our_message", "unknown",
        "bad_exit", "wrong_version", "deep", "wide", "long_list", "compressed"]
WAITS = ["overrun", "silent", "half_frame", "deaf_after_ready", "facts", "windows", "bye", "closed_stream"]  # a clock or a limit ends these
SHORT = "version: 1\nlimits: {startup: 700ms, command: 700ms}\n"
LANDLOCK_SHORT = LANDLOCK + "limits: {startup: 700ms, command: 700ms}\n"


@pytest.fixture(scope="module")
def agents(tmp_path_factory, shared):
    folder = shared / "hostile"
    folder.mkdir()
    for kind in [*ENDS, *WAITS, "forged", "two_replies", "gate_twice"]:
        subprocess.run(["cc", "-static", "-O1", "-w", f"-DKIND={kind}", "-o", folder / kind, HERE / "hostile_agent.c"],
                       check=True)
    return folder


@pytest.fixture
def meet(request, box, program, agents):
    """meet(kind) -> the Run of a copied caisson beside that agent."""

    def run(kind, policy=SHORT):
        place = box.base / "bin"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        shutil.copy(program, place / "caisson")
        shutil.copy(agents / kind, place / "caisson-agent")
        for path in (place, place / "caisson", place / "caisson-agent"):
            path.chmod(0o755)
        box.caisson = str(place / "caisson")
        return box.run("cat", policy=policy, timeout=15)

    return run


def survived(box, run):
    assert run.status in (124, 125, 137) and run.result, run
    assert run.seconds < 3, run
    assert run.reason in ("lost", "start_failed", "timeout", "output"), run
    assert not leftovers(box), leftovers(box)
    record = box.record()
    assert box.cli("runs", "verify", record.name).status == 0


def leftovers(box):
    """Processes that execute the copied agent."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/exe"):
        try:
            if os.readlink(path).startswith(str(box.base)):
                found.append(str(path))
        except OSError:
            pass
    return found


@pytest.mark.parametrize("kind", ENDS)
def test_ends_as_lost_with_a_reason(box, meet, kind):
    run = meet(kind)
    survived(box, run)
    assert (run.status, run.reason) == (125, run.reason) and run.reason in ("lost", "start_failed"), run
    assert run.result["error"]["text"] and "caisson: " in run.err, run
    assert run.seconds < 2, run


@pytest.mark.parametrize("kind", WAITS)
def test_ends_by_the_clock(box, meet, kind):
    run = meet(kind)
    survived(box, run)
    assert run.seconds < 2.5, run


@pytest.mark.parametrize("kind", ["garbage", "silent", "overrun", "crash", "closed_stream"])
def test_behind_landlock(box, meet, kind):
    run = meet(kind, LANDLOCK_SHORT)
    survived(box, run)


def test_a_lie_in_turn_is_only_a_lie(box, meet):
    """An agent inside can forge output and status (so can the command); nothing else."""
    run = meet("forged")
    assert run.status in (0, 124, 125) and run.seconds < 3, run
    assert not leftovers(box)


def test_an_answer_too_many(box, meet):
    run = meet("two_replies")
    assert run.status in (0, 124, 125) and run.seconds < 3, run


def test_a_gate_is_called_once_by_a_number(box, meet):
    """Else one number would hold any number of programs on the host."""
    run = meet("gate_twice", "version: 1\nlimits: {startup: 5s, command: 5s}\ngates: [{name: slow, command: [/bin/sleep, '47']}]\n")
    assert run.status == 125 and run.reason in ("lost", "start_failed") and "twice" in run.err, run
    assert run.seconds < 4 and not leftovers(box), run


def test_no_agent(box, program):
    place = box.base / "bin"
    place.mkdir()
    shutil.copy(program, place / "caisson")
    box.caisson = str(place / "caisson")
    run = box.run("true")
    assert run.status == 125 and "caisson-agent is missing" in run.err, run


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\nexec sleep 60\n", b"\x7fELF" + bytes(100)], ids=["empty", "script", "half"])
def test_an_agent_that_cannot_be_executed(box, program, content):
    place = box.base / "bin"
    place.mkdir()
    shutil.copy(program, place / "caisson")
    (place / "caisson-agent").write_bytes(content)
    (place / "caisson-agent").chmod(0o755)
    box.caisson = str(place / "caisson")
    run = box.run("true", policy=SHORT)
    assert run.status == 125 and run.err.startswith("caisson: ") and run.seconds < 2, run
