"""The same call gives the same answer behind every wall: one table of calls over all of them."""
import os

import pytest
from calls import CALLS, Teller, sh
from run_fixtures import *  # noqa: F403
from run_fixtures import make_box, remove_box
from test_stay import Stay

LIMITS = "limits: {command: 10s, output: 1MiB, open_files: 512, startup: 20s}\nenv: {set: {MARK: mark}}\n"
# name -> a policy; whoever runs it has a workspace that everybody may write, and it begins empty
WALLS = {
    "process": "tier: balanced\nbackend: process\nworkspace: {mode: rw}\n",
    "landlock": "tier: auto\nbackend: landlock\nworkspace: {mode: rw}\n",
    "local": "tier: local\nworkspace: {mode: rw}\n",
}
# What a wall makes different because of what it is: docs/decisions/walls.md. Rows of (call, wall -> what it says).
MADE_BY_WALL = [
    (sh("mkfifo made 2>/dev/null"), {"process": 1, "landlock": 1, "local": 0}),
    (sh("case $PWD in /workspace) ;; *) exit 7 ;; esac"), {"process": 0, "landlock": 7, "local": 7}),
    (sh("test -e /etc/machine-id -o -e /etc/fstab -o -e /etc/debian_version"), {"process": 1, "landlock": 0, "local": 0}),
    (sh("test $(id -u) = 1000"), {"process": 0, "landlock": 1, "local": 1}),
    (sh("kill -0 %d 2>/dev/null" % os.getpid()), {"process": 1, "landlock": 1, "local": None}),
]


def tell(box, policy, calls):
    """Each call's answer behind this wall."""
    path = box.base / "policy.yaml"
    path.write_text("version: 1\n" + policy + LIMITS)
    box.ws.chmod(0o777)
    os.mkfifo(box.ws / "fifo")
    stay = Stay(box).started("--policy", str(path))
    teller = Teller(stay.client(), [box.ws, b"/workspace"], [(bytes(box.base), b"BASE")])
    answers = [teller.answer(call) for call in calls]
    stay.down()
    return answers


def differences(walls):
    """One paragraph a call whose answers are not all the first wall's."""
    first, *others = walls
    found = []
    for number, call in enumerate(CALLS):
        told = {name: walls[name][number] for name in walls}
        if any(told[name] != told[first] for name in others):
            found.append(f"{number} {call!r}\n" + "".join(f"    {name}: {answer!r:.600}\n" for name, answer in told.items()))
    return found


def test_the_table_is_long_enough():
    assert len(CALLS) >= 150 and {call.verb for call in CALLS} >= {
        "read", "write", "edit", "stat", "list", "remove", "move", "glob", "grep", "exec", "ps", "logs", "wait", "kill"}


@pytest.fixture
def someones(box, shared):
    """someones() -> a new box of the same owner's."""
    made = []

    def make():
        made.append(make_box(shared, box.caisson, box.uid))
        return made[-1]

    yield make
    for other in made:
        remove_box(other)


def test_every_wall_gives_the_same_answers(someones):
    walls = {name: tell(someones(), policy, CALLS) for name, policy in WALLS.items()}
    found = differences(walls)
    assert not found, f"{len(found)} of {len(CALLS)} calls\n" + "\n".join(found)


def test_what_a_wall_makes_different(someones):
    for name, policy in WALLS.items():
        told = [answer[1][0]["exit_code"] for answer in tell(someones(), policy, [call for call, _ in MADE_BY_WALL])]
        expected = [walls[name] for _, walls in MADE_BY_WALL]
        assert [status if want is not None else None for status, want in zip(told, expected)] == expected, name
