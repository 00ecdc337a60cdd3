"""What the tests of the engines' walls share: a daemon of their own, an image store of their own, started once."""
import os
import pathlib
import subprocess
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "cli")]
from engine_fixtures import CONTAINERS, NETWORK, STORAGE, Account, Bridge, Daemon, Engine, let_go, need  # noqa: E402
from run_fixtures import USER_UID, make_box, program, remove_box, shared  # noqa: E402, F401


@pytest.fixture(scope="session")
def daemon(shared):  # noqa: F811
    if os.geteuid() != 0:
        pytest.skip("root: a daemon is started by nobody else")
    folder = shared / "docker"
    folder.mkdir(mode=0o711)
    bridge = Bridge("d", 18)
    made = Daemon(folder, bridge.name)
    yield made.env, bridge
    made.stop()
    made.log.close()
    bridge.remove()
    let_go(folder)


@pytest.fixture(scope="session")
def store(shared):  # noqa: F811
    """podman's configuration: the variables that name it, and its network."""
    if os.geteuid() != 0:
        pytest.skip("root: rootless podman needs ids of an account")
    need("podman", "runc")
    folder = shared / "podman"
    (folder / "net").mkdir(parents=True)
    bridge = Bridge("p", 19)
    (folder / "net" / "podman.conflist").write_text(NETWORK % (bridge.name, bridge.net, bridge.net))
    (folder / "storage.conf").write_text(STORAGE % ("overlay", folder / "graph", folder / "run"))
    (folder / "containers.conf").write_text(CONTAINERS % (folder / "tmp", folder / "net"))
    env = {"CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"), "CONTAINERS_CONF": str(folder / "containers.conf")}
    yield env, bridge
    subprocess.run(["podman", "rm", "--all", "--force"], env=os.environ | env, capture_output=True)
    subprocess.run(["podman", "rmi", "--all", "--force"], env=os.environ | env, capture_output=True)
    bridge.remove()
    let_go(folder)


@pytest.fixture(scope="session")
def account(shared):  # noqa: F811
    if os.geteuid() != 0:
        pytest.skip("root: an account is made by nobody else")
    made = Account(shared / "account", USER_UID)
    yield made
    made.remove()


@pytest.fixture(scope="session")
def rootless(account, shared, program):  # noqa: F811
    """podman of an ordinary user, once: a process of its own outlives each run and keeps the folders that it knew."""
    need("podman", "runc")
    folder = account.folder / "podman"
    (folder / "net").mkdir(parents=True)
    (folder / "storage.conf").write_text(STORAGE % ("vfs", folder / "graph", folder / "run"))
    (folder / "containers.conf").write_text(CONTAINERS % (folder / "tmp", folder / "net"))
    for path in [folder, *folder.iterdir()]:
        os.chown(path, USER_UID, USER_UID)
    box = make_box(shared, program, USER_UID)
    env = {"CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"), "CONTAINERS_CONF": str(folder / "containers.conf"),
           **account.env}
    engine = Engine("podman", box, env, None, box.as_owner() | {"cwd": box.ws})
    engine.env |= {"XDG_RUNTIME_DIR": str(box.base / "rt")}
    yield engine
    remove_box(box)


def engines(request, shared, program):  # noqa: F811
    name, who = request.param.split("-")
    env, bridge = request.getfixturevalue("daemon" if name == "docker" else "store")
    box = make_box(shared, program, 0 if who == "root" else USER_UID)
    yield Engine(name, box, env, bridge)
    remove_box(box)


all_engines = pytest.fixture(params=["docker-root", "docker-user", "podman-root"], name="engine")(engines)
one_of_each = pytest.fixture(params=["docker-user", "podman-root"], name="one_engine")(engines)
a_docker = pytest.fixture(params=["docker-user"], name="docker")(engines)
