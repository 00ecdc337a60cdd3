"""What the tests of pages share: the built program first on PATH, a home and a project of one's own."""
import os
import pathlib
import subprocess

import pytest
from snippets import TOP


@pytest.fixture(scope="session")
def caisson():
    path = pathlib.Path(os.environ.get("CAISSON") or TOP / "build" / "caisson").resolve()
    if not os.access(path, os.X_OK):
        pytest.fail(f"{path} is not built")
    return path


@pytest.fixture
def project(tmp_path):
    path = tmp_path / "home" / "project"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def env(caisson, tmp_path):
    runtime = tmp_path / "rt"
    runtime.mkdir(mode=0o700)
    return {"PATH": f"{caisson.parent}:{os.environ['PATH']}", "HOME": str(tmp_path / "home"), "LANG": "C.UTF-8",
            "XDG_STATE_HOME": str(tmp_path / "state"), "XDG_RUNTIME_DIR": str(runtime)}


@pytest.fixture
def sh(project, env):
    """sh(text) -> what a bash in the project prints, all of it; it must succeed."""

    def run(text, timeout=60):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=project, env=env, timeout=timeout, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
        assert done.returncode == 0, f"{text}\nstatus {done.returncode}\n{done.stdout}"
        return done.stdout

    return run
