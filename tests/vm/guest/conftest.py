"""What the guest's tests share: somebody in a control group of his own, and the built program."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "cli"))
from run_fixtures import Box, make_box, program, remove_box, shared, wait_for  # noqa: E402,F401

# These tests make and remove groups at the top and turn switches: never on a machine in use.
collect_ignore_glob = [] if os.environ.get("CSN_GUEST") == "1" else ["*"]
GROUPS = pathlib.Path("/sys/fs/cgroup")
TESTER = 1000
CONTROLLERS = "+memory +pids +cpu"


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def delegate(group, uid):
    """What systemd's Delegate=yes does to a group."""
    for name in (".", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
        os.chown(group / name, uid, uid)


def remove_groups(top):
    """Kills what is in a tree of groups and removes it, leaves first."""
    if not top.exists():
        return
    write(top / "cgroup.kill", "1")
    wait_for(lambda: "populated 0" in (top / "cgroup.events").read_text(), 10)
    for path in sorted(top.rglob("*"), key=lambda path: -len(path.parts)):
        if path.is_dir():
            path.rmdir()
    top.rmdir()


class Place:
    """A control group that somebody starts Caisson in. `groups` is where ours are to be made."""

    def __init__(self, box, start, groups):
        self.box, self.start, self.groups = box, start, groups
        wrapper = box.base / "caisson-there"
        become = "" if box.uid == 0 else f"setpriv --reuid={box.uid} --regid={box.uid} --clear-groups "
        # A shell in that group would have been moved to the leaf with the first run.
        wrapper.write_text(f"#!/bin/sh\n{{ echo 0 >{start}/cgroup.procs || echo 0 >{start}/caisson-main/cgroup.procs; }} "
                           f"2>/dev/null || exit 99\nexec {become}{box.caisson} \"$@\"\n")
        wrapper.chmod(0o755)
        box.caisson, box.as_owner = str(wrapper), dict

    def left(self):
        """Groups of ours that are still there."""
        found = []
        for folder, names, _ in os.walk(self.groups):  # bears folders that vanish meanwhile
            if folder.endswith("/caisson"):
                found += names
        return found

    def cmd(self):
        """The commands' group of the one run that goes on."""
        [name] = wait_for(self.left, 20)
        path = self.groups / "caisson" / name / "cmd"
        assert wait_for(path.exists, 20)
        return path


def tester_group(names=CONTROLLERS):
    group = GROUPS / "tester"
    remove_groups(group)
    write(GROUPS / "cgroup.subtree_control", CONTROLLERS)
    group.mkdir()
    if names != CONTROLLERS:
        # One level more, so that only some controllers arrive.
        write(group / "cgroup.subtree_control", names)
        group = group / "part"
        group.mkdir()
    delegate(group, TESTER)
    return group


def at_root(_box):
    return GROUPS, GROUPS


def at_leaf(box):
    """Delegated, and the caller's processes are in the group itself."""
    group = tester_group()
    delegate(group, box.uid)
    return group, group


def at_child(box):
    """Delegated, and the caller's processes are one group further down."""
    group = tester_group()
    (group / "shell").mkdir()
    delegate(group / "shell", box.uid)
    return group / "shell", group


def at_part(_box):
    """Delegated without the controller of processors."""
    group = tester_group("+memory +pids")
    return group, group


def at_nothing(_box):
    """A group of root's, as a login session has."""
    group = GROUPS / "tester"
    remove_groups(group)
    group.mkdir()
    return group, None


PLACES = {"root": (0, at_root), "leaf": (TESTER, at_leaf), "child": (TESTER, at_child), "root-leaf": (0, at_leaf),
          "part": (TESTER, at_part), "nothing": (TESTER, at_nothing)}


def make_place(name, shared, program):
    uid, layout = PLACES[name]
    box = make_box(shared, program, uid)
    return Place(box, *layout(box))


@pytest.fixture(params=["root", "leaf", "child"])
def place(request, shared, program):
    """Everywhere all controllers are to be had."""
    made = make_place(request.param, shared, program)
    yield made
    remove_box(made.box)
    for name in ("caisson", "tester"):
        remove_groups(GROUPS / name)


@pytest.fixture
def place_of(shared, program):
    """place_of("part") -> Place, for a test about one."""
    made = []

    def make(name):
        made.append(make_place(name, shared, program))
        return made[-1]

    yield make
    for one in made:
        remove_box(one.box)
    for name in ("caisson", "tester"):
        remove_groups(GROUPS / name)


def doctor(box, *argv):
    return subprocess.run([box.caisson, "doctor", *argv], env=box.env, cwd=box.ws, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, encoding="utf-8",
                          **box.as_owner()).stdout
