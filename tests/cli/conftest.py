"""What the tests of the command line share: the built program, a clean home, records."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]


class Answer:
    """What a command left: status, out, err; json() reads out."""

    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"status {self.status}\n--- out\n{self.out}\n--- err\n{self.err}"


@pytest.fixture(scope="session")
def caisson():
    """The path of the built program."""
    path = pathlib.Path(os.environ.get("CAISSON") or TOP / "build" / "caisson").resolve()
    if not os.access(path, os.X_OK):
        pytest.fail(f"{path} is not built")
    return str(path)


@pytest.fixture(scope="session")
def build(caisson):
    """The build folder of the program. Tests of `make install` give it another prefix, which is undone."""
    folder = next((path for path in pathlib.Path(caisson).parents if (path / "build.ninja").exists()), None)
    if not folder or not shutil.which("meson"):
        pytest.skip("meson: no build folder (an installed program is tested)")
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "timeout": 300, "check": True}
    options = json.loads(subprocess.run(["meson", "introspect", "--buildoptions", folder], **quiet).stdout)
    prefix = {option["name"]: option["value"] for option in options}["prefix"]
    yield folder
    subprocess.run(["meson", "configure", folder, f"-Dprefix={prefix}"], **quiet)
    subprocess.run(["ninja", "-C", folder], **quiet)


@pytest.fixture
def home(tmp_path):
    """A home of its own, so that no test reads or writes the caller's."""
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def project(home):
    path = home / "project"
    path.mkdir()
    return path


@pytest.fixture
def env(home):
    clean = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return clean | {"HOME": str(home)}


@pytest.fixture
def cli(caisson, project, env):
    """cli("policy", "check", cwd=…, env={…}, stdin=…) -> Answer."""

    def run(*argv, cwd=project, stdin=None, binary=False, **more):
        done = subprocess.run([caisson, *map(str, argv)], cwd=cwd, env=env | more.get("env", {}),
                              input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                              **({} if binary else {"encoding": "utf-8", "errors": "surrogateescape"}))
        return Answer(done)

    return run


RESULT = {
    "schema": "caisson.result/1", "run_id": None, "sandbox_id": "s1", "tier": "balanced", "backend": "process",
    "runtime": "balanced/process", "command": ["make", "test"],
    "termination": {"reason": "exited", "clock": None, "exit_code": 3, "signal": None, "signal_name": None},
    "usage": {"wall_ms": 1200.25, "cpu_ms": 900.5, "mem_peak_bytes": 1048576, "stdout_bytes": 10, "stderr_bytes": 0,
              "scope": "command"},
    "violations": [], "enforced": ["fs_view"], "observed": [], "not_observed": [], "limits": {}, "mounts": [],
    "network": "none", "policy": {"path": None, "sha256": None, "trusted": False}, "host": {}, "timings": {},
    "error": None,
}


@pytest.fixture
def runs(home):
    return home / ".local" / "state" / "caisson" / "runs"


@pytest.fixture
def make_record(caisson, runs, tmp_path):
    """make_record(violations=[…], events=[(name, payload)]) -> run id; lost=True leaves no result."""
    helper = pathlib.Path(caisson).parent / "make-record"
    if not helper.exists():
        pytest.skip("make-record: not beside the program (an installed one is tested)")

    def make(events=(), lost=False, **changes):
        result = tmp_path / "result.json"
        result.write_text(json.dumps(RESULT | changes))
        words = [word for name, payload in events for word in (name, json.dumps(payload))]
        argv = [str(helper), str(runs), "/nonexistent" if lost else str(result), *words]
        return subprocess.run(argv, check=True, stdout=subprocess.PIPE, timeout=60, encoding="utf-8").stdout.strip()

    return make
