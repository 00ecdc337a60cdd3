"""What the tests of `caisson mcp` share: the built program, the official client, a client that misbehaves."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / name) for name in ("sdk", "docs")]
import nodejs  # noqa: E402
from mcp_clients import Official, Raw  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]


@pytest.fixture(scope="session")
def caisson():
    path = pathlib.Path(os.environ.get("CAISSON") or TOP / "build" / "caisson").resolve()
    if not os.access(path, os.X_OK):
        pytest.fail(f"{path} is not built")
    return str(path)


@pytest.fixture(scope="session")
def client_folder():
    """The official client library, and client.mjs beside it."""
    folder = nodejs.installed("mcp-client", HERE / "package.json")
    shutil.copy(HERE / "client.mjs", folder)
    return folder


@pytest.fixture(scope="session")
def agents_folder():
    """Agent programs that can be told of a server without an account."""
    return nodejs.installed("mcp-agents", HERE / "agents.json", ["@anthropic-ai/claude-code"])


@pytest.fixture(scope="session")
def heavy_folder():
    """More of them, half a gigabyte."""
    return nodejs.installed("mcp-agents-heavy", HERE / "agents-heavy.json", ["opencode-ai"])


@pytest.fixture
def home(tmp_path):
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
    return clean | {"HOME": str(home), "XDG_RUNTIME_DIR": str(home)}


@pytest.fixture
def run(caisson, project, env):
    """run("runs", "ls") -> what the command prints; it must succeed."""
    def call(*words, **more):
        return subprocess.run([caisson, *words], cwd=project, env=env, stdin=subprocess.DEVNULL, check=True,
                              stdout=subprocess.PIPE, encoding="utf-8", timeout=30, **more).stdout
    return call


@pytest.fixture
def official(caisson, client_folder, project, env):
    """official(*flags) -> a connected official client."""
    made = []

    def start(*flags):
        made.append(Official(["node", "client.mjs", caisson, "mcp", "-w", f"{project}:cow", *flags]
                             if not any(flag.startswith("-w") for flag in flags) else
                             ["node", "client.mjs", caisson, "mcp", *flags], cwd=client_folder, env=env))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.fixture
def raw(caisson, project, env):
    """raw(*flags, hello=True, **popen) -> a client that has said hello."""
    made = []

    def start(*flags, hello=True, **more):
        one = Raw([caisson, "mcp", *flags], **({"cwd": project, "env": env} | more))
        made.append(one)
        if hello:
            one.hello()
        return one

    yield start
    for one in made:
        one.close()
