"""A user without delegation on a systemd machine: his manager gives each run a scope."""
import os
import subprocess
import time

import pytest

from conftest import GROUPS, TESTER, doctor, make_box, remove_box, wait_for, write

ALL = {"memory": "cgroup", "processes": "cgroup", "cpus": "cgroup"}
SESSION = GROUPS / "user.slice" / f"user-{TESTER}.slice" / "session-1.scope"
MANAGER = GROUPS / "user.slice" / f"user-{TESTER}.slice" / f"user@{TESTER}.service"
BUS = f"/run/user/{TESTER}/bus"


def scopes():
    return [f"{folder}/{name}" for folder, names, _ in os.walk(MANAGER) for name in names
            if name.startswith("caisson-") and name.endswith(".scope")]


@pytest.fixture
def session(shared, program):
    """A box of the tester's whose programs start where a login has them: in a group of root's."""
    if open("/proc/1/comm", encoding="ascii").read().strip() != "systemd":
        pytest.skip("process 1 is not systemd")
    assert wait_for(lambda: os.path.exists(BUS), 120), "the tester's manager did not start"
    SESSION.mkdir(exist_ok=True)
    box = make_box(shared, program, TESTER)
    wrapper = box.base / "caisson-there"
    wrapper.write_text(f"#!/bin/sh\necho 0 >{SESSION}/cgroup.procs || exit 99\n"
                       f"exec setpriv --reuid={TESTER} --regid={TESTER} --clear-groups {box.caisson} \"$@\"\n")
    wrapper.chmod(0o755)
    box.caisson, box.as_owner = str(wrapper), dict
    yield box
    remove_box(box)


def means(run):
    return {name: run.result["limits"]["means"][name] for name in ALL}


def test_the_manager_gives_a_scope(session):
    run = session.run("true")
    assert run.status == 0 and means(run) == ALL, run
    assert wait_for(lambda: not scopes(), 10), scopes()


def test_the_address_of_the_environment(session):
    run = session.run("true", env={"DBUS_SESSION_BUS_ADDRESS": f"unix:path={BUS},guid=00"})
    assert means(run) == ALL, run


def test_limits_hold_there(session):
    run = session.run("/usr/bin/python3", "-c", "x = []\nwhile True: x.append(bytearray(1) * (8 << 20))", flags=["--memory", "96MiB"])
    assert (run.status, run.reason) == (137, "memory") and run.facts[0]["source"] == "cgroup", run
    run = session.run("true", policy="version: 1\nlimits_mode: hard\n")
    assert run.status == 0, run


def test_the_monitor_moves_and_nothing_else(session):
    """The scope is the run's own; the shell that started it stays in its session."""
    process = session.start("sleep", "40")
    [scope] = wait_for(scopes, 20)
    assert wait_for(lambda: os.path.exists(f"{scope}/caisson"), 20)
    where = open(f"/proc/{process.pid}/cgroup", encoding="ascii").read()
    assert scope.rsplit("/", 1)[1] in where, where
    write(f"{scope}/cgroup.kill", "1")  # an unkind end: systemd takes the scope away
    process.communicate(timeout=30)
    assert wait_for(lambda: not scopes(), 20), scopes()


def test_killed_monitor(session):
    process = session.start("sleep", "40")
    wait_for(scopes, 20)
    time.sleep(2)
    process.kill()
    process.communicate(timeout=30)
    assert wait_for(lambda: not scopes(), 20), scopes()


def test_a_manager_that_does_not_answer(session):
    """Without a bus the run starts all the same, and says what its limits are held by."""
    started = time.monotonic()
    run = session.run("true", env={"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"})
    assert run.status == 0 and "cgroup" not in means(run).values(), run
    assert time.monotonic() - started < 20
    run = session.run("true", policy="version: 1\nlimits_mode: hard\n", env={"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"})
    assert run.status == 125 and "Delegate=yes" in run.err, run


def test_doctor_says_so(session):
    assert "asks the user manager" in doctor(session), doctor(session)


def test_systemd_run_with_delegation(session):
    """The way out that the sentence names, word for word; no second scope is asked for."""
    program = session.caisson.replace("caisson-there", "plain")
    with open(program, "w", encoding="ascii") as file:
        file.write(f"#!/bin/sh\nexport XDG_RUNTIME_DIR=/run/user/{TESTER}\nexec setpriv --reuid={TESTER} --regid={TESTER} "
                   "--clear-groups systemd-run -q --user --scope -p Delegate=yes -p MemoryMax=400M \"$@\"\n")
    os.chmod(program, 0o755)
    session.give()
    done = subprocess.run([program, os.environ["CAISSON"], "run", "--result", "-", "-q", "--", "true"], env=session.env, cwd=session.ws,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, encoding="utf-8")
    assert done.stdout.count('"cgroup"') == 3, done.stdout
