"""A server with a home of its own: real sockets, real sandboxes."""
import os
import pathlib
import signal
import subprocess

import pytest
from serve_client import Server

TOP = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def caisson():
    """The path of the built program."""
    path = pathlib.Path(os.environ.get("CAISSON") or TOP / "build" / "caisson").resolve()
    if not os.access(path, os.X_OK):
        pytest.fail(f"{path} is not built")
    return str(path)


@pytest.fixture(scope="session")
def build_folder(tmp_path_factory):
    """Where what a test installs from a registry is kept."""
    build = os.environ.get("CAISSON_BUILD")
    return pathlib.Path(build).resolve() if build else tmp_path_factory.mktemp("build")


class Home:
    """Folders of a caller: his project, records and sockets; and his environment."""

    def __init__(self, folder):
        self.folder = folder
        self.project = folder / "project"
        self.runtime = folder / "rt"
        for path in (self.project, self.runtime):
            path.mkdir()
        self.runtime.chmod(0o700)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8",
                    "XDG_STATE_HOME": str(folder / "state"), "XDG_RUNTIME_DIR": str(self.runtime)}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return Home(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def serve(caisson, home):
    """Starts servers; each ends with the module, and says nothing that nobody expects."""
    started = []

    def start(*flags, **more):
        process = subprocess.Popen([caisson, "serve", "--listen", "127.0.0.1:0", *flags] if "--listen" not in flags
                                   else [caisson, "serve", *flags], cwd=home.project, env=home.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, **more)
        started.append(process)
        line = process.stdout.readline().strip()
        if not line:
            pytest.fail(process.stderr.read())
        return Server(process, line)

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
        assert not said, said


@pytest.fixture(scope="module")
def server(serve):
    return serve("--cow", "-n", "loopback")


@pytest.fixture
def box(server):
    """A sandbox of the server, by its name."""
    name = server.open()
    yield name
    assert server.ask("DELETE", f"/v1/sandboxes/{name}").status in (204, 404)


@pytest.fixture
def run_caisson(caisson, home):
    """Runs another command of the same caller."""
    def run(*args, **more):
        return subprocess.run([caisson, *args], cwd=home.project, env=home.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False, **more)

    return run
