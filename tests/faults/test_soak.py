"""A short soak in each test run; `make soak` is the long one."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli")]

from run_fixtures import *  # noqa: E402,F403

SOAK = HERE.parents[1] / "bench" / "soak"


def soak(program, *words):
    return subprocess.run([str(SOAK), *words], env=os.environ | {"CAISSON": program, "SOAK_SETTLE_S": "1.5"}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, encoding="utf-8")


def test_a_short_soak(program):
    done = soak(program, "50")
    assert done.returncode == 0 and "nothing grew" in done.stdout, done.stdout


def test_it_sees_what_is_left(tmp_path):
    """A program that leaves a process and answers wrong."""
    fake = tmp_path / "caisson"
    fake.write_text("#!/bin/sh\nmkdir -p $XDG_STATE_HOME/caisson/runs; sleep 40 & touch $HOME/ws/$$; exit 0\n")
    fake.chmod(0o755)
    done = soak(str(fake), "12")
    assert done.returncode == 1 and "processes" in done.stdout and "placeholders" in done.stdout, done.stdout
    assert "status" in done.stdout


def test_misuse():
    assert soak("/bin/true", "many").returncode == 2
