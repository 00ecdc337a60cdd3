"""libcaisson and a real monitor: a C program joins a sandbox that stays (tests/client/attach.c)."""
import pathlib
import subprocess

import pytest
from run_fixtures import *  # noqa: F403
from test_stay import stay  # noqa: F401

WAIT = 30


@pytest.fixture
def attach(stay, build):  # noqa: F811
    """attach("NAME", "PATH") -> its lines; as the sandbox's owner."""
    program = pathlib.Path(build, "tests", "client", "attach")
    if not program.exists():
        pytest.skip("attach: tests/client/attach.c is not built")

    def run(*words):
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=WAIT, cwd="/",
                              env=stay.box.env | {"XDG_RUNTIME_DIR": str(stay.runtime)}, **stay.box.as_owner())
        assert done.returncode in (0, 2), done
        return done.stdout.splitlines()

    return run


EXPECTED = [
    "enforces 1",
    "exited 3 - one 2",
    "exited 1 - ",
    "violation FilesystemWriteViolation /etc/passwd",
    "timeout -1 command ",
    "violation TimeoutViolation -",
]


def test_it_joins_by_name(stay, attach):  # noqa: F811
    stay.started("--rw")
    lines = attach("t", "a")
    assert [line for line in lines if not line.startswith("heard ")] == [*EXPECTED, "exited 0 - 3000000", ""]
    assert (stay.box.ws / "a").read_text() == "one 2"
    assert attach("t", "a") == lines, "closing leaves it running"


def test_it_joins_by_path(stay, attach):  # noqa: F811
    stay.started("--rw")
    assert [line for line in attach(str(stay.path()), "a") if not line.startswith("heard ")] == EXPECTED


def test_who_is_not_there(stay, attach):  # noqa: F811
    assert attach("nobody", "a") == ["error enoent there is no sandbox named nobody; `caisson ps` lists them"]
    assert attach("../t", "a")[0].startswith("error enoent cannot join ../t")
    assert attach(".t", "a")[0].startswith('error invalid ".t" is no name')


def test_a_refusal_is_an_error(stay, attach):  # noqa: F811
    """Read-only: the file verbs say so, and the sandbox goes on."""
    stay.started()
    lines = attach("t", "a")
    assert lines[1].startswith("error erofs"), lines
    assert "exited 1 - " in lines
