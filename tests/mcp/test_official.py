"""The official client library against the built program: what an agent program does, end to end."""
import base64
import json
import time

from mcp_clients import text

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")
CODING = ["Read", "Write", "Edit", "Bash", "Glob", "Grep", "Logs", "Kill", "Mount", "Diff", "Sandbox"]


def test_it_is_introduced(official):
    hello = official().do("hello")
    assert hello["server"]["name"] == "caisson"
    assert {"tools", "logging", "resources"} <= set(hello["capabilities"])
    assert "sandbox" in hello["instructions"]


def test_tools_have_schemas_titles_and_hints(official):
    tools = {tool["name"]: tool for tool in official().do("listTools")["tools"]}
    assert list(tools) == CODING
    for tool in tools.values():
        assert tool["title"] and tool["description"] and tool["inputSchema"]["type"] == "object"
        assert tool["outputSchema"]["type"] == "object"
        assert set(tool["annotations"]) >= {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    assert set(tools["Read"]["inputSchema"]["properties"]) == {"path", "offset", "limit"}
    assert tools["Edit"]["inputSchema"]["required"] == ["path", "old_text", "new_text"]
    assert tools["Read"]["annotations"]["readOnlyHint"] and not tools["Bash"]["annotations"]["readOnlyHint"]


def test_sets_of_tools(official):
    names = [tool["name"] for tool in official("--tools", "read-only").do("listTools")["tools"]]
    assert names == ["Read", "Glob", "Grep", "Sandbox"]
    names = [tool["name"] for tool in official("--allow-commit").do("listTools")["tools"]]
    assert names == [*CODING[:-1], "Commit", "Sandbox"]


def test_read_and_bash(official, project):
    (project / "a.txt").write_text("one\ntwo\n")
    client = official()
    done = client.tool("Read", path="a.txt")
    assert done["structuredContent"]["text"] == "one\ntwo\n"
    assert "copy-on-write" in text(done) and str(project) in text(done) and "caisson runs commit" in text(done)
    assert not done["isError"]
    done = client.tool("Bash", command="cat a.txt; echo oops >&2; exit 3")
    assert done["structuredContent"]["exit_code"] == 3 and not done["isError"]
    assert text(done).startswith("one\ntwo\noops\n(exit code: 3)")
    assert "copy-on-write" not in text(done)  # said once
