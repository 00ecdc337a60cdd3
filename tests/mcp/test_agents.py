"""Agent programs from their registry: told of the server as docs/agents.md says, they connect to it."""
import json
import os
import pathlib
import re
import subprocess

import pytest
from mcp_clients import Raw
from snippets import snippets

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
HEAVY = pytest.mark.skipif(os.environ.get("CSN_SDK_HEAVY") != "1", reason="CSN_SDK_HEAVY: half a gigabyte to install")


def path_of(folder, caisson, env):
    """caisson and the programs of that folder, before all others."""
    return env | {"PATH": f"{folder}/node_modules/.bin:{pathlib.Path(caisson).parent}:{env['PATH']}"}


def teller(project, env):
    def run(line):
        return subprocess.run(["sh", "-c", line], cwd=project, env=env, timeout=90, check=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8").stdout

    return run


@pytest.fixture
def tell(agents_folder, caisson, project, env):
    """tell("claude mcp list") -> what it prints."""
    return teller(project, path_of(agents_folder, caisson, env))


@pytest.fixture
def heavy_env(heavy_folder, caisson, env):
    return path_of(heavy_folder, caisson, env)


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


@HEAVY
def test_codex_cli(heavy_env, project):
    """Its command connects to nothing; the server of its own that other programs use lists the tools, without a model."""
    tell = teller(project, heavy_env)
    tell(line_of("codex"))
    assert re.search(r"^caisson +caisson +mcp ", tell("codex mcp list"), re.M)
    server = Raw(["codex", "app-server"], cwd=project, env=heavy_env, stderr=subprocess.DEVNULL)
    try:
        server.ask("initialize", {"clientInfo": {"name": "test", "version": "1"}}, seconds=60)
        server.send({"method": "initialized"})
        [told] = server.ask("mcpServerStatus/list", {}, seconds=60)["result"]["data"]
    finally:
        server.close()
    assert told["name"] == "caisson" and {"Bash", "Read", "Write", "Edit"} <= set(told["tools"]), told


@HEAVY
def test_opencode(heavy_env, project):
    [config] = [text for text in snippets("docs/agents.md", "json") if "mcp" in json.loads(text)]
    (project / "opencode.json").write_text(config)
    assert re.search(r"caisson\W.*connected", teller(project, heavy_env)("opencode mcp list"))
