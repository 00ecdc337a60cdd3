"""Agent programs from their registry: told of the server as docs/agents.md says, they connect to it."""
import json
import pathlib
import re
import subprocess

import pytest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def tell(agents_folder, caisson, project, env):
    """tell("claude mcp list") -> what it prints; caisson and the programs are on PATH."""
    path = f"{agents_folder}/node_modules/.bin:{pathlib.Path(caisson).parent}:{env['PATH']}"

    def run(line):
        return subprocess.run(["sh", "-c", line], cwd=project, env=env | {"PATH": path}, timeout=90, check=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8").stdout

    return run


def line_of(program):
    """The command that the page has for it."""
    return re.search(rf"^{program} mcp add .*$", (DOCS / "agents.md").read_text(), re.M)[0]


def test_claude_code(tell):
    tell(line_of("claude"))
    assert re.search(r"caisson: caisson mcp.*Connected", tell("claude mcp list"))


def test_gemini_cli(tell, home, project):
    (home / ".gemini").mkdir()
    (home / ".gemini/trustedFolders.json").write_text(json.dumps({str(project): "TRUST_FOLDER"}))
    tell(line_of("gemini"))
    assert re.search(r"caisson: caisson mcp.*Connected", tell("gemini mcp list"))
