"""`caisson exec` beyond a plain command: where it starts, what is said when it cannot, how it ended, and all of it as JSON."""
import pytest
from run_fixtures import *  # noqa: F403
from test_tty import Sandbox


@pytest.fixture
def sh(box):
    made = Sandbox(box)
    yield made
    made("down", "w")


@pytest.mark.parametrize("cwd, told", [("src", "src"), ("./src/../src/deep", "src/deep"), (".", "."), ("/usr/bin", "/usr/bin")])
@pytest.mark.parametrize("wall", ["process", "landlock"])
def test_where_it_starts(sh, wall, cwd, told):
    """A relative folder begins in the workspace, as every other path."""
    sh.box.file("src/deep/a.txt", "a\n")
    sh.up(*([] if wall == "process" else sh.box.policy(f"version: 1\ntier: auto\nbackend: {wall}\n")))
    root = "/workspace" if wall == "process" else str(sh.box.ws)
    wanted = told if told[0] == "/" else root if told == "." else f"{root}/{told}"
    done = sh("exec", "--cwd", cwd, "w", "--", "pwd")
    assert (done.returncode, done.stdout.decode()) == (0, wanted + "\n"), done
    assert sh("shell", "--cwd", cwd, "w", input=b"pwd\n").stdout.decode() == wanted + "\n"
