"""What docs/python.md and the examples say is run."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(TOP / "tests/docs")]
from snippets import snippets  # noqa: E402

SNIPPETS = snippets("docs/python.md", "python")


def run(*argv: str, cwd: pathlib.Path) -> str:
    done = subprocess.run(
        [sys.executable, *argv],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=60,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) == 7


@pytest.mark.parametrize("text", SNIPPETS, ids=lambda text: re.sub(r"\W+", "-", text)[:40])
def test_a_snippet(text: str, workspace: pathlib.Path) -> None:
    (workspace / "Makefile").write_text("test:\n\t@echo tested\n")
    run("-c", "import caisson\n" + text, cwd=workspace)


def test_the_agent(workspace: pathlib.Path) -> None:
    (workspace / "sum.py").write_text("def add(a, b):\n    return a - b\n")
    (workspace / "test_sum.py").write_text("import sum\nassert sum.add(2, 2) == 4, sum.add(2, 2)\nprint('passed')\n")
    said = run(str(TOP / "examples/agent.py"), str(workspace), cwd=workspace)
    assert "status 1]" in said and "+    return a + b" in said and "kept: sum.py" in said
    assert "a + b" in (workspace / "sum.py").read_text()


def test_the_server(workspace: pathlib.Path) -> None:
    said = run(str(TOP / "examples/dev_server.py"), str(workspace), cwd=workspace)
    assert "status 200" in said and "ended by signal 15" in said and "GET /" in said


def test_examples_are_short() -> None:
    for name in ("agent.py", "dev_server.py"):
        assert len((TOP / "examples" / name).read_text(encoding="utf-8").splitlines()) < 60
