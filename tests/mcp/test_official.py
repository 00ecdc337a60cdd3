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
    assert [part["text"] for part in done["content"]] == ["one\ntwo\noops\n", "(exit code: 3)"]
    assert "copy-on-write" not in text(done)  # said once


def test_read_in_parts(official, project):
    (project / "long").write_text("".join(f"line {n}\n" for n in range(1, 5001)))
    (project / "wide").write_text("x" * 60000 + "\nend\n")
    (project / "empty").write_text("")
    (project / "bin").write_bytes(b"\x7fELF\0\1")
    (project / "pixel.png").write_bytes(PIXEL)
    client = official()
    done = client.tool("Read", path="long")
    assert "[showing lines 1–2000 of 5000" in text(done) and done["structuredContent"]["last_line"] == 2000
    done = client.tool("Read", path="/workspace/long", offset=4999)
    assert done["structuredContent"]["text"] == "line 4999\nline 5000\n" and "4999–5000 of 5000" in text(done)
    assert client.tool("Read", path="long", offset=3, limit=1)["structuredContent"]["text"] == "line 3\n"
    done = client.tool("Read", path="long", offset=5001)
    assert done["isError"] and "5000 lines" in text(done)
    done = client.tool("Read", path="wide")
    assert len(done["structuredContent"]["text"]) == 50 << 10 and "line 1 of 2" in text(done)
    assert client.tool("Read", path="wide", offset=2)["structuredContent"]["text"] == "end\n"
    assert "is empty" in text(client.tool("Read", path="empty"))
    assert "binary file of 6 bytes" in text(client.tool("Read", path="bin"))
    [image] = [part for part in client.tool("Read", path="pixel.png")["content"] if part["type"] == "image"]
    assert image["mimeType"] == "image/png" and base64.b64decode(image["data"]) == PIXEL
    done = client.tool("Read", path=".")
    assert done["isError"] and "directory" in text(done).lower()


def test_write_edit_diff_and_the_way_to_keep_it(official, project, run):
    (project / "a.c").write_text("int a;\nint b;\nint a;\n")
    client = official()
    client.tool("Write", path="new/b.c", content="x\n")
    done = client.tool("Edit", path="a.c", old_text="int a;", new_text="int c;")
    assert done["isError"] and "2 occurrences" in text(done) and "1, 3" in text(done)
    done = client.tool("Edit", path="a.c", old_text="  int b;\n  int z;", new_text="")
    assert done["isError"] and "0 occurrences" in text(done) and "at line 2" in text(done)
    done = client.tool("Edit", path="a.c", old_text="int b;", new_text="int c;")
    assert done["structuredContent"] == {"path": "a.c", "occurrences": 1, "changed": True} and "at line 2" in text(done)
    done = client.tool("Diff")
    assert "+int c;" in done["structuredContent"]["patch"] and "new/b.c" in text(done)
    assert (project / "a.c").read_text() == "int a;\nint b;\nint a;\n"
    box = client.tool("Sandbox")["structuredContent"]["sandbox_id"]
    client.do("close")
    run("runs", "commit", box)
    assert "int c;" in (project / "a.c").read_text() and (project / "new/b.c").read_text() == "x\n"


def test_commit_only_what_is_harmless(official, project):
    (project / ".git").mkdir()
    client = official("--allow-commit")
    assert "Commit writes them" in text(client.tool("Write", path="a", content="1"))
    client.tool("Bash", command="printf 'evil\n' > .envrc")
    done = client.tool("Commit", dry_run=True)
    assert [change["path"] for change in done["structuredContent"]["applied"]] == ["a"]
    assert not (project / "a").exists()
    done = client.tool("Commit")
    assert (project / "a").read_text() == "1" and not (project / ".envrc").exists()
    assert done["structuredContent"]["left"] == [] or "names it" in text(done)


def test_writing_to_the_workspace_itself(official, project):
    client = official(f"-w{project}:rw")
    assert "copy" not in text(client.tool("Write", path="a", content="1"))
    assert (project / "a").read_text() == "1"
    done = client.tool("Diff")
    assert done["isError"] and "Diff" in text(done)


def test_what_is_denied_is_said(official):
    client = official()
    done = client.tool("Bash", command="touch /etc/x; true")
    [say] = done["structuredContent"]["violations"]
    assert "write to /tmp or /workspace" in say and say in text(done)
    assert not done["isError"]
    [log] = client.do("logs")
    assert log["level"] == "warning" and log["data"]["say"] == say
    client.do("setLoggingLevel", "error")
    client.tool("Bash", command="touch /etc/y; true")
    assert len(client.do("logs")) == 1


def test_limits_are_results(official):
    client = official("-l", "memory=64MiB")
    done = client.tool("Bash", command="echo begun; sleep 20", timeout=1)
    assert done["isError"] and "begun" in text(done) and "timeout" in text(done)
    assert done["structuredContent"]["reason"] == "timeout"
    done = client.tool("Bash", command="python3 -c 'b = bytearray(300 << 20)'")
    assert "memory" in text(done) and done["isError"] and done["structuredContent"]["reason"] == "memory"
    done = client.tool("Bash", command="seq 100000")
    assert done["structuredContent"]["omitted_bytes"] > 500000
    assert text(done).startswith("1\n2\n") and "99999\n100000\n" in text(done) and "are left out here" in text(done)


def test_background(official):
    client = official("-n", "loopback")
    done = client.tool("Bash", command="echo begun; sleep 0.5; echo ready; sleep 100", run_in_background=True, tag="web")
    assert "web" in text(done) and "Logs" in text(done)
    done = client.tool("Logs", tag="web", wait_for_text="ready", timeout=10)
    assert done["structuredContent"]["running"] and "begun\nready\n" in text(done)
    done = client.tool("Kill", tag="web")
    assert not done["structuredContent"]["running"]
    assert "ended" in text(client.tool("Logs", tag="web"))
    done = client.tool("Bash", command="exit 4", run_in_background=True)
    tag = done["structuredContent"]["tag"]
    assert client.tool("Logs", tag=tag, timeout=5)["structuredContent"]["exit_code"] == 4


def test_search(official, project):
    (project / "src").mkdir()
    for name in ("a.c", "b.c", "c.h"):
        (project / "src" / name).write_text(f"int {name[0]};\nINT x;\n")
    client = official()
    done = client.tool("Glob", pattern="**/*.c")
    assert done["structuredContent"]["paths"] == ["src/a.c", "src/b.c"] and "Paths: 2" in text(done)
    assert client.tool("Glob", pattern="*", path="src", limit=1)["structuredContent"]["truncated"]
    done = client.tool("Grep", pattern="^int")
    assert "src/a.c:1:int a;\nsrc/b.c:1:int b;" in text(done) and done["structuredContent"]["count"] == 3
    done = client.tool("Grep", pattern="^int", case_sensitive=False, glob="*.h", context=1)
    assert done["structuredContent"]["count"] == 2
    assert "none" in text(client.tool("Grep", pattern="nothing"))


def test_mount(official, project, home):
    done = official().tool("Mount", host_path=str(home), path="/mnt/x")
    assert done["isError"] and "mount_roots" in text(done)
    policy = home / "policy.yaml"
    policy.write_text(f"version: 1\ntier: auto\nworkspace: {{path: {project}}}\n")
    done = official("--policy", str(policy), "--backend", "landlock", f"-w{project}:ro").tool("Mount", host_path=str(home), path="/mnt/x")
    assert done["isError"] and "not supported" in text(done)


def test_progress_and_cancel(official):
    client = official()
    answer = client.ask("callTool", {"name": "Bash", "arguments": {"command": "echo one; sleep 2.2; echo two"}}, progress=True,
                        timeout_ms=1900)
    assert "two" in answer["ok"]["structuredContent"]["output"]  # its own clock was put back
    values = [one["progress"] for one in answer["progress"]]
    assert len(values) >= 2 and values == sorted(set(values)) and answer["progress"][-1]["message"] in ("one", "two")
    began = time.monotonic()
    answer = client.ask("callTool", {"name": "Bash", "arguments": {"command": "sleep 20"}}, cancel_ms=300)
    assert "error" in answer and time.monotonic() - began < 5
    assert client.tool("Bash", command="echo on")["structuredContent"]["output"] == "on\n"


def test_records_are_resources(official):
    client = official()
    assert client.do("listResources")["resources"] == []  # nothing was made yet
    client.tool("Bash", command="touch /etc/x")
    [events] = client.do("listResources")["resources"]
    [content] = client.do("readResource", {"uri": events["uri"]})["contents"]
    lines = [json.loads(line) for line in content["text"].splitlines()]
    assert {"RunStarted", "Violation"} <= {line["event"] for line in lines}
    assert client.do("listResourceTemplates")["resourceTemplates"][0]["uriTemplate"] == "caisson://runs/{id}/{file}"


def test_the_sandbox_says_what_holds(official):
    done = official("-l", "memory=256MiB").tool("Sandbox")
    said = done["structuredContent"]
    assert said["tier"] == "balanced" and said["mode"] == "cow" and "net-none" in said["enforced"]
    assert "memory: 256MiB" in said["policy"] and "no network" in text(done)
