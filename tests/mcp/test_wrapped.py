"""Somebody else's MCP servers behind `caisson run`, as docs/wrap-mcp.md says: real ones, and the official client."""
import json
import pathlib
import re
import signal
import subprocess
import time

import nodejs
import pytest

from mcp_clients import Official, text

TOP = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = TOP / "examples" / "wrapped-mcp"
PAGE = TOP / "docs" / "wrap-mcp.md"


@pytest.fixture(scope="session")
def servers():
    """The servers from their registry, installed once for each version of package.json, in the build folder."""
    return nodejs.installed("mcp-servers", EXAMPLE / "package.json")


@pytest.fixture
def config(servers, home, project, caisson):
    """config() -> the configuration of the example with places of this machine; the policy lies where it says."""
    places = {"/home/me/mcp/node_modules": str(servers / "node_modules"), "/home/me/mcp": str(home), "/home/me/project": str(project)}

    def moved(name):
        told = (EXAMPLE / name).read_text()
        for place, here in places.items():
            told = told.replace(place, here)
        return told

    (home / "policy.yaml").write_text(moved("policy.yaml"))
    told = json.loads(moved("mcp.json"))["mcpServers"]
    return {name: [caisson, *server["args"]] for name, server in told.items() if server["command"] == "caisson"}


@pytest.fixture
def connect(config, client_folder, env):
    """connect(name, *flags) -> the official client of that server, with more flags of `run`."""
    made = []

    def start(name, *flags, **more):
        words = config[name]
        at = words.index("--")
        made.append(Official(["node", "client.mjs", *words[:at], *flags, *words[at:]], cwd=client_folder, env=env, **more))
        return made[-1]

    yield start
    for one in made:
        one.close()


def processes(words):
    """Argument lists that hold this text."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path.parent.name] * (words.encode() in path.read_bytes())
        except OSError:
            pass
    return found


def gone(words):
    end = time.monotonic() + 10
    while processes(words) and time.monotonic() < end:
        time.sleep(0.05)
    return not processes(words)


def test_files_are_read_and_not_written(connect, project, run):
    (project / "a.txt").write_text("hello\n")
    client = connect("files")
    assert text(client.tool("read_text_file", path="/workspace/a.txt")) == "hello\n"
    refused = client.tool("write_file", path="/workspace/b.txt", content="x")
    assert refused["isError"] and "read-only" in text(refused)
    refused = client.tool("read_text_file", path="/etc/passwd")
    assert refused["isError"]
    client.close()
    told = run("why")
    assert "FilesystemWriteViolation" in told and "/workspace/b.txt" in told
    assert not (project / "b.txt").exists()


def test_a_network_is_denied_and_told(connect, run):
    client = connect("everything")
    done = client.do("callTool", {"name": "gzip-file-as-resource", "arguments": {"name": "x", "data": "https://example.com/x"}})
    assert done["isError"] and "fetch failed" in text(done)
    client.close()
    told = run("why")
    assert re.search(r"NetworkAccessViolation .*host=example\.com", told) and "there is no network here" in told
    shown = json.loads(run("why", "--json"))
    events = {violation["event"] for violation in shown["violations"]}
    assert events == {"NetworkAccessViolation"}


def test_it_may_write_more_than_a_command_may(connect, project, run):
    """More than the built-in limits.output, and no clock: what the policy of the example lifts."""
    (project / "big.txt").write_text("x" * 3_000_000)
    client = connect("files")
    for _ in range(2):  # each twice: as text and as structure
        assert len(text(client.tool("read_text_file", path="/workspace/big.txt"))) == 3_000_000
    client.close()
    result = json.loads(run("runs", "show", "--json"))
    assert result["termination"]["reason"] == "exited" and result["usage"]["stdout_bytes"] > 10 << 20
    assert result["limits"]["command_ms"] is None and result["limits"]["budget_ms"] is None


def test_without_that_a_clock_ends_it(connect, tmp_path):
    said = tmp_path / "said"
    with said.open("wb") as file:
        client = connect("files", "--timeout", "1500ms", stderr=file)
        end = time.monotonic() + 15
        while "caisson: stopped after 1.5 s (limits.command)" not in said.read_text():
            assert time.monotonic() < end, said.read_text()
            time.sleep(0.05)
        with pytest.raises(Exception):
            client.tool("list_directory", path="/workspace")


def test_stdout_is_the_servers(config, env):
    """Each message comes at once, and nothing but messages comes."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
             "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
    child = subprocess.Popen(config["everything"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        child.stdin.write(json.dumps(hello).encode() + b"\n")
        child.stdin.flush()
        assert json.loads(child.stdout.readline())["result"]["serverInfo"]  # it waits for more, and has not ended
        assert child.poll() is None
        child.stdin.close()
        rest = child.stdout.read()
        assert all(json.loads(line) for line in rest.splitlines())
        assert child.wait(10) == 0
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_its_client(config, client_folder, env, project, how):
    words = [*config["files"], f"/workspace/../workspace/{project.parent.parent.name}-{how}"]
    (project / words[-1].rsplit("/", 1)[1]).mkdir()
    client = Official(["node", "client.mjs", *words], cwd=client_folder, env=env)
    assert client.do("hello")["server"]
    assert processes(words[-1])
    client.process.send_signal(how)
    client.process.wait(10)
    assert gone(words[-1])


def test_the_page_shows_the_example():
    page = PAGE.read_text()
    for name in ("policy.yaml", "mcp.json", "package.json"):
        assert (EXAMPLE / name).read_text().strip() in page, f"{PAGE.name} shows another {name}"
