"""Killing parts of a run, and seeing exactly what they leave: processes, mounts, groups, files."""
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
HIERARCHIES = ("memory", "pids", "cpu")
prctl = ctypes.CDLL(None, use_errno=True).prctl


@contextlib.contextmanager
def adopting():
    """Meanwhile what loses its parent becomes ours: nothing that a run started can hide."""
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        reap()
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def children(pid):
    """Direct children of every thread of `pid`."""
    found = []
    with contextlib.suppress(OSError):  # it goes while we look
        for task in os.listdir(f"/proc/{pid}/task"):
            found += [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    return found


def name_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def state_of(pid):
    with contextlib.suppress(OSError, IndexError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0]
    return "X"


def family(pid):
    """All descendants, nearest first."""
    found = children(pid)
    for child in found:
        found += children(child)
    return found


def cleaner_of(pid):
    return next((child for child in children(pid) if name_of(child) == "caisson-cleaner"), None)


def wall_of(pid):
    """The first process inside; until it executes the agent it has our name, as a cleaner that just began."""
    found = [child for child in children(pid) if name_of(child) != "caisson-cleaner"]
    agents = [child for child in found if name_of(child) != "caisson"]
    return next(iter(agents or found[-1:]), None)


def leader_of(pid):
    wall = wall_of(pid)
    return next(iter(children(wall)), None) if wall else None


def kill(pid, number=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def reap():
    """Collects adopted children that ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def survivors():
    """What is alive beneath us after reaping: pid and name."""
    reap()
    return [f"{pid} {name_of(pid)}" for pid in family(os.getpid()) if state_of(pid) not in "ZX"]


def mounts(word):
    """Mounts of our own namespace that mention `word`."""
    return [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines() if word in line]


def scratch_folders():
    return {path.name for path in pathlib.Path("/tmp").glob("caisson-????????-*")}


def dead_scratch(before):
    """Scratch folders newer than `before` whose owner's id no process has: nobody else's run."""
    alive = {0}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            alive.add(path.stat().st_uid)
    found = []
    for name in scratch_folders() - before:
        with contextlib.suppress(OSError):
            status = os.stat(f"/tmp/{name}")
            if status.st_uid not in alive and time.time() - status.st_mtime > 0.5:
                found.append(name)
    return found


def remove_dead_scratch(before):
    """What a known defect leaves."""
    for name in dead_scratch(before):
        shutil.rmtree(f"/tmp/{name}", ignore_errors=True)


class Groups:
    """Control groups of our own, so that what a run makes beneath them is surely this run's."""

    def __init__(self):
        self.folders, self.known = [], set()
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            if set(names.split(",")) & set(HIERARCHIES):
                top = pathlib.Path("/sys/fs/cgroup", names)
                self.folders.append((top if top.is_dir() else top.with_name(names.split(",")[0])) /
                                    path.lstrip("/") / f"csn-faults-{os.getpid()}")
        try:
            for folder in self.folders:
                folder.mkdir(exist_ok=True)
        except OSError:
            self.folders = []

    def enter(self):
        """For a child, before it executes anything."""
        for folder in self.folders:
            (folder / "tasks").write_text("0")

    def left(self):
        found = []
        for folder in self.folders:
            with contextlib.suppress(OSError):  # it goes while we look
                found += [entry.path for entry in os.scandir(folder / "caisson") if entry.is_dir()]
        return sorted(set(found) - self.known)

    def forget(self):
        """What is there now is not looked at again."""
        self.known |= set(self.left())

    def close(self):
        """Removes them, and those of test runs that were killed; a group is busy until its last process is gone."""
        gone_within(3, lambda: [str(folder) for folder in self.folders if not remove_groups(folder)])
        for folder in self.folders:
            for path in folder.parent.glob("csn-faults-*"):
                if not os.path.exists(f"/proc/{path.name.rsplit('-', 1)[1]}"):
                    remove_groups(path)


def remove_groups(folder):
    """True when it is gone, with all groups in it."""
    for top, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(top)
    return not folder.exists()


def gone_within(seconds, *checks):
    """Waits until every check returns something empty; (seconds it took, what is left)."""
    started = time.monotonic()
    while True:
        left = [found for check in checks for found in [check()] if found]
        took = time.monotonic() - started
        if not left or took > seconds:
            return took, left
        time.sleep(0.01)
