"""Records as `runs` and `why` tell them; the records are made without a sandbox."""
import json
import os
import pty
import re
import stat
import subprocess

import pytest

VIOLATIONS = [
    {"event": "NetworkAccessViolation", "time": "2026-01-02T03:04:05.000Z", "source": "seccomp", "pid": 9,
     "comm": "curl\x1b[2J", "detail": {"address": "198.51.100.7", "port": 443}, "rule": "network: none",
     "certain": True, "count": 3, "say": "no network"},
    {"event": "NetworkAccessViolation", "source": "seccomp", "pid": 9, "comm": "x", "detail": {"address": "127.0.0.1"},
     "rule": "r", "certain": False, "count": 1, "say": "s"},
    {"event": "FilesystemWriteViolation", "source": "seccomp", "pid": 9, "comm": "sh",
     "detail": {"path": "/workspace/a"}, "rule": "r", "certain": True, "count": 1, "say": "s"},
    {"event": "FilesystemWriteViolation", "source": "seccomp", "pid": 9, "comm": "sh",
     "detail": {"path": "/srv/x\n- evil: \"1\""}, "rule": "r", "certain": True, "count": 1, "say": "s"},
    {"event": "FilesystemWriteViolation", "source": "seccomp", "pid": 9, "comm": "sh",
     "detail": {"path": "/etc/passwd"}, "rule": "r", "certain": True, "count": 1, "say": "s"},
    {"event": "TimeoutViolation", "source": "clock", "pid": 0, "comm": "", "detail": {}, "rule": "limits.command",
     "certain": True, "count": 1, "say": "s"},
    {"event": "MemoryLimitViolation", "source": "cgroup", "pid": 0, "comm": "", "detail": {}, "rule": "limits.memory",
     "certain": True, "count": 1, "say": "s"},
    {"event": "SyscallViolation", "source": "seccomp", "pid": 9, "comm": "sh", "detail": {"syscall": "bpf", "a\x1b[2Jb": 7, "c\x1bd": "e"},
     "rule": "r", "certain": True, "count": 1, "say": "s"},
]
PERMITS = [
    None,
    "network: {mode: loopback}",
    "workspace: {mode: cow}   # or rw",
    'mounts: [{host: "/srv/x\\n- evil: \\"1\\"", at: "/srv/x\\n- evil: \\"1\\"", mode: rw}]',
    None,
    "limits: {command: 90s}",
    "limits: {memory: 2GiB}",
    None,
]


def test_nothing_yet(cli):
    assert cli("runs", "ls").status == 0
    assert cli("runs", "ls", "--json").json() == []
    assert cli("runs", "gc").status == 0
    for command in (["why"], ["runs", "show"], ["runs", "verify"], ["runs", "rm", "abc"]):
        answer = cli(*command)
        assert answer.status == 1 and "no records" in answer.err, command


def test_ls_newest_first(cli, make_record):
    first, second = make_record(command=["echo", "a\x1b[31mb\n"]), make_record(lost=True)
    lines = cli("runs", "ls").out.splitlines()
    assert {line.split()[0] for line in lines} == {first, second} and len(lines) == 2
    line = next(line for line in lines if line.startswith(first))
    assert "exited 3" in line and "echo $'a\\033[31mb\\n'" in line
    assert "lost" in next(line for line in lines if line.startswith(second))
    rows = {row["run_id"]: row for row in cli("runs", "ls", "--json").json()}
    assert rows[first]["status"] == "finished" and rows[first]["termination"]["exit_code"] == 3
    assert rows[second]["status"] == "lost" and rows[second]["command"] is None


def test_ls_has_a_head_on_a_terminal_only(cli, caisson, make_record, env, project):
    run = make_record()
    assert "STARTED" not in cli("runs", "ls").out
    main, side = pty.openpty()
    subprocess.run([caisson, "runs", "ls"], cwd=project, env=env, stdout=side, check=True)
    os.close(side)
    head, line = os.read(main, 4096).decode().replace("\r", "").splitlines()
    os.close(main)
    head = re.sub("\x1b\\[[0-9;]*m", "", head)
    assert head.split() == ["RUN", "STARTED", "(UTC)", "END", "COMMAND"] and line.startswith(run.split("-")[-1] + "  ")
    assert run in cli("runs", "show", line.split()[0]).out, "what a person is shown names the run"
    assert line.index("exited") == head.index("END") and line.index("make") == head.index("COMMAND")


def test_show(cli, make_record):
    run = make_record(toolchains=["/opt/x/bin", "/opt/x/l\x1bb"], error={"code": "enoent", "stage": "agent", "text": "it broke"})
    out = cli("runs", "show", run).out
    for text in ("make test", "balanced/process", "exited 3", "1MiB", "1200 ms", "built-in defaults", "it broke",
                 "tools     /opt/x/bin, /opt/x/l\\x1bb\n"):
        assert text in out
    assert cli("runs", "show", run[-6:]).out == out and cli("runs", "show").out == out
    assert cli("runs", "show", run, "--json").json()["run_id"] == run
    missing = cli("runs", "show", "zzz")
    assert missing.status == 1 and "zzz" in missing.err


@pytest.mark.parametrize("modified, text", [(True, ", modified)"), (False, ")"), (None, ")")])
def test_show_names_the_version_of_the_policy(cli, make_record, modified, text):
    make_record(policy={"path": "/p/caisson.yaml", "sha256": "0" * 64, "trusted": True, "commit": "a" * 40, "modified": modified})
    assert f"policy    /p/caisson.yaml (commit {'a' * 40}{text}\n" in cli("runs", "show").out


def test_a_lost_run_has_no_result(cli, make_record):
    run = make_record(lost=True)
    answer = cli("runs", "show", run)
    assert answer.status == 1 and "lost" in answer.err


def test_run_dir_is_another_place(cli, make_record, runs, tmp_path):
    run = make_record()
    os.rename(runs, tmp_path / "elsewhere")
    assert cli("runs", "show", run).status == 1
    assert cli("runs", "show", run, "--run-dir", tmp_path / "elsewhere").status == 0
    assert cli("runs", "show", run, "--run-dir", "elsewhere", cwd=tmp_path).status == 0


# ---- why -------------------------------------------------------------------------------------

def test_why_says_what_would_permit_it(cli, make_record):
    make_record(violations=VIOLATIONS, limits={"command_ms": 45000, "mem_bytes": 1 << 30},
                mounts=[{"host": "/p", "at": "/workspace", "mode": "ro", "workspace": True}],
                termination={"reason": "timeout", "clock": "command", "exit_code": None, "signal": None,
                             "signal_name": None})
    told = cli("why", "--json").json()
    assert [violation["policy"] for violation in told["violations"]] == PERMITS
    answer = cli("why")
    assert answer.status == 0 and re.match(r"run [0-9a-f]{6}, \d+ s ago: make test, stopped after 45 s \(limits.command\)\n", answer.out)
    assert "curl\\x1b[2J" in answer.out and "\x1b" not in answer.out
    assert "(3 times)" in answer.out and "(not certain)" not in answer.out and "(not certain)" in cli("why", "-v").out
    assert answer.out.count("nothing in a policy permits it") == 2
    assert answer.out.count("nothing in this build permits it (planned: network allow)") == 1
    assert "address=198.51.100.7 port=443" in answer.out
    assert "syscall=bpf" in answer.out and " a\\x1b[2Jb=7" in answer.out and " c\\x1bd=e" in answer.out


WORKSPACE = {"host": "/p", "at": "/workspace", "workspace": True}
LIB = {"host": "/srv/lib", "at": "/workspace/lib", "mode": "ro"}


@pytest.mark.parametrize("event, path, mode, permit", [
    ("Write", "/workspace/a", "ro", "workspace: {mode: cow}   # or rw"),
    ("Write", "/workspace/lib/a", "ro", 'mounts: [{host: "/srv/lib", at: "/workspace/lib", mode: rw}]'),
    ("Write", "/workspace/lib/a", "rw", 'mounts: [{host: "/srv/lib", at: "/workspace/lib", mode: rw}]'),
    ("Write", "/workspace/.git/hooks/x", "rw", 'workspace: {protect: [".envrc"]}'),
    ("Write", "/workspace/.git", "rw", 'workspace: {protect: [".envrc"]}'),
    ("Write", "/workspace/.gitx", "rw", None),
    ("Write", "/workspace/.git/hooks", "ro", "workspace: {mode: cow}   # in the copy only: workspace.protect keeps it out of the project"),
    ("Write", "/workspace/.git/hooks", "cow", None),
    ("Write", "/workspace/secrets/.envrc", "rw", 'workspace: {hide: [".env", "*.pem\\u001B"]}'),
    ("Write", "/workspace/.envrc/.env", "rw", 'workspace: {hide: ["secrets", "*.pem\\u001B"], protect: [".git/hooks"]}'),
    ("Write", "/workspace/.env", "ro", 'workspace: {mode: cow, hide: ["secrets", "*.pem\\u001B"]}   # or rw'),
    ("Write", "/workspace/a/.env", "rw", 'workspace: {hide: ["secrets", "*.pem\\u001B"]}'),
    ("Write", "/workspace/secrets/.envrc", "cow", 'workspace: {hide: [".env", "*.pem\\u001B"]}'),
    ("Write", "/workspacex/a", "rw", 'mounts: [{host: "/workspacex/a", at: "/workspacex/a", mode: rw}]'),
    ("Read", "/workspace/.env", "rw", 'workspace: {hide: ["secrets", "*.pem\\u001B"]}'),
    ("Read", "/workspace/a/secrets/b", "ro", 'workspace: {hide: [".env", "*.pem\\u001B"]}'),
    ("Read", "/workspace/a", "ro", None),
    ("Read", "/workspace/lib/a", "ro", None),
    ("Read", "/srv/a", "ro", 'mounts: [{host: "/srv/a", at: "/srv/a", mode: ro}]'),
])
def test_why_knows_the_workspace_by_its_mark(cli, make_record, event, path, mode, permit):
    make_record(mounts=[LIB, WORKSPACE | {"mode": mode}], protect=[".git/hooks", ".envrc"],
                hide=[".env", "secrets", "*.pem\x1b"],
                violations=[{"event": f"Filesystem{event}Violation", "detail": {"path": path}, "count": 1}])
    assert cli("why", "--json").json()["violations"][0]["policy"] == permit


@pytest.mark.parametrize("path, to, rule, permit", [
    ("/workspace/.git/config.lock", "/workspace/.git/config", "workspace.protect", "workspace: {protect: []}"),
    ("/workspace/.env", "/workspace/x", "workspace.hide", "workspace: {hide: []}"),
    ("/tmp/x", "/workspace/.env", "workspace.hide", "workspace: {hide: []}"),
    ("/tmp/x", "/workspace/lib/x", "mounts: /workspace/lib ro", 'mounts: [{host: "/srv/lib", at: "/workspace/lib", mode: rw}]'),
    ("/tmp/x", "/usr/x", "built-in: read-only root", None),
    ("/tmp/x", "/srv/x", "built-in: read-only root", 'mounts: [{host: "/srv/x", at: "/srv/x", mode: rw}]'),
])
def test_why_judges_a_rename_by_the_path_that_matched(cli, make_record, path, to, rule, permit):
    make_record(mounts=[LIB, WORKSPACE | {"mode": "rw"}], protect=[".git/config"], hide=[".env"],
                violations=[{"event": "FilesystemWriteViolation", "detail": {"path": path, "to": to}, "rule": rule, "count": 1}])
    assert cli("why", "--json").json()["violations"][0]["policy"] == permit


@pytest.mark.parametrize("detail, permit", [
    ({"syscall": "bind", "address": "::", "port": 80}, "network: {mode: loopback}"),
    ({"syscall": "bind", "address": "0.0.0.0", "port": 80}, "network: {mode: loopback}"),
    ({"syscall": "bind", "address": "198.51.100.7", "port": 80}, None),
    ({"syscall": "sendto", "host": "example.org", "address": "192.0.2.1"}, None),
    ({"syscall": "connect", "address": "unix:/run/x"}, None),
])
def test_why_suggests_only_a_network_of_this_build(cli, make_record, detail, permit):
    make_record(violations=[{"event": "NetworkAccessViolation", "detail": detail, "count": 1}])
    assert cli("why", "--json").json()["violations"][0]["policy"] == permit
    line = permit or ("nothing in a policy permits it" if "unix:" in detail["address"] else "nothing in this build permits it")
    assert f"  policy  {line}" in cli("why").out


def test_why_of_a_clean_run(cli, make_record):
    make_record()
    out = cli("why").out
    assert "nothing was recorded as denied\n" in out and "not watched" not in out
    make_record(not_observed=["FilesystemReadViolation", "a\x1b[2Jb", 7])
    assert "recorded as denied\nnot watched: reads\nnot watched: a\\x1b[2Jb\nnot watched: ?\n" in cli("why").out


def test_why_says_why_something_was_not_watched(cli, make_record):
    unseen = {"NetworkAccessViolation": "no filter", "FilesystemReadViolation": "at full\x1b speed", "SyscallViolation": "no filter"}
    make_record(not_observed=list(unseen), not_observed_why=unseen)
    assert cli("why").out.endswith("not watched: network, system calls: no filter\nnot watched: reads: at full\\x1b speed\n")
    assert cli("why", "--json").json()["not_observed_why"] == unseen


def test_hidden_files_are_named(cli, make_record):
    make_record(hidden=[".env", "a\x1b.pem"])
    assert "hidden  .env, a\\x1b.pem (workspace.hide)\n" in cli("why").out
    assert "hidden    .env, a\\x1b.pem (workspace.hide)\n" in cli("runs", "show").out
    make_record(hidden=[])
    assert "workspace.hide" not in cli("why").out + cli("runs", "show").out


@pytest.mark.parametrize("reason, clock, limits, says", [
    ("output", None, {"output_bytes": 10 << 20}, "stopped: more than 10MiB of output (limits.output)"),
    ("memory", None, {"mem_bytes": 1 << 30}, "stopped: more than 1GiB of memory (limits.memory)"),
    ("timeout", "budget", {"budget_ms": 1500}, "stopped after 1.5 s (limits.budget)"),
    ("timeout", "startup", {"startup_ms": 300}, "stopped: not started within 300 ms (limits.startup)"),
    ("processes", None, {"processes": 9}, "stopped: more than 9 processes (limits.processes)"),
    ("violation", None, {}, "stopped at what was denied (on_violation: kill)"),
    ("timeout", "command", {"command_ms": None}, "timeout (command)"),
])
def test_a_stop_names_its_limit(cli, make_record, reason, clock, limits, says):
    make_record(command=["sh", "-c", "a b"], limits=limits, termination={"reason": reason, "clock": clock})
    assert f" ago: sh -c 'a b', {says}\n" in cli("why").out


def test_why_of_a_run_that_did_not_start(cli, make_record):
    make_record(termination={"reason": "start_failed"}, error={"code": "enoent", "stage": "agent", "text": "no such\x1bprogram"})
    answer = cli("why")
    assert answer.status == 0 and "start_failed\nno such\\x1bprogram\n" in answer.out
    assert cli("why", "--json").json()["error"]["code"] == "enoent"


@pytest.mark.parametrize("comm, rule, line", [
    ("sh", "mounts", "  by      sh, rule mounts\n"), ("", "limits.command", "  by      rule limits.command\n"),
    ("sh", "", "  by      sh\n"), ("", "", ""),
])
def test_why_leaves_out_what_is_not_known(cli, make_record, comm, rule, line):
    make_record(violations=[{"event": "TimeoutViolation", "detail": {}, "count": 1, "comm": comm, "rule": rule, "say": "s"}])
    assert f"TimeoutViolation\n{line}  say     s\n" in cli("why").out


def test_a_hostile_result_is_data(cli, make_record):
    make_record(violations=["text", {"event": 7, "detail": "x", "comm": None}, {"detail": {"path": ["a"]}}],
                command="not a list", usage=[], termination=None, policy="x", mounts={"a": 1}, enforced=[{"what": "z"}])
    for command in (["why"], ["why", "--json"], ["runs", "show"], ["runs", "ls"], ["runs", "ls", "--json"]):
        assert cli(*command).status == 0, command


# ---- verify, rm, gc --------------------------------------------------------------------------

@pytest.fixture
def three_events(make_record):
    return make_record(events=[("RunStarted", {"n": 1}), ("ExecStarted", {"n": 2}), ("RunExited", {"n": 3})])


def test_verify_good(cli, three_events):
    assert cli("runs", "verify").out == f"{three_events}: good\n"
    assert cli("runs", "verify", "--json").json()["good"] is True


def rewrite(path, change):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(change(lines)))


def drop(lines, i):
    return lines[:i] + lines[i + 1:]


@pytest.mark.parametrize("change, line", [
    (lambda lines: [lines[0], lines[1].replace('"n":2', '"n":9'), lines[2]], 2),
    (lambda lines: drop(lines, 1), 2),
    (lambda lines: lines[:2], None),
    (lambda lines: [lines[1], lines[0], lines[2]], 1),
    (lambda lines: lines + [lines[2]], 4),
])
def test_verify_names_the_first_bad_line(cli, runs, three_events, change, line):
    rewrite(runs / three_events / "logs" / "events.jsonl", change)
    answer = cli("runs", "verify", three_events)
    assert answer.status == 1 and "events.jsonl" in answer.out + answer.err, answer
    told = cli("runs", "verify", three_events, "--json").json()
    assert told["good"] is False and told["reason"]
    if line:
        assert told["line"] == line


def test_verify_sees_a_changed_result(cli, runs, three_events):
    path = runs / three_events / "result.json"
    path.write_text(path.read_text().replace("exited", "exitex"))
    answer = cli("runs", "verify")
    assert answer.status == 1 and "result.json" in answer.out


def test_rm(cli, make_record, runs):
    first, second = make_record(), make_record()
    assert cli("runs", "rm", "").status == 1, "an unset variable removes nothing"
    assert cli("runs", "rm", first, "--json").json() == {"removed": [first]}
    assert not (runs / first).exists() and (runs / second).exists()
    assert cli("runs", "rm", first).status == 1


def test_gc(cli, make_record, runs):
    ids = [make_record() for _ in range(4)]
    assert cli("runs", "gc", "--json").json() == {"removed": 0}
    assert cli("runs", "gc", "--runs", "1", "--json").json() == {"removed": 3}
    assert sum((runs / run).exists() for run in ids) == 1


# ---- the copy-on-write layer -------------------------------------------------------------------

@pytest.fixture
def make_cow(make_record, runs, project):
    """make_cow(protect=[…]) -> a finished copy-on-write run over the project: (id, its upper folder)."""
    def make(**changes):
        run = make_record(mounts=[{"host": str(project), "at": "/workspace", "mode": "cow", "workspace": True}],
                          events=[("RunStarted", {})], **changes)
        upper = runs / run / "cow" / "upper"
        upper.mkdir(parents=True)
        return run, upper

    return make


@pytest.fixture
def cow(make_cow, project):
    """One over a project with something in it."""
    (project / "same").write_text("same\n")
    (project / "changed").write_text("".join(f"line {n}\n" for n in range(30)))
    (project / "gone").write_text("gone\n")
    (project / "folder").mkdir()
    (project / "folder" / "in").write_text("in\n")
    (project / "opaque").mkdir()
    (project / "opaque" / "old").write_text("old\n")
    (project / "opaque" / "kept").write_text("kept\n")
    return make_cow()


def whiteout(path):
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(0, 0))


def fill(upper):
    (upper / "same").write_text("same\n")
    lines = [f"line {n}\n" for n in range(30)]
    lines[15] = "another\n"
    (upper / "changed").write_text("".join(lines))
    whiteout(upper / "gone")
    whiteout(upper / "folder")
    (upper / "opaque").mkdir()
    os.setxattr(upper / "opaque", "user.overlay.opaque", b"y")
    (upper / "opaque" / "kept").write_text("kept\n")
    (upper / "new").mkdir()
    (upper / "new" / "file").write_text("new\n")
    (upper / "link").symlink_to("new/file")


def changes(cli, run, *paths):
    told = cli("runs", "diff", run, "--json", *paths).json()["changes"]
    return [(change["change"][0].upper(), change["path"]) for change in told]


ALL = [("M", "changed"), ("D", "folder/in"), ("D", "folder/"), ("D", "gone"), ("A", "link"), ("A", "new/"),
       ("A", "new/file"), ("D", "opaque/old")]


def test_diff_lists_what_changed(cli, cow):
    run, upper = cow
    fill(upper)
    assert changes(cli, run) == ALL
    assert changes(cli, run, "new/") == [("A", "new/"), ("A", "new/file")]
    assert changes(cli, run, "./new/file", "gone") == [("D", "gone"), ("A", "new/"), ("A", "new/file")]
    out = cli("runs", "diff", run).out
    assert "@@ -13,7 +13,7 @@\n line 12\n line 13\n line 14\n-line 15\n+another\n line 16\n" in out
    assert "A link -> new/file\n" in out and "+new\n" in out and "-gone\n" in out
    assert "@@" not in cli("runs", "diff", run, "--names-only").out
    assert cli("runs", "diff").out == out, "without a name it is the last run"


@pytest.mark.parametrize("command", ["diff", "commit"])
def test_nothing_changed_is_said(cli, make_cow, command):
    make_cow()
    answer = cli("runs", command)
    assert (answer.status, answer.out, answer.err) == (0, "", "nothing changed\n")
    assert cli("runs", command, "--json").err == "" == cli("runs", command, "-q").err


def test_diff_is_a_patch(cli, cow, project):
    import shutil
    import subprocess
    if not shutil.which("patch"):
        pytest.skip("patch: not installed")
    run, upper = cow
    fill(upper)
    patch = cli("runs", "diff", run, "changed", "gone").out
    subprocess.run(["patch", "-p1"], cwd=project, input=patch, encoding="utf-8", check=True,
                   stdout=subprocess.DEVNULL, timeout=30)
    assert (project / "changed").read_text() == (upper / "changed").read_text()
    assert not (project / "gone").exists()


def test_diff_of_what_is_no_small_text(cli, cow):
    run, upper = cow
    (upper / "binary").write_bytes(b"\x00\x01" * 50)
    (upper / "big").write_text("x\n" * 200000)
    (upper / "open-end").write_text("no newline")
    (upper / "changed").write_text("".join(f"other {n}\n" for n in range(30)))
    out = cli("runs", "diff", run).out
    assert "A binary\n  not text, 100 bytes\n" in out and "A big\n  too long for a diff" in out
    assert "+no newline\n\\ no newline at the end\n" in out
    assert out.count("\n-line") == 30 and out.count("\n+other") == 30


def test_hostile_names_are_escaped(cli, cow):
    run, upper = cow
    with open(os.fsencode(upper) + b"/a\x1b[2J\n\xff\xe2\x80\xae", "w") as file:
        file.write("x\n")
    answer = cli("runs", "diff", run)
    assert "A a\\x1b[2J\\n\\xff\\u{202e}\n" in answer.out and "\x1b" not in answer.out
    assert cli("runs", "commit", run, "--json").json()["applied"][0]["path"] == "a\\x1b[2J\\n\\xff\\u{202e}"


def test_diff_needs_a_layer(cli, make_record):
    answer = cli("runs", "diff", make_record())
    assert answer.status == 1 and "--cow" in answer.err
    assert cli("runs", "diff", "").status == 1


def tree(path):
    return {str(p.relative_to(path)): p.read_text() if p.is_file() else None for p in path.rglob("*")}


def test_commit_applies_all_and_is_recorded(cli, cow, project, runs):
    run, upper = cow
    fill(upper)
    (upper / "new" / "file").chmod(0o4755)
    before = tree(project)
    dry = cli("runs", "commit", run, "--dry-run")
    assert dry.status == 0 and tree(project) == before and len(dry.out.splitlines()) == len(ALL)
    answer = cli("runs", "commit", run)
    assert answer.status == 0, answer
    assert [tuple(line.split(" ", 1)) for line in answer.out.splitlines()] == ALL
    assert tree(project) == {"same": "same\n", "changed": (upper / "changed").read_text(), "opaque": None,
                             "opaque/kept": "kept\n", "new": None, "new/file": "new\n", "link": "new\n"}
    assert (project / "new" / "file").stat().st_mode & 0o7777 == 0o755, "no set-user-id"
    assert os.readlink(project / "link") == "new/file"
    assert cli("runs", "verify", run).status == 0
    last = (runs / run / "logs" / "events.jsonl").read_text().splitlines()[-1]
    event = json.loads(last)
    assert event["event"] == "Committed" and event["payload"]["applied"] == len(ALL)
    assert changes(cli, run) == [("M", "new/file")], "nothing is left but the bit that was dropped"


def test_commit_of_named_paths_only(cli, cow, project):
    run, upper = cow
    fill(upper)
    assert cli("runs", "commit", run, "new/file").status == 0
    assert (project / "new" / "file").exists() and (project / "gone").exists() and not (project / "link").is_symlink()


GUARDED = [".git/hooks/pre-commit", ".git/config", ".envrc", ".vscode/tasks.json", "sub/.git/config", ".GIT/config",
           ".git/objects/info/alternates"]


@pytest.mark.parametrize("path", GUARDED)
def test_guarded_names_only_when_named(cli, cow, project, path):
    run, upper = cow
    (upper / path).parent.mkdir(parents=True, exist_ok=True)
    (upper / path).write_text("evil\n")
    answer = cli("runs", "commit", run)
    assert answer.status == 1 and "left out" in answer.out and not (project / path).exists()
    assert cli("runs", "commit", run, ".").status == 1 and not (project / path).exists()
    assert cli("runs", "commit", run, path).status == 0 and (project / path).read_text() == "evil\n"


BARE = ["config", "Config", "config.worktree", "commondir", "hooks/post-checkout", "HOOKS/sub/x"]


@pytest.mark.parametrize("where", ["layer", "workspace"])
@pytest.mark.parametrize("name", BARE)
@pytest.mark.parametrize("folder", ["", "docs/"])
def test_what_git_runs_beside_a_head(cli, cow, project, folder, name, where):
    """A folder with HEAD, objects and refs is a repository to git, whatever its name is."""
    run, upper = cow
    path = folder + name
    (upper / path).parent.mkdir(parents=True, exist_ok=True)
    (upper / path).write_text("evil\n")
    head = (upper if where == "layer" else project) / folder / "HEAD"
    head.parent.mkdir(exist_ok=True)
    head.symlink_to("refs/heads/main")
    (upper / folder / "fine").write_text("fine\n")
    for words in ([], [run, "."], [run, folder or "."]):
        answer = cli("runs", "commit", *words)
        assert answer.status == 1 and "git takes" in answer.out and not (project / path).exists(), (words, answer)
    assert (project / folder / "fine").exists()
    assert {change["path"] for change in cli("runs", "diff", "--json").json()["changes"] if change["guarded"]} >= {path}
    assert cli("runs", "commit", run, path).status == 0 and (project / path).read_text() == "evil\n"


@pytest.mark.parametrize("name", BARE)
def test_no_head_comes_to_what_git_runs(cli, cow, project, name):
    """The other order, in two commits."""
    run, upper = cow
    (upper / "docs" / name).parent.mkdir(parents=True)
    (upper / "docs" / name).write_text("fine\n")
    assert cli("runs", "commit", run).status == 0 and (project / "docs" / name).exists()
    (upper / "docs" / "HEAD").write_text("ref: refs/heads/main\n")
    answer = cli("runs", "commit", run)
    folded = name in ("Config", "HOOKS/sub/x")  # the same name where a file system has no cases, which it is not here
    assert (project / "docs" / "HEAD").exists() is folded and answer.status == (0 if folded else 1)
    assert cli("runs", "commit", run, "docs/HEAD").status == 0 and (project / "docs" / "HEAD").exists()


@pytest.mark.parametrize("path", ["src/hooks/use.js", "config", "a/config/b", "HEAD", "a/HEAD", "a/hooks", "a/commondir"])
def test_such_names_alone_pass(cli, cow, project, path):
    run, upper = cow
    (project / "config.d").mkdir()
    (upper / path).parent.mkdir(parents=True, exist_ok=True)
    (upper / path).write_text("fine\n")
    assert cli("runs", "commit", run).status == 0 and (project / path).exists()


def test_many_folders_named_hooks(cli, cow, project):
    run, upper = cow
    (upper / "/".join(["hooks"] * 20)).mkdir(parents=True)
    answer = cli("runs", "commit", run)
    assert answer.status == 1 and "git takes" in answer.out and (project / "hooks/hooks").is_dir()


@pytest.mark.parametrize("name", ["HEAD", "refs", "objects"])
@pytest.mark.parametrize("by", ["nothing", "link"])
def test_git_stays_a_repository(cli, make_cow, project, name, by):
    """Without one of these git looks on: for a repository in the folders above."""
    git = project / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "index").write_text("0\n")
    for folder in ("refs", "objects"):
        (git / folder).mkdir()
    run, upper = make_cow()
    (upper / ".git").mkdir()
    whiteout(upper / ".git" / "index")
    whiteout(upper / ".git" / name) if by == "nothing" else (upper / ".git" / name).symlink_to("x")
    for words in ([run], [run, "."]):
        answer = cli("runs", "commit", *words)
        assert answer.status == 1 and f".git/{name}" in answer.out and "another folder" in answer.out
        assert (git / name).exists() and not (git / name).is_symlink() and not (git / "index").exists()
    cli("runs", "commit", run, f".git/{name}")
    assert not (git / name).exists()


@pytest.mark.parametrize("path", ["conf/keys", "conf/keys/a", "CONF/keys", ".env", "sub/.env", "secrets/a"])
def test_what_the_policy_protects_or_hides(cli, make_cow, project, path):
    """The policy's own names hold for a commit as they do for a writable workspace."""
    run, upper = make_cow(protect=["conf/keys", 7, ""], hide=[".env", "secrets"])
    (upper / path).parent.mkdir(parents=True, exist_ok=True)
    (upper / path).write_text("evil\n")
    (upper / "conf2").write_text("fine\n")
    for words in ([run], [run, "."], []):
        answer = cli("runs", "commit", *words)
        assert answer.status == 1 and "the policy" in answer.out and not (project / path).exists(), words
    assert (project / "conf2").exists()
    assert {change["path"] for change in cli("runs", "diff", "--json").json()["changes"] if change["guarded"]} >= {path}
    assert cli("runs", "commit", run, path).status == 0 and (project / path).read_text() == "evil\n"


def test_no_link_stands_in_for_a_folder_above_a_protected_name(cli, make_cow, project):
    run, upper = make_cow(protect=["conf/keys"])
    (upper / "other").mkdir()
    (upper / "other" / "keys").write_text("evil\n")
    (upper / "conf").symlink_to("other")
    assert cli("runs", "commit", run).status == 1 and not (project / "conf").is_symlink()
    assert cli("runs", "commit", run, "conf").status == 0 and (project / "conf").is_symlink()


def test_a_folder_above_a_protected_name_passes(cli, make_cow, project):
    run, upper = make_cow(protect=["conf/keys"])
    (upper / "conf").mkdir()
    (upper / "conf" / "fine").write_text("fine\n")
    assert cli("runs", "commit", run).status == 0 and (project / "conf" / "fine").exists()


def test_git_data_passes(cli, cow, project):
    run, upper = cow
    (project / ".git").mkdir()
    (upper / ".git" / "refs" / "heads").mkdir(parents=True)
    (upper / ".git" / "refs" / "heads" / "main").write_text("0\n")
    (upper / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert cli("runs", "commit", run).status == 0
    assert (project / ".git" / "HEAD").exists()


@pytest.mark.parametrize("path", ["caisson.yaml", "sub/caisson.yaml", "Caisson.yaml"])
def test_a_policy_file_is_never_written(cli, cow, project, path):
    run, upper = cow
    (upper / path).parent.mkdir(exist_ok=True)
    (upper / path).write_text("version: 1\n")
    for words in ([], [path], ["--force", path]):
        answer = cli("runs", "commit", run, *words)
        assert answer.status == 1 and "never written" in answer.out
    assert not (project / path).exists()


@pytest.mark.parametrize("target, leaves", [("/etc", True), ("../..", True), ("a/../../b", True), ("a/../b", True), ("a/b", False),
                                            ("./a", False)])
def test_links_out_of_the_workspace(cli, cow, project, target, leaves):
    run, upper = cow
    (upper / "link").symlink_to(target)
    answer = cli("runs", "commit", run)
    assert (answer.status == 1) is leaves and (project / "link").is_symlink() is not leaves
    assert ("out of the workspace" in cli("runs", "diff", run).out) is leaves
    if leaves:
        assert cli("runs", "commit", run, "link").status == 0 and os.readlink(project / "link") == target


def test_devices_sockets_pipes_stay_out(cli, cow, project):
    run, upper = cow
    os.mkfifo(upper / "pipe")
    (upper / "fine").write_text("fine\n")
    answer = cli("runs", "commit", run)
    assert answer.status == 1 and "pipe" in answer.out and sorted(os.listdir(project))[1] == "fine"
    assert not (project / "pipe").exists()


def test_what_changed_meanwhile_is_kept(cli, cow, project):
    run, upper = cow
    fill(upper)
    import time
    time.sleep(0.05)
    (project / "changed").write_text("mine\n")
    answer = cli("runs", "commit", run, "changed")
    assert answer.status == 1 and "--force" in answer.out and (project / "changed").read_text() == "mine\n"
    assert cli("runs", "commit", run, "--force", "changed").status == 0
    assert "another\n" in (project / "changed").read_text()


def test_a_folder_that_became_a_link_is_no_way_out(cli, cow, project, tmp_path):
    run, upper = cow
    (upper / "opaque").mkdir()
    (upper / "opaque" / "kept").write_text("evil\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("precious\n")
    for name in ("old", "kept"):
        (project / "opaque" / name).unlink()
    (project / "opaque").rmdir()
    (project / "opaque").symlink_to(outside)
    cli("runs", "commit", run, "--force")
    assert (outside / "kept").read_text() == "precious\n"


def test_a_sparse_file_costs_nothing(cli, cow, project):
    run, upper = cow
    with open(upper / "huge", "wb") as file:
        file.seek(1 << 20)
        file.write(b"middle")
        file.truncate(1 << 33)
    assert cli("runs", "commit", run).status == 0
    done = os.stat(project / "huge")
    assert done.st_size == 1 << 33 and done.st_blocks * 512 < 1 << 22
    with open(project / "huge", "rb") as file:
        file.seek(1 << 20)
        assert file.read(6) == b"middle"


def test_foreign_layers_are_refused(cli, cow):
    run, upper = cow
    (upper / "new").mkdir()
    os.setxattr(upper / "new", "user.overlay.redirect", b"/etc")
    answer = cli("runs", "diff", run)
    assert answer.status == 1 and "redirect" in answer.err


def test_a_layer_or_result_behind_a_link_is_not_read(cli, cow, runs, tmp_path):
    run, upper = cow
    fill(upper)
    os.rename(upper.parent, tmp_path / "cow")
    upper.parent.symlink_to(tmp_path / "cow")
    assert cli("runs", "diff", run).status == 1
    os.rename(runs / run / "result.json", tmp_path / "result.moved")
    (runs / run / "result.json").symlink_to(tmp_path / "result.moved")
    assert cli("runs", "show", run).status == 1


def test_depth_is_bounded(cli, cow):
    run, upper = cow
    deep = upper
    for _ in range(150):
        deep = deep / "d"
        deep.mkdir()
    answer = cli("runs", "diff", run)
    assert answer.status == 1 and "too deep" in answer.err


def test_a_tampered_record_stops_a_commit(cli, cow, project, runs):
    run, upper = cow
    fill(upper)
    log = runs / run / "logs" / "events.jsonl"
    log.write_text(log.read_text().replace("RunStarted", "RunStartex"))
    before = tree(project)
    assert cli("runs", "commit", run).status == 1
    assert tree(project) == before


def test_renames_are_inferred_and_apply(cli, cow, project):
    import shutil
    import subprocess
    if not shutil.which("git"):
        pytest.skip("git: not installed")
    run, upper = cow
    whiteout(upper / "gone")
    whiteout(upper / "changed")
    (upper / "here").write_text("gone\n")
    (upper / "here").chmod(0o755)
    (upper / "apart").write_text("not the same\n")
    told = cli("runs", "diff", run, "--json").json()["changes"]
    assert {(c["path"], c.get("from"), c.get("to")) for c in told} == {
        ("apart", None, None), ("changed", None, None), ("gone", None, "here"), ("here", "gone", None)}
    out = cli("runs", "diff", run).out
    assert "D gone (now here)\n" in out and "R here (was gone) (mode 755, was 644)\n" in out and "-gone" not in out
    (project / "here").unlink(missing_ok=True)
    subprocess.run(["git", "apply", "-p1"], cwd=project, input=cli("runs", "diff", run, "gone", "here").out, encoding="utf-8",
                   check=True, timeout=30)
    assert (project / "here").read_text() == "gone\n" and not (project / "gone").exists()


def test_half_of_a_rename_stands_for_itself(cli, cow, project):
    run, upper = cow
    whiteout(upper / "gone")
    (upper / "here").write_text("gone\n")
    assert "+gone\n" in cli("runs", "diff", run, "here").out and "-gone\n" in cli("runs", "diff", run, "gone").out


def test_what_a_commit_wrote_is_no_change_of_somebody_elses(cli, cow, project):
    run, upper = cow
    (upper / "changed").write_text("first\n")
    (upper / "added").write_text("first\n")
    (upper / "link").symlink_to("gone")
    assert cli("runs", "commit", run).status == 0
    for name in ("changed", "added"):
        (upper / name).write_text("second\n")
    (upper / "link").unlink()
    (upper / "link").symlink_to("same")
    answer = cli("runs", "commit", run)
    assert answer.status == 0 and (project / "changed").read_text() == (project / "added").read_text() == "second\n", answer
    assert os.readlink(project / "link") == "same"
    for name in ("changed", "added"):
        (upper / name).write_text("third\n")
    (project / "added").write_text("mine\n")
    answer = cli("runs", "commit", run)
    assert answer.status == 1 and "added left out: it changed in the workspace" in answer.out, answer
    assert (project / "added").read_text() == "mine\n" and (project / "changed").read_text() == "third\n"


def test_what_a_killed_commit_left_is_removed(cli, cow, project):
    run, upper = cow
    fill(upper)
    (project / f".caisson-{run}").write_text("half")
    assert cli("runs", "commit", run).status == 0
    assert not [name for name in os.listdir(project) if name.startswith(".caisson")]


def test_two_commits_at_once(cli, cow, project):
    import fcntl
    run, upper = cow
    fill(upper)
    with open(upper.parent / "committed", "w") as book:
        fcntl.flock(book, fcntl.LOCK_EX)
        answer = cli("runs", "commit", run)
        assert answer.status == 1 and "another commit" in answer.err
    assert cli("runs", "commit", run).status == 0


def test_a_torn_book_refuses(cli, cow, project):
    """What the book does not have was changed by somebody else."""
    run, upper = cow
    (upper / "changed").write_text("first\n")
    assert cli("runs", "commit", run).status == 0
    book = upper.parent / "committed"
    book.write_bytes(book.read_bytes()[:-3])
    (upper / "changed").write_text("second\n")
    assert cli("runs", "commit", run).status == 1 and (project / "changed").read_text() == "first\n"


def test_temporary_files_do_not_stay(cli, cow, project):
    run, upper = cow
    fill(upper)
    cli("runs", "commit", run)
    assert not [name for name in os.listdir(project) if name.startswith(".caisson")]


def test_random_diffs_patch_to_the_same(cli, cow, project):
    import random
    import shutil
    import subprocess
    if not shutil.which("patch"):
        pytest.skip("patch: not installed")
    run, upper = cow
    rng = random.Random(7)
    for n in range(60):
        old = [f"{rng.randrange(9)}\n" for _ in range(rng.randrange(1, 60))]
        new = [line for line in old if rng.random() > 0.15]
        for _ in range(rng.randrange(6)):
            new.insert(rng.randrange(len(new) + 1), f"{rng.randrange(12)}\n")
        (project / f"r{n}").write_text("".join(old))
        (upper / f"r{n}").write_text("".join(new))
    patch = cli("runs", "diff", run).out
    subprocess.run(["patch", "-p1", "--fuzz=0"], cwd=project, input=patch, encoding="utf-8", check=True,
                   stdout=subprocess.DEVNULL, timeout=30)
    for n in range(60):
        wanted = (upper / f"r{n}").read_text()
        assert not wanted and not (project / f"r{n}").exists() or (project / f"r{n}").read_text() == wanted


def test_a_real_layer(cli, project):
    walls = {wall["name"]: wall for wall in cli("doctor", "--json").json()["walls"]}
    if not walls.get("process", {}).get("usable") or "caisson run" not in cli("help", "--markdown").out:
        pytest.skip("process: the wall cannot be used here")
    (project / "old").mkdir()
    (project / "old" / "file").write_text("old\n")
    (project / "text").write_text("one\n")
    answer = cli("run", "--cow", "--", "sh", "-c", "echo two >>text; rm -r old; mkdir old; echo n >old/new; ln -s text l")
    assert answer.status == 0, answer
    run = cli("runs", "ls", "--json").json()[0]["run_id"]
    wanted = [("A", "l"), ("D", "old/file"), ("A", "old/new"), ("M", "text")]
    assert changes(cli, run) == wanted
    assert (project / "text").read_text() == "one\n"
    assert cli("runs", "commit", run).status == 0
    assert (project / "text").read_text() == "one\ntwo\n" and os.listdir(project / "old") == ["new"]
    assert cli("runs", "verify", run).status == 0
