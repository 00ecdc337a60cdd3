"""What the tests of `caisson run` share: a place that belongs to somebody, and runs in it.

A test module takes the fixtures by `from run_fixtures import *`. They make everything beneath a
folder that any user may enter, so that the same test runs as root and as an ordinary user.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import textwrap
import time

import pytest

__all__ = ["Box", "Run", "PYTHON", "USER_UID", "LANDLOCK", "LOCAL", "box", "far_box", "root_box", "user_box",
           "program", "shared", "wait_for", "open_ends"]

TOP = pathlib.Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"
# An ordinary user without an account, whom tests started by root become; another one in each test
# run, so that two of them at once do not take each other's processes for their own.
USER_UID = 200000 + os.getpid() % 100000
LANDLOCK = "version: 1\ntier: auto\nbackend: landlock\n"
LOCAL = "version: 1\ntier: local\n"


class Run:
    """One end of `caisson run`."""

    def __init__(self, status, out, err, result, seconds):
        self.status, self.out, self.seconds = status, out, seconds
        self.err = err.decode(errors="replace")
        self.result = result

    @property
    def text(self):
        return self.out.decode(errors="replace")

    @property
    def reason(self):
        return self.result["termination"]["reason"] if self.result else None

    @property
    def clock(self):
        return self.result["termination"]["clock"] if self.result else None

    @property
    def facts(self):
        """Violations that are no expected noise."""
        return [v for v in self.result["violations"] if not v.get("expected")] if self.result else []

    @property
    def events(self):
        return {v["event"] for v in self.facts}

    def __repr__(self):
        termination = self.result and self.result["termination"]
        return (f"status {self.status}, {self.seconds:.2f} s, {termination}\n--- out\n{self.text[-4000:]}\n"
                f"--- err\n{self.err[-4000:]}\n--- facts\n" + "\n".join(map(json.dumps, self.facts)))


class Box:
    """Home, state and workspace of somebody, beneath a folder that all may enter."""

    def __init__(self, base, caisson, uid):
        self.base, self.caisson, self.uid = base, caisson, uid
        self.home, self.ws, self.runs = base / "home", base / "home" / "ws", base / "state" / "caisson" / "runs"
        for folder in (self.home, self.ws, base / "state"):
            folder.mkdir()
        base.chmod(0o755)
        self.env = {"HOME": str(self.home), "XDG_STATE_HOME": str(base / "state"),
                    "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        self.started = 0
        self.give()

    @property
    def is_root(self):
        return self.uid == 0

    def as_owner(self):
        if os.geteuid() != 0 or self.uid == 0:
            return {}
        return {"user": self.uid, "group": self.uid, "extra_groups": []}

    def give(self):
        """Everything that a test made so far becomes the owner's."""
        if os.geteuid() != 0 or self.uid == 0:
            return
        for folder, folders, files in os.walk(self.base):  # another run may take some away meanwhile
            for path in [folder, *(os.path.join(folder, name) for name in folders + files)]:
                with contextlib.suppress(FileNotFoundError):
                    os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def file(self, name, text, mode=None):
        """A file in the workspace (or at an absolute path); returns its path."""
        path = self.ws / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, str):
            path.write_text(textwrap.dedent(text))
        else:
            path.write_bytes(text)
        if mode:
            path.chmod(mode)
        return path

    def policy(self, text):
        """Flags for a policy file of the caller's own, outside the workspace."""
        path = self.base / f"policy-{self.started}.yaml"
        path.write_text(textwrap.dedent(text))
        return ["--policy", str(path)]

    def start(self, *argv, flags=(), policy=None, env=None, cwd=None, result=True, **more):
        """`caisson run FLAGS -- ARGV` as a process; its result goes to box.result."""
        self.started += 1
        self.result = self.base / f"result-{self.started}.json"
        words = [self.caisson, "run", *(self.policy(policy) if policy else [])]
        words += ["--result", str(self.result)] if result else []
        words += [*map(str, flags), "--", *map(str, argv)]
        self.give()
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
        return subprocess.Popen(words, cwd=cwd or self.ws, env=self.env | (env or {}), **self.as_owner(), **more)

    def finish(self, process, started, timeout=30, input=None):
        try:
            out, err = process.communicate(input, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            pytest.fail(f"caisson did not end within {timeout} s\n{(out or b'')[-2000:]!r}\n{(err or b'')[-2000:]!r}")
        seconds = time.monotonic() - started
        result = json.loads(self.result.read_text()) if self.result.exists() else None
        return Run(process.returncode, out or b"", err or b"", result, seconds)

    def run(self, *argv, timeout=30, input=None, **more):
        started = time.monotonic()
        if input is not None:
            more["stdin"] = subprocess.PIPE
        return self.finish(self.start(*argv, **more), started, timeout, input)

    def sh(self, text, **more):
        return self.run("sh", "-c", textwrap.dedent(text), **more)

    def python(self, text, *args, **more):
        """Runs a Python text inside, read from the workspace so that no shell quotes it."""
        name = f".t{self.started}.py"
        self.file(name, text)
        return self.run(PYTHON, self.at(name, more), *args, **more)

    @staticmethod
    def at(name, more):
        return name if more.get("cwd") is None else f"/workspace/{name}"

    def cli(self, *argv, cwd=None, env=None, timeout=30, input=None):
        """Any other command of caisson's: (status, out, err) as a Run without a result."""
        started = time.monotonic()
        done = subprocess.run([self.caisson, *map(str, argv)], cwd=cwd or self.ws, env=self.env | (env or {}),
                              input=input, stdin=None if input is not None else subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, **self.as_owner())
        return Run(done.returncode, done.stdout, done.stderr, None, time.monotonic() - started)

    def record(self, run_id=None):
        """The folder of one run's record: the only one, unless named."""
        if run_id:
            return self.runs / run_id
        found = [path for path in self.runs.iterdir() if path.is_dir() and path.name[0] != "."]
        assert len(found) == 1, found
        return found[0]

    def host(self, *argv, **more):
        """A program on the host as the owner, in the workspace; its output."""
        return subprocess.run(argv, cwd=self.ws, env=self.env, check=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, encoding="utf-8",
                              **self.as_owner(), **more).stdout


def wait_for(check, seconds=2.0, every=0.02):
    """Calls check() until it is true; its last answer."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if found or time.monotonic() > end:
            return found
        time.sleep(every)


@contextlib.contextmanager
def open_ends():
    """A pipe: (read end, write end), both closed at the end."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for fd in ends:
            with contextlib.suppress(OSError):
                os.close(fd)


@pytest.fixture(scope="session")
def shared():
    """A folder that every user may enter; pytest's own is its owner's only."""
    with tempfile.TemporaryDirectory(prefix="csn-runtests-", ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


@pytest.fixture(scope="session")
def program(shared):
    """The built program, where an ordinary user can execute it."""
    built = pathlib.Path(os.environ.get("CAISSON") or TOP / "build" / "caisson").resolve()
    if not os.access(built, os.X_OK):
        pytest.fail(f"{built} is not built")
    if all(path.stat().st_mode & 0o005 == 0o005 for path in [built, *built.parents]) or os.geteuid() != 0:
        return str(built)
    agent = next(path for path in (built.parent / "../libexec/caisson/caisson-agent", built.parent / "caisson-agent",
                                   built.parent / "../agent/caisson-agent") if path.exists())
    (shared / "bin").mkdir()
    shutil.copy(built, shared / "bin" / "caisson")
    shutil.copy(agent, shared / "bin" / "caisson-agent")
    return str(shared / "bin" / "caisson")


def make_box(shared, program, uid):
    base = pathlib.Path(tempfile.mkdtemp(prefix="box-", dir=shared))
    return Box(base, program, uid)


def remove_box(made):
    subprocess.run(["chmod", "-R", "u+rwX", str(made.base)], stderr=subprocess.DEVNULL)
    shutil.rmtree(made.base, ignore_errors=True)


@pytest.fixture(params=["root", "user"])
def box(request, shared, program):
    """A box of root's and one of an ordinary user's: each test runs in both."""
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("root: the tests were started by an ordinary user")
    uid = 0 if request.param == "root" else USER_UID if os.geteuid() == 0 else os.geteuid()
    made = make_box(shared, program, uid)
    yield made
    remove_box(made)


@pytest.fixture
def far_box(box, program):
    """A box that does not lie in /tmp, which scratch covers."""
    base = next((path for path in ("/srv", "/opt") if os.access(path, os.W_OK)), None)
    if not base:
        pytest.skip("a folder outside /tmp that may be written")
    made = make_box(base, program, box.uid)
    yield made
    remove_box(made)


@pytest.fixture
def root_box(shared, program):
    if os.geteuid() != 0:
        pytest.skip("root: the tests were started by an ordinary user")
    made = make_box(shared, program, 0)
    yield made
    remove_box(made)


@pytest.fixture
def user_box(shared, program):
    made = make_box(shared, program, USER_UID if os.geteuid() == 0 else os.geteuid())
    yield made
    remove_box(made)
