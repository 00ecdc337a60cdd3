"""One agent a test, in a workspace of its own: as root, as somebody else, and without openat2()."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from speaker import AS_ROOT, PLACE, WHO, Speaker  # noqa: E402

@pytest.fixture(scope="session")
def program():
    """The agent, where another user can execute it, and beside it the program of glob and grep."""
    build = pathlib.Path(os.environ.get("CAISSON_BUILD") or HERE.parents[1] / "build")
    path = build / "src/agent/caisson-agent"
    if not path.exists() and os.environ.get("CAISSON"):
        path = pathlib.Path(os.environ["CAISSON"]).resolve().parent / "src/agent/caisson-agent"
    search = path.parents[1] / "search/caisson-search"
    for file in (path, search):
        if not os.access(file, os.X_OK):
            pytest.fail(f"{file} is not built")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="caisson-agent-"))
    folder.chmod(0o755)
    shutil.copy(search, folder)
    yield shutil.copy(path, folder)
    shutil.rmtree(folder)


@pytest.fixture(params=WHO)
def who(request):
    return request.param


@pytest.fixture
def uid(who):
    """Whose files the agent makes."""
    user = WHO[who][0]
    return os.geteuid() if user is None else user


@pytest.fixture
def outside(uid):
    """A folder with the workspace in it and room beside it, all of the agent's user."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="caisson-agent-", dir=PLACE))
    (folder / "ws").mkdir()
    for path in (folder, folder / "ws"):
        path.chmod(0o755)
        os.chown(path, uid, uid if AS_ROOT else -1)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
    assert not folder.exists()


@pytest.fixture
def ws(outside):
    return outside / "ws"


@pytest.fixture
def start(program, ws, who):
    """start() -> a Speaker; all are ended with the test."""
    user, has_openat2 = WHO[who]
    started = []

    def begin(workspace=ws, has_search=True, prelude="", **more):
        if has_search:  # descriptor 9 of src/os/agent_fds.h
            prelude = f"exec 9<{pathlib.Path(program).with_name('caisson-search')}; {prelude}"
        started.append(Speaker(program, workspace, user=user, has_openat2=has_openat2, prelude=prelude,
                               **more))
        return started[-1]

    yield begin
    for speaker in started:
        speaker.close()


@pytest.fixture
def agent(start):
    return start()


@pytest.fixture
def mount():
    """mount(args…, at): until the end of the test. Skips it where we may not."""
    mounted = []

    def do(*args):
        done = subprocess.run(["mount", *args], stderr=subprocess.PIPE, text=True)
        if done.returncode:
            pytest.skip(f"root: may not mount: {done.stderr.strip()}")
        mounted.append(args[-1])

    yield do
    for path in reversed(mounted):
        subprocess.run(["umount", path], check=True)


@pytest.fixture
def own(uid):
    """own(path): gives a file to the agent's user."""
    def give(path):
        if AS_ROOT:
            os.chown(path, uid, uid, follow_symlinks=False)
        return path
    return give
