"""The README's steps to a tool in an agent program, as they stand there: installed, added, a first call, what came of it.

It installs from the build folder, which it gives another prefix meanwhile: tools/test runs it by itself."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from mcp_clients import Official, text
from snippets import promised, snippets

TOP = pathlib.Path(__file__).resolve().parents[2]
README = (TOP / "README.md").read_text()
STEPS = snippets("README.md", "sh")


@pytest.fixture
def newcomer(agents_folder, tmp_path):
    """newcomer(script) -> what it prints: in the tree, with a home of its own; `build` is left as it was."""
    build = pathlib.Path(os.environ.get("CAISSON_BUILD") or TOP / "build").resolve()
    if not (build / "build.ninja").exists():
        pytest.skip("meson: no build folder (an installed program is tested)")
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "timeout": 300, "check": True}
    options = json.loads(subprocess.run(["meson", "introspect", "--buildoptions", build], **quiet).stdout)
    prefix = {option["name"]: option["value"] for option in options}["prefix"]
    home = build / "newcomer"  # always the same: what was compiled for it once is found again
    shutil.rmtree(home, ignore_errors=True)
    (home / "project").mkdir(parents=True)
    # sh of an ordinary session: no word of this test run but where the build folder and compiled files are.
    env = {"PATH": f"{agents_folder}/node_modules/.bin:{os.environ['PATH']}", "HOME": str(home), "BUILD": str(build),
           "CCACHE_DIR": os.environ.get("CCACHE_DIR") or os.path.expanduser("~/.cache/ccache"), "LANG": "C.UTF-8"}

    def run(script):
        done = subprocess.run(["sh", "-euc", script], cwd=TOP, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=300, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stdout[-6000:]
        for line in promised(script):
            assert line in done.stdout, done.stdout[-6000:]
        return done.stdout

    run.home, run.env = home, env
    yield run
    subprocess.run(["meson", "configure", build, f"-Dprefix={prefix}"], **quiet)
    subprocess.run(["ninja", "-C", build], **quiet)
    shutil.rmtree(home)


def test_from_the_readme_to_a_tool(newcomer, client_folder):
    first, after = STEPS
    newcomer(first)
    home, project = newcomer.home, newcomer.home / "project"
    [told] = [one["mcpServers"]["caisson"] for one in json.loads((home / ".claude.json").read_text())["projects"].values()]
    # The agent program's model is not here: the official client starts what it was told, where it would, and asks for what
    # the README asks for.
    path = f"{home}/.local/bin:{newcomer.env['PATH']}"
    command = shutil.which(told["command"], path=path)
    assert command == f"{home}/.local/bin/caisson"
    client = Official(["node", str(client_folder / "client.mjs"), command, *told["args"]], cwd=project,
                      env=newcomer.env | {"PATH": path})
    try:
        tools = {tool["name"] for tool in client.do("listTools")["tools"]}
        assert set(re.findall(r"`([A-Z]\w+)`", README[README.index(first):README.index(after)])) <= tools
        assert not client.tool("Write", path="hello.py", content='print("hello")\n').get("isError")
        assert text(client.tool("Bash", command="python3 hello.py")).startswith("hello\n")
    finally:
        client.close()
    assert not (project / "hello.py").exists()
    said = newcomer(f'cd ~/project; PATH="$HOME/.local/bin:$PATH"\n{after}')
    assert "ended" in said and (project / "hello.py").read_text() == 'print("hello")\n'


def test_the_readme_has_every_surface():
    """Each page of a surface is linked from it, and its table."""
    for page in ("mcp", "agents", "python", "typescript", "elixir", "api", "serve", "sandboxes", "protocol", "wrap-mcp"):
        assert f"](docs/{page}.md)" in README, page
    assert len(README.splitlines()) <= 160 and "](examples/README.md)" in README


def test_examples_are_short_and_listed():
    listed = (TOP / "examples/README.md").read_text()
    for path in (TOP / "examples").iterdir():
        assert path.name == "README.md" or f"]({path.name}" in listed, path.name
    for name in re.findall(r"^\| \[[^]]*\]\(([\w.]+)\)", listed, re.M):
        assert len((TOP / "examples" / name).read_text().splitlines()) < 60, name
