"""Each snippet of docs/mcp.md and docs/agents.md is run, or started as that program would start it."""
import json
import pathlib
import re
import subprocess
import tomllib

import pytest

from mcp_clients import Raw
from snippets import snippets

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def commands(found):
    """All [command, argument...] in a configuration, whatever stands around them."""
    if isinstance(found, dict):
        command = found.get("command") or found.get("cmd")
        if isinstance(command, list):
            yield command
        elif isinstance(command, str):
            yield [command, *found.get("args", [])]
        found = list(found.values())
    for inner in found if isinstance(found, list) else []:
        yield from commands(inner)


def goose(text):
    """Its one snippet in YAML, without a library for it."""
    lines = dict(re.findall(r"^ +(\w+): (.+)$", text, re.M))
    return {"cmd": lines["cmd"], "args": lines["args"].strip("[]").split(", ")}


CONFIGURED = [(page, argv) for page in ("mcp.md", "agents.md")
              for found in [*map(json.loads, snippets(f"docs/{page}", "json")), *map(tomllib.loads, snippets(f"docs/{page}", "toml")),
                            *map(goose, snippets(f"docs/{page}", "yaml"))] for argv in commands(found)]


def test_there_are_snippets():
    assert len(CONFIGURED) >= 9 and all(argv[:2] == ["caisson", "mcp"] for _, argv in CONFIGURED)


@pytest.mark.parametrize("page, argv", CONFIGURED, ids=[f"{page}-{' '.join(argv)}" for page, argv in CONFIGURED])
def test_configurations(caisson, project, env, page, argv):
    places = {"${workspaceFolder}": str(project), "/home/me/project": str(project)}
    client = Raw([caisson, *(places.get(word, word) for word in argv[1:])], cwd=project, env=env)
    try:
        client.hello()
        assert not client.tool("Write", path="a", content="x")["isError"]
        assert not (project / "a").exists()  # in a copy
    finally:
        client.close()


def test_the_session_of_the_page(caisson, project, env):
    [session] = snippets("docs/mcp.md", "sh")
    path = f"{pathlib.Path(caisson).parent}:{env['PATH']}"
    # build/caisson is a link to src/cli/caisson: both folders hold a program of that name
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", session], cwd=project, env=env | {"PATH": path}, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout
    first, original, *rest = done.stdout.splitlines()
    assert first.startswith("caisson runs commit 2") and original == 'print("helo")'
    assert '+print("hello")' in rest and rest[-1] == 'print("hello")'


@pytest.mark.parametrize("flags, mode", re.findall(r"^\| `caisson (mcp[^`]*)` \| (.*) \|$", (DOCS / "mcp.md").read_text(), re.M),
                         ids=lambda value: value[:40])
def test_the_flags_of_the_page(caisson, project, env, flags, mode):
    words = flags.replace("/home/me/project", str(project)).split()
    client = Raw([caisson, *words], cwd=project, env=env)
    try:
        client.hello()
        said = client.tool("Sandbox")
        assert not said["isError"], (said, mode)
        wanted = "rw" if ":rw" in flags else "ro" if "read-only" in flags else "cow"
        assert said["structuredContent"]["mode"] == wanted
    finally:
        client.close()
