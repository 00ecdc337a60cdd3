"""The account of a run: result.json to the letter, the record, its proofs, and the layer of changes."""
import json
import os
import re
import shutil
import stat

import pytest

from run_fixtures import *

# A schema in Python: a type, a set of values, a pattern, [element], {key: schema}, or a tuple of these.
NUMBER, TEXT, COUNT = (int, float), str, int
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{12}")
NULL = type(None)
REASONS = {"exited", "signaled", "timeout", "memory", "output", "processes", "scratch", "violation", "cancelled", "lost", "start_failed"}
SOURCES = {"seccomp", "landlock", "cgroup", "proxy", "clock", "counter", "monitor", "agent", "guest", "policy"}
EVENTS = {"NetworkAccessViolation", "FilesystemWriteViolation", "FilesystemReadViolation", "TimeoutViolation",
          "ProcessLimitViolation", "SyscallViolation", "MemoryLimitViolation", "OutputLimitViolation", "ScratchLimitViolation",
          "StrictModeUnavailable", "StrictModeRequired", "PolicyOverride"}
VIOLATION = {"event": EVENTS, "time": TIME, "source": SOURCES, "pid": (COUNT, NULL), "comm?": (TEXT, NULL), "detail": (dict, TEXT, NULL),
             "rule": (TEXT, NULL), "certain": bool, "count": COUNT, "say": TEXT, "last?": TIME, "expected?": bool,
             "first?": TIME, "sampled?": bool}
RESULT = {
    "schema": {"caisson.result/1"}, "run_id": ID, "sandbox_id": ID, "started": TIME,
    "tier": {"local", "virtual", "auto", "balanced", "assisted", "strict"}, "backend": TEXT, "runtime": re.compile(r"[a-z]+/[a-z]+"),
    "command": [TEXT], "cwd": (TEXT, NULL),
    "termination": {"reason": REASONS, "clock": {"startup", "command", "budget", "idle", None}, "exit_code": (COUNT, NULL),
                    "signal": (COUNT, NULL), "signal_name": (re.compile(r"SIG[A-Z0-9]+"), NULL)},
    "usage": {"wall_ms": NUMBER, "cpu_ms": NUMBER, "mem_peak_bytes": (COUNT, NULL), "stdout_bytes": COUNT, "stderr_bytes": COUNT,
              "output_cut_bytes": COUNT, "scope": {"command", "sandbox"}},
    "violations": [VIOLATION], "enforced": [TEXT], "observed": [EVENTS], "not_observed": [EVENTS], "not_observed_why": dict, "no_effect": [{"key": TEXT, "why": TEXT}],
    "limits": dict, "mounts": [{"host": TEXT, "at": TEXT, "mode": {"ro", "rw", "cow"}, "workspace?": bool}], "hide?": [TEXT], "protect?": [TEXT], "hidden": [TEXT],
    "protect_not_enforced": [TEXT], "network": {"none", "loopback", "allow", "engine"},
    "forwards": [{"forward": TEXT, "connections": COUNT, "failed": COUNT, "sent_bytes": COUNT, "received_bytes": COUNT}],
    "policy": dict, "toolchains": [TEXT], "approval": (dict, NULL), "container": (dict, NULL), "env_passed": [TEXT], "host": {"kernel": TEXT, "arch": TEXT, "landlock_abi": COUNT, "caisson": TEXT},
    "timings": {"prepared_us?": COUNT, "cloned_us?": COUNT, "ready_us?": COUNT, "exec_us?": COUNT, "end_us?": COUNT, "gone_us?": COUNT},
    "log_incomplete": bool, "error": ({"code": TEXT, "stage": TEXT, "text": TEXT}, NULL), "tags?": [TEXT], "stdout_sha256?": TEXT,
}


def flaws(value, schema, at="result"):
    """What of `value` is not as `schema` says; keys with ? may be missing."""
    if isinstance(schema, dict):
        if not isinstance(value, dict):
            return [f"{at}: no object"]
        known = {key.rstrip("?") for key in schema}
        found = [f"{at}.{key}: unknown" for key in value if key not in known]
        for key, inner in schema.items():
            name = key.rstrip("?")
            if name in value:
                found += flaws(value[name], inner, f"{at}.{name}")
            elif not key.endswith("?"):
                found.append(f"{at}.{name}: missing")
        return found
    if isinstance(schema, list):
        if not isinstance(value, list):
            return [f"{at}: no list"]
        return [flaw for n, item in enumerate(value) for flaw in flaws(item, schema[0], f"{at}[{n}]")]
    if isinstance(schema, tuple):
        tried = [flaws(value, inner, at) for inner in schema]
        return min(tried, key=len)
    if isinstance(schema, set):
        return [] if value in schema else [f"{at}: {value!r} is not one of {sorted(map(str, schema))}"]
    if isinstance(schema, re.Pattern):
        return [] if isinstance(value, str) and schema.fullmatch(value) else [f"{at}: {value!r}"]
    good = isinstance(value, schema) and not (schema is int and isinstance(value, bool))
    return [] if good else [f"{at}: {value!r} is no {schema}"]


RUNS = {
    "good": (["true"], {}), "code": (["sh", "-c", "exit 3"], {}), "signal": (["sh", "-c", "kill -9 $$"], {}),
    "timeout": (["sleep", "9"], {"flags": ["--timeout", "200ms"]}), "missing": (["no-such"], {}),
    "denied": (["sh", "-c", "echo x >f; mkdir /usr/x; true"], {}), "output": (["yes"], {"flags": ["-l", "output=8KiB"]}),
    "tags": (["true"], {"flags": ["--tag", "one", "--tag", "two"]}), "landlock": (["sh", "-c", "echo x >f"], {"policy": LANDLOCK}),
    "local": (["true"], {"policy": LOCAL}), "rw": (["true"], {"flags": ["--rw"]}), "cow": (["true"], {"flags": ["--cow"]}),
    "startup": (["true"], {"policy": "version: 1\nlimits: {startup: 1ms}\n"}),
    "network": ([PYTHON, "-c", "import socket\nsocket.socket().connect_ex(('192.0.2.1', 9))"], {}),
}


@pytest.mark.parametrize("name", RUNS)
def test_schema(box, name):
    argv, more = RUNS[name]
    run = box.run(*argv, **more)
    assert flaws(run.result, RESULT) == [], run.result
    termination = run.result["termination"]
    assert (termination["clock"] is not None) == (termination["reason"] == "timeout")
    assert (termination["signal"] is None) == (termination["signal_name"] is None)
    assert run.result["command"] == argv
    kept = json.loads((box.record() / "result.json").read_text())
    assert kept == run.result, "the file and the record say the same"
    assert box.cli("runs", "verify", run.result["run_id"]).status == 0
    shown = box.cli("runs", "show", "--json")
    assert json.loads(shown.out)["run_id"] == run.result["run_id"]
    assert stat.S_IMODE((box.record()).stat().st_mode) & 0o077 == 0, "nobody else reads a record"


def test_the_schema_check_sees(user_box):
    result = user_box.run("sh", "-c", "echo x >f").result
    for change in ({"extra": 1}, {"run_id": "x"}, {"violations": [{}]}, {"termination": {}}, {"log_incomplete": 0}):
        assert flaws(result | change, RESULT)
    assert flaws({key: result[key] for key in result if key != "usage"}, RESULT) == ["result.usage: missing"]


def test_policy_and_names_not_values(box):
    run = box.run("true", policy="version: 1\nenv: {pass: [TOKEN], set: {KEY: value-of-key}}\n", env={"TOKEN": "value-of-token"})
    text = "".join(path.read_text(errors="replace") for path in box.record().rglob("*") if path.is_file())
    assert "TOKEN" in text and "value-of-token" not in text and "value-of-token" not in json.dumps(run.result)
    assert run.result["policy"]["trusted"] is True and re.fullmatch("[0-9a-f]{64}", run.result["policy"]["sha256"])


@pytest.mark.parametrize("secret", ["ghp_" + "a1B2" * 9, "AKIA" + "ABCDEFGHIJKLMNOP", "sk-ant-" + "x1" * 24])
def test_secrets_are_redacted_in_what_is_written(box, secret):
    run = box.sh(f"echo {secret} >/dev/null; cat /workspace/{secret}; echo x >/workspace/{secret}; true")
    text = "".join(path.read_text(errors="replace") for path in box.record().rglob("*") if path.is_file() and path.parent.name != "logs"
                   or path.name == "events.jsonl")
    assert secret not in text and "[REDACTED" in text, run


def test_no_record_writes_nothing(box):
    before = sorted(str(path) for path in box.base.rglob("*"))
    run = box.run("echo", "hi", flags=["--no-record"], result=False)
    assert run.status == 0 and sorted(str(path) for path in box.base.rglob("*")) == before


def test_no_record_with_a_result(box):
    run = box.run("echo", "hi", flags=["--no-record"])
    assert flaws(run.result, RESULT) == [] and not box.runs.exists()


def test_no_record_and_a_layer(box):
    run = box.run("true", flags=["--no-record", "--cow"])
    assert run.status == 125 and "--no-record" in run.err, run


def test_json_flag(box):
    run = box.cli("run", "--json", "--", "sh", "-c", "echo out; exit 2")
    assert run.status == 2 and flaws(json.loads(run.out), RESULT) == []


def test_a_result_replaces_a_longer_one(box):
    path = box.base / "r.json"
    path.write_text("x" * 100000)
    box.give()
    box.run("true", flags=["--result", path], result=False)
    assert flaws(json.loads(path.read_text()), RESULT) == []


def test_the_programs_output_is_kept(box):
    run = box.sh("echo out; echo err >&2")
    logs = box.record(run.result["run_id"]) / "logs"
    assert (logs / "stdout").read_text() == "out\n" and (logs / "stderr").read_text() == "err\n"


# ---- proofs ------------------------------------------------------------------------------------

def tampered(box, change):
    run = box.sh("echo x >f; true")
    path = box.record(run.result["run_id"]) / "logs" / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.chmod(0o600)
    path.write_text("".join(change(lines)))
    return box.cli("runs", "verify", run.result["run_id"]), len(lines)


CHANGES = {
    "a word": (lambda lines: lines[:1] + [lines[1].replace('"event":"', '"event":"X', 1)] + lines[2:], "2"),
    "a line less": (lambda lines: lines[:1] + lines[2:], "2"),
    "a line twice": (lambda lines: lines[:2] + lines[1:], "3"),
    "two swapped": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "2"),
    "the first": (lambda lines: lines[1:], "1"),
    "the last": (lambda lines: lines[:-1], ""),
    "a forged one": (lambda lines: [*lines, lines[-1]], ""),
    "no end of line": (lambda lines: lines[:-1] + [lines[-1].rstrip("\n")], ""),
    "everything": (lambda lines: [], ""),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_tampered_record_is_named_with_its_line(user_box, name):
    change, line = CHANGES[name]
    told, _ = tampered(user_box, change)
    assert told.status == 1, told
    assert re.search(rf"\b{line}\b" if line else ".", told.text + told.err), told


@pytest.mark.parametrize("file", ["result.json", "manifest.json", "state.json", "logs/stdout"])
def test_tampered_files_are_named(user_box, file):
    run = user_box.run("echo", "out")
    path = user_box.record() / file
    path.chmod(0o600)
    path.write_text(path.read_text().replace("t", "T", 1) + " ")
    told = user_box.cli("runs", "verify", run.result["run_id"])
    assert told.status == 1 and file.split("/")[-1] in told.text + told.err, told


def test_a_chain_that_was_made_anew_does_not_match_its_head(user_box):
    """Whoever can write the record, but not heads.jsonl, is found out."""
    first, second = (user_box.sh(f"echo x >{name}; true").result["run_id"] for name in "ab")
    source, target = (user_box.record(run) / "logs" / "events.jsonl" for run in (first, second))
    target.chmod(0o600)
    target.write_text(source.read_text())
    assert user_box.cli("runs", "verify", second).status == 1
    assert user_box.cli("runs", "verify", first).status == 0


def test_list_show_remove_collect(box):
    ids = [box.run("sh", "-c", f"exit {n}").result["run_id"] for n in range(3)]
    listed = json.loads(box.cli("runs", "ls", "--json").out)
    assert [run["run_id"] for run in listed] == ids[::-1], "newest first"
    assert [run["termination"]["exit_code"] for run in listed] == [2, 1, 0]
    assert box.cli("runs", "rm", ids[1]).status == 0 and not (box.runs / ids[1]).exists()
    assert box.cli("runs", "gc", "--runs", "1").status == 0
    assert [run["run_id"] for run in json.loads(box.cli("runs", "ls", "--json").out)] == [ids[2]]
    assert box.cli("runs", "rm", "../../home").status != 0 and box.home.exists()


def test_a_running_run_is_not_removed(box):
    process = box.start("sh", "-c", "echo up; sleep 20")
    assert process.stdout.readline() == b"up\n"
    run_id = box.record().name
    listed = json.loads(box.cli("runs", "ls", "--json").out)
    assert [run["status"] for run in listed] == ["running"]
    assert box.cli("runs", "rm", run_id).status != 0 and (box.runs / run_id).exists()
    box.cli("runs", "gc", "--runs", "1")
    assert (box.runs / run_id).exists()
    process.terminate()
    process.communicate(timeout=10)


def test_retention_is_automatic(user_box):
    """200 runs are kept; with an eighth more one run in eight looks."""
    user_box.run("true", result=False)
    template = user_box.record()
    for n in range(240):
        fake = user_box.runs / f"20200101-{n // 60 % 24:02d}{n % 60:02d}00-{n:012x}"
        shutil.copytree(template, fake)
    user_box.give()
    for _ in range(100):  # not once in 600,000
        user_box.run("true", result=False)
        left = len([path for path in user_box.runs.iterdir() if path.name[0] == "2"])
        if left <= 201:
            break
    assert left <= 201


def test_why(box):
    run = box.sh("echo x >f; true")
    why = box.cli("why")
    assert why.status == 0 and "FilesystemWriteViolation" in why.text and "/workspace/f" in why.text, why
    assert "workspace:" in why.text and "rw" in why.text, "the lines that would permit it"
    named = box.cli("why", run.result["run_id"])
    assert named.text == why.text


# ---- a copy-on-write workspace -------------------------------------------------------------------

@pytest.fixture
def tree(box):
    for name in ("keep", "change", "delete", "move", "d/one", "d/two", "old/x"):
        box.file(name, f"{name}\n")
    (box.ws / "link").symlink_to("keep")
    return box


CHANGE = """
    set -e
    echo changed >change; rm delete; mv move moved; ln -sf change link; ln -s ../keep d/up
    echo new >d/new; rm -r old; mkdir -p fresh/deep; echo x >fresh/deep/x; rm d/one; chmod 755 d/two; mkdir old; echo y >old/y
"""
EXPECTED = {("M", "change"), ("D", "delete"), ("D", "move"), ("A", "moved"), ("M", "link"), ("A", "d/up"), ("A", "d/new"),
            ("D", "old/x"), ("A", "old/y"), ("A", "fresh/"), ("A", "fresh/deep/"), ("A", "fresh/deep/x"), ("D", "d/one"), ("M", "d/two")}


def state(folder):
    """Every path with what it is: to compare trees."""
    found = {}
    for path in sorted(folder.rglob("*")):
        at = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = (stat.S_IFMT(at.st_mode), None if path.is_symlink() else at.st_mode & 0o777, content)
    return found


def test_a_layer_changes_nothing_outside(tree):
    before = state(tree.ws)
    run = tree.sh(CHANGE + "cat change link; ls old", flags=["--cow"])
    assert run.status == 0 and run.text == "changed\nchanged\ny\n", run
    assert state(tree.ws) == before and run.facts == []


def test_without_a_name_the_last_copy_is_meant(tree):
    """A run in between that had no copy does not hide the work."""
    tree.sh("true")
    none = tree.cli("runs", "diff")
    assert none.status != 0 and "start it with --cow" in none.text + none.err, none
    tree.sh("echo first >first", flags=["--cow"])
    second = tree.sh("echo second >second", flags=["--cow"])
    tree.sh("true")
    told = json.loads(tree.cli("runs", "diff", "--json").out)
    assert [change["path"] for change in told["changes"]] == ["second"], told
    assert tree.cli("runs", "commit").status == 0 and (tree.ws / "second").read_text() == "second\n"
    assert not (tree.ws / "first").exists() and second.status == 0


def test_diff_and_commit(tree):
    run = tree.sh(CHANGE, flags=["--cow"])
    assert run.status == 0, run
    run_id = run.result["run_id"]
    told = json.loads(tree.cli("runs", "diff", run_id, "--json").out)["changes"]
    assert {(change["change"][0].upper(), change["path"]) for change in told} >= EXPECTED - {("M", "d/two")}, told
    before = state(tree.ws)
    assert tree.cli("runs", "commit", "--dry-run", run_id).status == 0 and state(tree.ws) == before
    done = tree.cli("runs", "commit", run_id)
    assert done.status == 0, done
    after = state(tree.ws)
    assert after["change"][2] == b"changed\n" and "delete" not in after and "move" not in after
    assert after["moved"][2] == b"move\n" and after["link"][2] == "change" and after["d/up"][2] == "../keep"
    assert after["fresh/deep/x"][2] == b"x\n" and set(k for k in after if k.startswith("old/")) == {"old/y"}
    assert "d/one" not in after and after["d/two"][1] == 0o755 and after["keep"] == before["keep"]
    assert all(path.lstat().st_uid == tree.uid for path in tree.ws.rglob("*"))


def test_commit_of_one_path(tree):
    run_id = tree.sh(CHANGE, flags=["--cow"]).result["run_id"]
    assert tree.cli("runs", "commit", run_id, "change").status == 0
    assert (tree.ws / "change").read_text() == "changed\n" and (tree.ws / "delete").exists()


def test_commit_refuses_what_changed_meanwhile(tree):
    run_id = tree.sh("echo theirs >change", flags=["--cow"]).result["run_id"]
    (tree.ws / "change").write_text("mine\n")
    os.utime(tree.ws / "change", (2e9, 2e9))
    done = tree.cli("runs", "commit", run_id)
    assert done.status != 0 and (tree.ws / "change").read_text() == "mine\n", done
    assert tree.cli("runs", "commit", "--force", run_id).status == 0
    assert (tree.ws / "change").read_text() == "theirs\n"


@pytest.mark.parametrize("name", [".git/hooks/pre-commit", ".envrc", ".vscode/tasks.json", ".git/config", "caisson.yaml"])
def test_commit_leaves_what_would_run(tree, name):
    run = tree.sh(f"mkdir -p $(dirname {name}); echo bad >{name}; echo good >good", flags=["--cow"])
    tree.cli("runs", "commit", run.result["run_id"])
    assert not (tree.ws / name).exists() and (tree.ws / "good").exists(), run


def test_a_link_in_a_layer_leads_nowhere(tree):
    """A changed path whose parent became a link must not be written through it."""
    outside = tree.base / "outside"
    outside.mkdir()
    run_id = tree.sh(f"rm -r d; mkdir d; echo bad >d/passwd; ln -s {outside} away; true", flags=["--cow"]).result["run_id"]
    shutil.rmtree(tree.ws / "d")
    (tree.ws / "d").symlink_to(outside)
    tree.cli("runs", "commit", "--force", run_id)
    assert list(outside.iterdir()) == []


def test_odd_things_in_a_layer(tree):
    run = tree.sh("mkfifo pipe; cp /bin/true suid; chmod 4755 suid; mkdir -m 0 closed; echo 'a\nb' >\"$(printf 'odd\\nname')\"; "
                  "mknod null c 0 0 2>/dev/null; echo done", flags=["--cow"])
    assert run.status == 0 and run.text.endswith("done\n"), run
    told = tree.cli("runs", "diff", run.result["run_id"])
    assert told.status == 0 and "odd\nname" not in told.text, told
    done = tree.cli("runs", "commit", run.result["run_id"])
    assert not (tree.ws / "pipe").exists(), done
    assert not (tree.ws / "suid").exists() or not (tree.ws / "suid").stat().st_mode & stat.S_ISUID
    assert tree.cli("runs", "rm", run.result["run_id"]).status == 0


def test_milliseconds_have_a_thousandth_at_most(box):
    """No 1.0760000000000001: digits beyond the microsecond are noise. Ten runs, as some times are short by luck."""
    for _ in range(10):
        box.run("true")
        texts = re.findall(r'"(?:wall|cpu)_ms": ([0-9.]+)', box.cli("runs", "show", "--json").text)
        assert len(texts) == 2 and all(len(text.partition(".")[2]) <= 3 for text in texts), texts
    assert box.cli("runs", "verify").status == 0


def test_a_refused_run_tells_no_secret_either(box):
    run = box.run("echo", "s3cr3t-value", flags=["--tier", "strict", "-e", "API_KEY=s3cr3t-value"])
    assert run.status == 125 and "s3cr3t-value" not in json.dumps(run.result), run
    assert "[REDACTED:API_KEY]" in json.dumps(run.result), run
