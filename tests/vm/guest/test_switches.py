"""Switches by which administrators close what the walls need: each run starts or says why not."""
import contextlib
import os
import re
import shutil

import pytest

from conftest import TESTER, doctor, make_box, remove_box

LANDLOCK = "version: 1\ntier: auto\nbackend: landlock\nworkspace: {{path: {ws}, at: host, mode: ro}}\n"
# Switch, closed value: what a user's process wall says, and what doctor does.
CLOSED = {"user/max_user_namespaces": "user namespaces are limited", "kernel/unprivileged_userns_clone": "user namespaces are closed"}


@contextlib.contextmanager
def switched(name, value):
    path = f"/proc/sys/{name}"
    if not os.path.exists(path):
        pytest.skip(f"this kernel has no {name}")
    with open(path, encoding="ascii") as file:
        before = file.read().strip()
    write(path, value)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # some only close
            write(path, before)


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(text))


@pytest.fixture
def user(shared, program):
    made = make_box(shared, program, TESTER)
    yield made
    remove_box(made)


def try_both(box):
    """A write that no wall permits, behind each wall."""
    policies = {"process": None, "landlock": LANDLOCK.format(ws=box.ws)}
    return {wall: box.sh("echo x >/etc/passwd; echo ran", policy=policy) for wall, policy in policies.items()}


def walls(box):
    """What doctor says of each wall: {name: usable}."""
    return {name: word == "yes" for word, name in re.findall(r"^(yes|no) +(process|landlock|local) ", doctor(box), re.M)}


def assert_true(box):
    """Doctor and runs agree; what runs observes, what does not run says why."""
    said = walls(box)
    for wall, run in try_both(box).items():
        if not said[wall]:
            assert run.status == 125 and run.err.strip(), (wall, said, run)
            continue
        assert (run.status, run.text) == (0, "ran\n"), (wall, said, run)
        assert "FilesystemWriteViolation" in run.events or "FilesystemWriteViolation" in run.result["not_observed"], run


def test_as_it_is(user):
    assert walls(user) == {"process": True, "landlock": True, "local": True}, doctor(user)
    assert_true(user)


@pytest.mark.parametrize("name", CLOSED)
def test_user_namespaces_closed(user, name):
    with switched(name, 0):
        assert walls(user) == {"process": False, "landlock": True, "local": True}, doctor(user)
        assert_true(user)
        run = user.run("true")
        assert CLOSED[name] in run.err and "sysctl" in run.err, run
        [cause] = set(re.findall(r"cause: (\S+ is 0)", doctor(user)))
        assert cause == name.replace("/", ".") + " is 0"
        [(switch, value)] = set(re.findall(r"fix: sysctl (\S+)=(\d+)", doctor(user)))
        write("/proc/sys/" + switch.replace(".", "/"), value)  # the fix, as an administrator would
        assert walls(user)["process"] and user.run("true").status == 0


@pytest.mark.parametrize("value", [1, 2])
@pytest.mark.parametrize("own", [False, True])
def test_no_executable_memfd(user, value, own):
    """Programs that their caller could change are run from a sealed copy in memory."""
    with switched("vm/memfd_noexec", value):
        if own:
            folder = user.base / "own"
            folder.mkdir()
            built = os.path.realpath(user.caisson)
            shutil.copy(built, folder / "caisson")
            shutil.copy(os.path.realpath(os.environ["CAISSON_BUILD"] + "/caisson-agent"), folder / "caisson-agent")
            user.caisson = str(folder / "caisson")
            user.give()
        run = user.run("echo", "ran")
        assert run.text == "ran\n" or run.status == 125 and "memfd_noexec" in run.err, run


@pytest.fixture
def root(shared, program):
    made = make_box(shared, program, 0)
    yield made
    remove_box(made)


def assert_observed(box, closed):
    """Without the filter's listener a run goes on, connects to nothing, and says what is not observed."""
    assert_true(box)
    for wall, run in try_both(box).items():
        assert ("FilesystemWriteViolation" in run.result["not_observed"]) == (wall in closed), (wall, run)
        assert (run.events == set()) == (wall in closed), (wall, run)
    run = box.python("import socket\ntry: socket.socket(socket.AF_UNIX).connect('/run/x')\nexcept OSError as e: print(e.errno)")
    assert run.text == ("13\n" if "process" in closed else "2\n"), run


@pytest.mark.parametrize("scope", [1, 2, 3])
def test_ptrace_scope(user, root, scope):
    """The last: 3 stays until the machine starts anew."""
    both = {"process", "landlock"}
    with switched("kernel/yama/ptrace_scope", scope):
        assert f"ptrace_scope {scope}" in doctor(user), doctor(user)
        assert_observed(user, {1: set(), 2: {"landlock"}, 3: both}[scope])
        assert_observed(root, {1: set(), 2: set(), 3: both}[scope])
