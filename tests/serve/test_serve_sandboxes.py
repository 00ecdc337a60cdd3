"""Sandboxes over HTTP: they are made, used and ended, and nobody gets more than the server has."""
import json
import os
import signal
import time

import pytest


def pids_of(parent):
    with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as file:
        return [int(pid) for pid in file.read().split()]


def test_a_sandbox_lives_from_post_to_delete(server):
    name = server.open(name="first")
    assert name == "first"
    shown = server.ask("GET", "/v1/sandboxes/first").json()
    assert (shown["state"], shown["owner"]) == ("idle", "server")
    assert "first" in [box["name"] for box in server.ask("GET", "/v1/sandboxes").json()["sandboxes"]]
    assert server.ask("DELETE", "/v1/sandboxes/first").status == 204
    assert server.ask("GET", "/v1/sandboxes/first").status == 404
    assert server.ask("DELETE", "/v1/sandboxes/first").status == 404


def test_a_name_is_taken_once(server, box):
    assert server.ask("POST", "/v1/sandboxes", {"name": box}).status == 409


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 65, "a b"])
def test_a_name_that_is_none_is_refused(server, name):
    assert server.ask("POST", "/v1/sandboxes", {"name": name}).status == 400


def test_exec_answers_with_its_account(server, box):
    done = server.call(box, "exec", command="echo out; echo err >&2; exit 3").json()
    assert (done["reason"], done["exit_code"]) == ("exited", 3)
    assert (done["output"]["data"], done["errors"]["data"]) == ("out\n", "err\n")


def test_exec_takes_argv_cwd_env_and_input(server, box):
    done = server.call(box, "exec", argv=["sh", "-c", "pwd; echo $A; cat"], cwd="/tmp", env={"A": "b"}, input="in").json()
    assert done["output"]["data"] == "/tmp\nb\nin"


def test_a_violation_comes_with_its_sentence_and_rule(server, box):
    done = server.call(box, "exec", command="echo x > /usr/x").json()
    assert [(v["event"], v["path"]) for v in done["violations"]] == [("FilesystemWriteViolation", "/usr/x")]
    assert done["violations"][0]["say"] and done["violations"][0]["rule"]


def test_bytes_go_both_ways(server, box):
    data = bytes(range(256)) * 300
    path = f"/v1/sandboxes/{box}/write?path=a%2Fb.bin&mode=384"
    assert server.ask("POST", path, data, Content_Type="application/octet-stream").status == 204
    assert server.call(box, "stat", path="a/b.bin").json()["mode"] == 0o600
    raw = server.ask("POST", f"/v1/sandboxes/{box}/read", {"path": "a/b.bin"}, Accept="application/octet-stream")
    assert raw.headers["Content-Type"] == "application/octet-stream" and raw.body == data
    coded = server.call(box, "read", path="a/b.bin", length=2).json()
    assert coded == {"content": "\x00\x01"} or coded == {"content": {"base64": "AAE="}}
    high = server.call(box, "read", path="a/b.bin", offset=128, length=3).json()
    assert high == {"content": {"base64": "gIGC"}}
    assert server.call(box, "write", path="c", content={"base64": "gIGC"}).status == 204
    assert server.call(box, "read", path="c").json() == high


@pytest.fixture(params=["server", "user"])
def either(request, server, run_caisson):
    """A sandbox of the server's, and one of `caisson up`, which anybody of the same user made."""
    if request.param == "server":
        name = server.open()
    else:
        name = run_caisson("up", "--cow").stdout.strip()
    yield name
    if request.param == "server":
        assert server.ask("DELETE", f"/v1/sandboxes/{name}").status == 204
    else:
        assert run_caisson("down", name).returncode == 0


def test_every_other_verb(server, either, run_caisson):
    box = either
    assert server.call(box, "write", path="src/a.c", content="int a;\n").status == 204
    assert server.call(box, "edit", path="src/a.c", old="a", new="b").json()["occurrences"] == 1
    assert server.call(box, "glob", pattern="**/*.c").json()["paths"] == ["src/a.c"]
    assert server.call(box, "grep", pattern="b;").json()["matches"][0]["line_number"] == 1
    assert server.call(box, "list", path="src").json()["entries"][0]["name"] == "a.c"
    assert server.call(box, "move", path="src/a.c", to="src/b.c").status == 200
    assert server.call(box, "diff").json()["changes"][-1]["path"] == "src/b.c"
    assert server.call(box, "commit", dry_run=True).json()["applied"]
    assert server.call(box, "snapshot", tag="one").json()["entries"] >= 1
    assert server.call(box, "remove", path="src", recursive=True).status == 200
    assert server.call(box, "stats").json()["tier"] == "balanced"
    assert server.call(box, "exec", argv=["sleep", "60"], detach=True, tag="t").json()["detached"]
    assert server.call(box, "ps").json()["commands"][0]["tag"] == "t"
    assert not server.call(box, "wait", tag="t", timeout_ms=50).json()["reached"]
    assert server.call(box, "kill", tag="t").status == 200
    assert server.call(box, "wait", tag="t").json()["reached"]
    assert server.call(box, "logs", tag="t").json()["output"]["data"] == ""
    assert server.ask("POST", f"/v1/sandboxes/{box}/fork", {"name": "copy"}).status == 200
    assert server.call("copy", "read", path="src/b.c").status == 404 and server.call("copy", "diff").status == 200
    assert run_caisson("down", "copy").returncode == 0
    assert server.ask("GET", f"/v1/sandboxes/{box}").json()["run_id"]
    lines = server.follow(f"/v1/sandboxes/{box}/events")
    assert next(lines)[0] == "record"
    streamed = list(server.follow(f"/v1/sandboxes/{box}/exec", {"command": "echo x"}))
    assert [event for event, _, _ in streamed] == ["output", "end"]


@pytest.mark.parametrize("wish", [
    {"mode": "rw"}, {"workspace": "/etc"}, {"workspace": "/"}, {"limits": {"memory": "8GiB"}}, {"limits": {"idle": "9h"}},
    {"mounts": ["/etc:/mnt/etc"]}, {"tier": "local"}, {"tier": "auto"}, {"backend": "local"}, {"network": "engine"}])
def test_nobody_gets_more_than_the_server_has(server, wish):
    reply = server.ask("POST", "/v1/sandboxes", wish)
    assert reply.status in (403, 422), reply
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert reply.json()["detail"]


@pytest.mark.parametrize("wish", [
    {"tier": "--policy"}, {"mode": "x"}, {"nonsense": 1}, {"limits": []}, {"limits": {"memory": True}},
    {"tier": ["balanced"]}, {"backend": ""}])
def test_what_makes_no_sense_is_refused(server, wish):
    assert server.ask("POST", "/v1/sandboxes", wish).status == 400


def test_more_wall_is_given(server):
    name = server.open(mode="ro", network="none", limits={"memory": "64MiB", "processes": 9}, tags=["x"])
    assert server.call(name, "stats").json()["mem_limit"] == 64 << 20
    assert server.call(name, "exec", command="echo x > f").json()["violations"][0]["rule"] == "workspace.mode: ro"
    assert server.ask("DELETE", f"/v1/sandboxes/{name}").status == 204


def test_a_stronger_tier_has_the_least_of_both_limits(serve, home):
    """strict has defaults of its own, some above the server's: those are lowered, and not more than they are is given."""
    policy = home.folder / "strict.yaml"
    enforces = ["fs-view", "fs-write", "fs-hide", "fs-protect", "net-none", "pids", "syscalls", "privilege", "identity",
                "time", "output", "memory", "processes", "cpu", "scratch"]
    command = {"argv": ["unshare", "-Ur", "caisson-agent", "--stdio"], "enforces": enforces}
    policy.write_text("version: 1\nbackend: command\nworkspace: {mode: rw, at: host}\n"
                      f"limits: {{processes: 40, idle: 9m}}\ncommand: {json.dumps(command)}\n", encoding="ascii")
    server = serve("--policy", str(policy))
    usual = server.call(server.open(), "stats").json()
    strict = server.call(server.open(tier="strict"), "stats").json()
    assert (usual["tier"], strict["tier"]) == ("balanced", "strict")
    for key in ("mem_limit", "processes_limit", "scratch_limit", "idle_limit_ms"):
        assert strict[key] == usual[key], key
    assert server.call(server.open(tier="strict", limits={"processes": 20}), "stats").json()["processes_limit"] == 20
    refused = server.ask("POST", "/v1/sandboxes", {"tier": "strict", "limits": {"memory": "1200MiB"}})
    assert refused.status == 403 and "wider" in refused.json()["detail"], refused


def test_sandboxes_of_up_are_joined_and_left(server, run_caisson):
    assert run_caisson("up", "mine").returncode == 0
    try:
        shown = {box["name"]: box["owner"] for box in server.ask("GET", "/v1/sandboxes").json()["sandboxes"]}
        assert shown["mine"] == "user"
        assert server.call("mine", "exec", command="echo hi").json()["output"]["data"] == "hi\n"
        assert server.ask("POST", "/v1/sandboxes", {"name": "mine"}).status == 409
        assert server.ask("DELETE", "/v1/sandboxes/mine").status == 403
    finally:
        assert run_caisson("down", "mine").returncode == 0
    assert server.call("mine", "exec", command="echo hi").status == 404


def test_delete_ends_what_runs(server):
    name = server.open()
    with server.connect() as _:
        connection = server.client()
        response = server.send(connection, "POST", f"/v1/sandboxes/{name}/exec", {"command": "sleep 100"},
                               Accept="text/event-stream")
        assert response.status == 200
        begun = time.monotonic()
        assert server.ask("DELETE", f"/v1/sandboxes/{name}").status == 204
        assert time.monotonic() - begun < 10
        connection.close()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_ends_leaves_nothing(serve, end):
    server = serve()
    name = server.open()
    assert server.call(name, "exec", argv=["sleep", "1000"], detach=True, tag="x").status == 200
    monitors = pids_of(server.process.pid)
    assert monitors
    os.kill(server.process.pid, end)
    server.process.wait(timeout=20)
    until = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") for pid in monitors) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [pid for pid in monitors if os.path.exists(f"/proc/{pid}")]


def test_null_is_as_if_it_were_not_there(server, box):
    refused = server.call(box, "read", path=None)
    assert refused.status == 400 and "path is missing" in refused.json()["detail"]
    assert server.call(box, "list", path=".", timeout_ms=None).status == 200


def test_a_whole_number_may_have_a_point(server, box):
    assert server.call(box, "write", path="n", content="abcd").status == 204
    assert server.call(box, "read", path="n", offset=1.0, length=2e0).json() == {"content": "bc"}
    for number in (1.5, 1e300, -1.0):
        assert server.call(box, "read", path="n", offset=number).status == 400
