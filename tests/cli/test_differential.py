"""The same call gives the same answer behind every wall: one table of calls over all of them."""
import os
import pathlib
import shutil

import pytest
from calls import CALLS, PLAIN, Call, Teller, read, sh
from run_fixtures import *  # noqa: F403
from run_fixtures import TOP, make_box, remove_box
from test_stay import Stay

LIMITS = "limits: {command: 10s, output: 1MiB, open_files: 512, startup: 20s}\nenv: {set: {MARK: mark}}\n"
SEALED = "fs-write, syscalls, privilege, identity, net-none"
COMMAND = "tier: auto\nbackend: command\nworkspace: {mode: rw, at: host}\n"
# As ssh does: a program at the other end of two pipes, whose command line a shell reads.
RELAY = """
import os, subprocess, sys, threading
far = subprocess.Popen(["sh", "-c", "exec " + sys.argv[2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def pump(source, sink, *last):
    while data := os.read(source, 65536):
        while data:
            data = data[os.write(sink, data):]
    for fd in last:
        os.close(fd)
threading.Thread(target=pump, args=(0, far.stdin.fileno(), far.stdin.fileno()), daemon=True).start()
pump(far.stdout.fileno(), 1)
"""
# name -> a policy; whoever runs it has a workspace that everybody may write, and it begins empty
WALLS = {
    "process": "tier: balanced\nbackend: process\nworkspace: {mode: rw}\n",
    "landlock": "tier: auto\nbackend: landlock\nworkspace: {mode: rw}\n",
    "local": "tier: local\nworkspace: {mode: rw}\n",
    "unshare": COMMAND + "command: {argv: [unshare, -Ur, caisson-agent, --stdio], enforces: [%s]}\n" % SEALED,
    "relay": COMMAND + "command: {argv: [%s, RELAY, host, caisson-agent --stdio], enforces: [%s]}\n" % (PYTHON, SEALED),
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
    path.write_text("version: 1\n" + policy.replace("RELAY", str(box.base / "relay.py")) + LIMITS)
    (box.base / "relay.py").write_text(RELAY)
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
    for name, policy in list(WALLS.items())[:3]:
        told = [answer[1][0]["exit_code"] for answer in tell(someones(), policy, [call for call, _ in MADE_BY_WALL])]
        expected = [walls[name] for _, walls in MADE_BY_WALL]
        assert [status if want is not None else None for status, want in zip(told, expected)] == expected, name


def test_files_in_a_dictionary(someones):
    """Somebody else's program that answers the frames: the same answers, but for its own sentences."""
    box = someones()
    example = shutil.copy(TOP / "examples/dictionary.py", box.base)
    policy = COMMAND + "command: {argv: [%s, %s], enforces: [%s]}\n" % (PYTHON, example, SEALED)
    assert len(pathlib.Path(example).read_text().splitlines()) <= 60
    piped = [Call("write", path=b"piped", stdin=[b"a", b"b" * 65535]), read(b"piped", offset=65530),
             Call("write", path=b"piped", stdin=[b"x" * 65536] * 4), Call("write", path=b"piped", stdin=[])]
    theirs = tell(box, policy, PLAIN + piped + [sh("true")])
    told = zip(PLAIN, theirs, tell(someones(), WALLS["local"], PLAIN))
    different = [f"{call!r}\n    {one!r:.300}\n    {other!r:.300}" for call, one, other in told if unworded(one) != unworded(other)]
    assert not different, "\n".join(different)
    assert [kind if kind == "reply" else told[0] for kind, told, _ in theirs[len(PLAIN):]] == ["reply", "reply", "efbig", "reply", "not_supported"]
    assert not list(box.ws.glob("plain")), "nothing of the host's is touched"


def unworded(answer):
    """Without the sentence of a failure, and the size of folders."""
    kind, told, output = answer
    if kind == "failed":
        return kind, told[0]
    entries = [entry | ({"size": 0} if entry["type"] == "directory" else {}) for entry in told[0].get("entries", [])]
    return kind, told[0] | {"entries": entries}, output
