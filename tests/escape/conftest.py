"""The built program, the attacks as they lie in a workspace, and a case for each wall and user."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from behind import HERE, NOT_ATTACKS, TOP, Case, agent_beside, doctor  # noqa: E402


@pytest.fixture(scope="session")
def shared():
    """A folder that every user may enter; pytest's own is its owner's only."""
    with tempfile.TemporaryDirectory(prefix="caisson-escape-") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


@pytest.fixture(scope="session")
def caisson(shared):
    """The built program, where an ordinary user can execute it."""
    built = pathlib.Path(os.environ.get("CAISSON") or TOP / "build" / "caisson").resolve()
    if not os.access(built, os.X_OK):
        pytest.fail(f"{built} is not built")
    readable = all(path.stat().st_mode & 0o005 == 0o005 for path in [built, *built.parents])
    if readable or os.geteuid() != 0:
        return str(built)
    (shared / "bin").mkdir()
    shutil.copy(built, shared / "bin" / "caisson")
    shutil.copy(agent_beside(built), shared / "bin" / "caisson-agent")
    return str(shared / "bin" / "caisson")


@pytest.fixture(scope="session")
def walls(caisson):
    return doctor(caisson)


@pytest.fixture(scope="session")
def native(shared):
    """The attacks as they lie in the workspace: Python as it is, C compiled."""
    folder = shared / "attack"
    folder.mkdir()
    for path in [*HERE.iterdir(), *(HERE / "helpers").iterdir()]:
        if path.suffix == ".py" and path.stem not in NOT_ATTACKS - {"inside"}:
            shutil.copy(path, folder)
        if path.suffix == ".c":
            subprocess.run(["cc", "-static", "-O1", "-pthread", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-o",
                            str(folder / path.stem), str(path)], check=True)
    return folder


@pytest.fixture
def case(request, shared, caisson, native, walls):
    wall, who = request.param
    if not walls.get(wall, {}).get("usable"):
        needs = {"process": "namespaces"}.get(wall, wall)
        cause = walls.get(wall, {}).get("cause") or "caisson doctor does not list it"
        pytest.skip(f"{needs}: the {wall} wall is not usable here: {cause}")
    if who == "root" and os.geteuid() != 0:
        pytest.skip("root: the tests were started by an ordinary user")
    base = pathlib.Path(tempfile.mkdtemp(prefix=f"{wall}-{who}-", dir=shared))
    base.chmod(0o755)
    made = Case(base, caisson, wall, who, native)
    yield made
    made.close()
    subprocess.run(["chmod", "-R", "u+rwX", str(base)], stderr=subprocess.DEVNULL)
    shutil.rmtree(base, ignore_errors=True)
