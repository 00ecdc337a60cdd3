"""Whoever is killed: nothing is left of a container, its bundle, its groups, its mounts."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest
from runtimes import PYTHON, wait_for


def groups(run_id):
    """os.walk() goes on where a group that others had vanishes meanwhile."""
    return [str(pathlib.Path(folder, name)) for folder, names, _ in os.walk("/sys/fs/cgroup") for name in names if run_id in name]


def processes(token):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if token.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.fixture
def running(box):
    """A run that would take long, and its bundle's folder."""
    process = box.start(PYTHON, "-c", "import time; print('up', flush=True); time.sleep(60)", result=False)
    assert process.stdout.read(3) == b"up\n"
    [bundle] = box.bundles()
    yield box, process, bundle
    process.kill()
    process.communicate(timeout=30)


def assert_nothing_is_left(box, bundle):
    gone = wait_for(lambda: not (bundle.exists() or processes(bundle.name) or groups(bundle.name)), seconds=20, every=0.1)
    assert gone, (bundle.exists(), processes(bundle.name), groups(bundle.name))
    assert bundle.name not in pathlib.Path("/proc/self/mountinfo").read_text()
    assert bundle.name not in box.cli("gc").text


def test_the_folder_is_the_callers_alone(running):
    box, _, bundle = running
    for path in (bundle.parent, bundle, bundle / "state"):
        assert path.stat().st_mode & 0o7777 == 0o700 and path.stat().st_uid == 0
    assert (bundle / "config.json").stat().st_mode & 0o7777 == 0o600
    assert str(bundle) not in pathlib.Path("/proc/self/mountinfo").read_text(), "no mount of it is the host's"


def test_the_monitor(running):
    box, process, bundle = running
    process.kill()
    process.wait(timeout=30)
    assert_nothing_is_left(box, bundle)


def test_the_runtime(running):
    box, process, bundle = running
    children = subprocess.run(["ps", "--ppid", str(process.pid), "-o", "pid=,comm="], stdout=subprocess.PIPE, text=True).stdout
    [pid] = [int(line.split()[0]) for line in children.splitlines() if line.split()[1] in ("runc", "crun", "runsc")]
    os.kill(pid, signal.SIGKILL)
    if box.runtime == "crun":  # it handed its streams over: what it started goes on
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        process.terminate()
    out, err = process.communicate(timeout=30)
    assert process.returncode == (143 if box.runtime == "crun" else 125), err
    assert_nothing_is_left(box, bundle)


def test_the_monitor_and_its_cleaner(running):
    """The second net: `caisson gc`."""
    box, process, bundle = running
    children = subprocess.run(["ps", "--ppid", str(process.pid), "-o", "pid=,comm="], stdout=subprocess.PIPE, text=True).stdout
    cleaners = [int(line.split()[0]) for line in children.splitlines() if line.split()[1] == "caisson-cleaner"]
    for pid in [*cleaners, process.pid]:
        os.kill(pid, signal.SIGKILL)
    process.wait(timeout=30)
    assert len(cleaners) == 1 and bundle.exists()
    time.sleep(0.5)
    said = box.cli("gc").text
    assert f"removed the container's bundle {bundle.name}" in said, said
    assert_nothing_is_left(box, bundle)


def test_its_owner_ends_it(running):
    box, process, bundle = running
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 143
    assert_nothing_is_left(box, bundle)


def test_what_a_state_says_is_not_believed(boxes):
    """A hook in the state of a container: `runc delete` would run it as whoever calls gc."""
    box = boxes("runc")
    process = box.start(PYTHON, "-c", "import time; print('up', flush=True); time.sleep(60)", result=False)
    assert process.stdout.read(3) == b"up\n"
    [bundle] = box.bundles()
    [path] = (bundle / "state").glob("*/state.json")
    state = json.loads(path.read_text())
    process.terminate()
    process.communicate(timeout=30)
    mark = box.base / "mark"
    state["config"]["Hooks"] = {"poststop": [{"path": "/usr/bin/touch", "args": ["touch", str(mark)]}]}
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_text(json.dumps(state))
    (bundle / "runtime").write_text("runc")
    assert f"bundle {bundle.name}" in box.cli("gc").text
    assert not mark.exists() and not bundle.exists()
