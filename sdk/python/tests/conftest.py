"""What the tests share: the built program, folders, sandboxes."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import Any, Callable, Iterator, List

import pytest

import caisson

# `apart` has an environment of its own: it is named where it is run.
collect_ignore = [] if os.environ.get("CSN_SDK_HEAVY") == "1" else ["heavy"]
collect_ignore += [] if "apart" in "".join(sys.argv) else ["apart"]
TOP = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> str:
    """The built program; records go to the test's own folder."""
    path = pathlib.Path(os.environ.get("CAISSON") or TOP / "build" / "caisson").resolve()
    assert os.access(path, os.X_OK), f"{path} is not built"
    monkeypatch.setenv("CAISSON", str(path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    (tmp_path / "runtime").mkdir(mode=0o700)
    return str(path)


@pytest.fixture
def workspace(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "workspace"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def open_(workspace: pathlib.Path) -> Iterator[Callable[..., caisson.Sandbox]]:
    """open_(limits={…}) -> a sandbox with a writable workspace, closed at the end."""
    opened: List[caisson.Sandbox] = []

    def make(mode: str = "rw", **options: Any) -> caisson.Sandbox:
        more = {"workspace": f"{workspace}:{mode}", "network": "none", "no_record": mode != "cow", **options}
        opened.append(caisson.Sandbox(**more))
        return opened[-1]

    yield make
    for sandbox in opened:
        sandbox.close()


@pytest.fixture
def sandbox(open_: Callable[..., caisson.Sandbox]) -> caisson.Sandbox:
    return open_()
