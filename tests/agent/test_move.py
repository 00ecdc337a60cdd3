"""move: a rename, and what is in its way."""
import os

import pytest
from speaker import fails


def test_move(agent, ws, own):
    (ws / "a").write_bytes(b"1")
    (ws / "b").write_bytes(b"2")
    (ws / "d").mkdir()
    own(ws / "d")
    assert agent.call("move", path="a", to="b") == {}
    assert not (ws / "a").exists() and (ws / "b").read_bytes() == b"1"
    agent.call("move", path="b", to=f"{ws}/d/c")
    agent.call("move", path="d/", to="e/")
    assert (ws / "e/c").read_bytes() == b"1"
    (ws / "link").symlink_to("nowhere")
    agent.call("move", path="link", to="link2")
    assert os.readlink(ws / "link2") == "nowhere"


@pytest.mark.parametrize("path, to, reason", [
    ("missing", "x", "enoent"), ("f", "missing/x", "enoent"), ("f", "d", "eisdir"), ("d", "f", "enotdir"),
    ("d", "full", "enotempty"), ("d", "d/x", "einval"), ("f", "../x", "einval"), ("../x", "f", "einval"),
    ("f", "up/x", "einval"), (".", "x", "ebusy"), ("/", "x", "ebusy"), ("f", ".", "ebusy"), ("d/..", "x", "ebusy"),
    ("f/", "x", "enotdir"), ("f", "x/", "enotdir"), ("f", "x" * 256, "enametoolong"), ("f", "/var/tmp/caisson-test", "exdev"),
])
def test_move_fails(agent, ws, own, path, to, reason):
    (ws / "f").write_bytes(b"1")
    (ws / "d").mkdir()
    (ws / "full").mkdir()
    (ws / "full/x").touch()
    (ws / "up").symlink_to("..")
    for name in ("f", "d", "full"):
        own(ws / name)
    if reason == "exdev" and os.stat("/var/tmp").st_dev == os.stat(ws).st_dev:
        pytest.skip("a second file system")
    fails(agent, reason, "move", path=path, to=to)
    assert (ws / "f").read_bytes() == b"1"


def test_workspace_is_not_moved(agent, outside, ws):
    assert "workspace itself" in fails(agent, "ebusy", "move", path=str(ws), to=str(outside / "other"))
    assert ws.is_dir()
