"""No key of a policy is silent: each does something, is refused, or is said to do nothing."""
import json

import pytest

from run_fixtures import *

IDLE = "version: 1\nlimits: {idle: 5s}\n"


def keys_without_effect(run):
    return {gap["key"] for gap in run.result["no_effect"]}


@pytest.mark.parametrize("text, word", [
    ("approval: required", "ApprovalRequired"), ("tier: HumanApprove", ""), ("tier: ManualOnly", ""), ("tier: strict", "StrictModeRequired"),
    ("tier: assisted\nbackend: process", "TierUnavailable"), ("network: {mode: engine}\nbackend: process", "docker or podman"),
    ("network: {mode: allow, allow: [example.org]}", "proxy"), ("backend: docker", "docker"),
    ("strict_when: [{command: 'touch *'}]", "StrictModeRequired"),
])
def test_refused_before_anything_starts(box, text, word):
    run = box.run("touch", "here", flags=["--rw"], policy=f"version: 1\nworkspace: {{path: {box.ws}, mode: rw}}\n{text}\n")
    assert run.status == 125 and run.reason == "start_failed" and word in run.err, run
    assert run.result["error"]["text"] and not (box.ws / "here").exists(), run


@pytest.mark.parametrize("text", ["network: {allow: [example.org]}", "network: {allow: [example.org], mode: loopback}",
                                  "network: {mode: engine, allow: [example.org]}"])
def test_hosts_without_their_mode(box, text):
    run = box.run("true", policy=f"version: 1\n{text}\n")
    assert run.status == 125 and ":2:" in run.err and "network.allow" in run.err and "expected mode: allow" in run.err, run


def test_hosts_and_a_stricter_mode_by_flag(box):
    policy = "version: 1\nnetwork: {mode: allow, allow: [example.org]}\n"
    run = box.run("true", policy=policy, flags=["-n", "none"])
    assert run.status == 0 and run.result["network"] == "none", run
    grants = [json.loads(line)["payload"] for line in (box.record() / "logs" / "events.jsonl").read_text().splitlines()
              if '"Grant"' in line]
    assert any(g["what"] == "network.allow" and g["now"] == "[]" and g["where"] == "--network" for g in grants), grants
    run = box.run("true", flags=["-n", "none", "--allow", "example.org"])
    assert run.status == 125 and "leave one of the two out" in run.err, run


@pytest.mark.parametrize("text, keys", [
    ("limits: {idle: 5s}", {"limits.idle"}), ("limits: {idle: 0}", set()), ("container: {image: debian}", {"container.image"}),
    ("container: {rootless: required}", {"container.rootless"}), ("container: {image: null, rootless: preferred}", set()),
    ("limits: {command: 5s}", set()),
])
def test_without_effect_and_said(box, text, keys):
    policy = f"version: 1\n{text}\n"
    run = box.run("true", policy=policy)
    assert run.status == 0 and keys_without_effect(run) == keys, run.result["no_effect"]
    path = box.policy(policy)[1]
    check = box.cli("policy", "check", path)
    explained = [line for line in box.cli("policy", "explain", "--policy", path).text.splitlines() if "no effect on run" in line]
    assert check.status == 0 and {line.split(":")[0] for line in explained} == keys
    for key in keys:
        assert f"{path}:2:" in check.text and f": {key}; no effect on run: " in check.text, check
    assert ("no effect" in check.text) == bool(keys), check
    remarks = json.loads(box.cli("policy", "check", "--json", path).out)["remarks"]
    assert len(remarks) == len(keys), remarks


def test_a_flag_without_effect_is_said_too(box):
    run = box.run("true", flags=["-l", "idle=5s"])
    assert run.status == 0 and keys_without_effect(run) == {"limits.idle"}, run


def test_a_wall_without_a_view(far_box):
    """On the landlock wall paths are the host's: what was asked of a view is not there, and the result says so."""
    policy = (f"{LANDLOCK}workspace: {{path: {far_box.ws}, at: /elsewhere, mode: rw}}\nscratch: {{at: /scratch, size: 1MiB}}\n"
              "on_violation: record\n")
    run = far_box.sh("head -c 3000000 /dev/zero >$TMPDIR/x && echo stored; mkdir -p .git/hooks", policy=policy)
    assert run.text == "stored\n" and run.status == far_box.is_root, run
    roots_own = {"workspace.mode"} if far_box.is_root else set()
    assert keys_without_effect(run) == {"workspace.at", "scratch.at", "scratch.size"} | roots_own, run.result["no_effect"]
    assert ".git/hooks" in run.result["protect_not_enforced"] and run.result["limits"]["means"]["scratch"] == "none"
    assert "ScratchLimitViolation" in run.result["not_observed"] and "fs-protect" not in run.result["enforced"]
    run = far_box.sh("true", policy=LANDLOCK)
    assert keys_without_effect(run) == set() and run.result["protect_not_enforced"] == [], "defaults are nobody's wish"


def test_a_wall_with_a_view(far_box):
    policy = f"version: 1\nworkspace: {{path: {far_box.ws}, at: /elsewhere, mode: rw}}\nscratch: {{at: /scratch, size: 1MiB}}\n"
    run = far_box.sh("pwd; head -c 3000000 /dev/zero >/scratch/x && echo stored", policy=policy)
    assert run.text == "/elsewhere\n" and run.events == {"ScratchLimitViolation"}, run
    assert keys_without_effect(run) == set() and run.result["limits"]["means"]["scratch"] == "tmpfs"


def test_what_nothing_can_see(box):
    """No wall, no facts: an empty list of violations must not read as good behaviour."""
    run = box.sh("cat /etc/shadow >/dev/null 2>&1; touch /usr/x 2>/dev/null && rm /usr/x; true", policy=LOCAL + "observe: [reads]\n")
    unseen = set(run.result["not_observed"])
    assert {"NetworkAccessViolation", "FilesystemWriteViolation", "FilesystemReadViolation", "SyscallViolation"} <= unseen, run
    assert set(run.result["not_observed_why"]) == unseen and keys_without_effect(run) == {"observe"}


def test_no_wall_keeps_nothing(box):
    box.file(".env", "TOKEN=x")
    policy = f"{LOCAL}workspace: {{path: {box.ws}, mode: rw, hide: ['.e*']}}\nscratch: {{size: 1MiB}}\nnetwork: {{mode: loopback}}\n"
    run = box.sh("cat .env", policy=policy)
    assert run.text == "TOKEN=x" and run.result["hidden"] == [], run
    assert keys_without_effect(run) == {"workspace.mode", "workspace.hide", "scratch.size", "network.mode"}, run.result["no_effect"]


@pytest.mark.parametrize("policy", ["version: 1\n", LANDLOCK], ids=["process", "landlock"])
def test_what_is_not_seen_has_its_reason(box, policy):
    run = box.run("true", policy=policy)
    assert set(run.result["not_observed_why"]) == set(run.result["not_observed"])
    assert "observe: [reads]" in run.result["not_observed_why"]["FilesystemReadViolation"], run.result
    run = box.run("true", policy=policy + "observe: [reads]\n")
    assert "FilesystemReadViolation" in run.result["observed"] and "FilesystemReadViolation" not in run.result["not_observed"]
    run = box.run("true", policy=policy + "limits: {processes: none, memory: none}\n")
    for event in ("ProcessLimitViolation", "MemoryLimitViolation"):
        assert "no limit" in run.result["not_observed_why"][event], run.result


def test_git_identity(far_box):
    """The caller's name in a commit that was made inside; without one the result says so."""
    far_box.host("git", "init", "-q")
    policy = f"version: 1\nworkspace: {{path: {far_box.ws}, mode: rw}}\nenv: {{git_identity: IDENTITY}}\n"
    text = "echo x >f; git add f; git commit -qm m && git log --format='%an <%ae> %cn'"
    far_box.file(far_box.home / ".gitconfig", "[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n")
    run = far_box.sh(text, policy=policy.replace("IDENTITY", "true"))
    assert run.text == "Ada Lovelace <ada@example.org> Ada Lovelace\n" and keys_without_effect(run) == set(), run
    run = far_box.sh("git var GIT_AUTHOR_IDENT", policy=policy.replace("IDENTITY", "false"))
    assert "Ada" not in run.text, run
    (far_box.home / ".gitconfig").unlink()
    run = far_box.sh("true", policy=policy.replace("IDENTITY", "true"), env={"GIT_AUTHOR_EMAIL": ""})
    if not far_box.host("sh", "-c", "git config user.email || true"):
        assert keys_without_effect(run) == {"env.git_identity"}, run


@pytest.mark.parametrize("rule, argv", [
    ("{command: '*migrate*'}", ["rake", "db:migrate"]), ("{command: '*migrate*'}", ["-c", "rake db:migrate"]),
    ("{command: 'rake *'}", ["-c", "rake db:migrate"]), ("{path: '**/secrets/**'}", ["cat", "secrets/key"]),
    ("{path: '**/secrets/**'}", ["-c", "cd /tmp; cat <secrets/key"]), ("{tag: payments}", ["--tag", "payments", "-c", "true"]),
])
def test_strict_when_sees_the_command_however_it_is_given(box, rule, argv):
    path = box.policy(f"version: 1\nstrict_when: [{rule}]\n")[1]
    box.give()
    words = argv if argv[0].startswith("-") else ["--", *argv]
    run = box.cli("run", "--policy", path, *words)
    assert run.status == 125 and "StrictModeRequired" in run.err, run
    run = box.cli("run", "--policy", path, "-c", "true")
    assert run.status == 0, run


def test_a_refused_fork_is_seen_by_a_controller_only(user_box):
    """An rlimit tells nobody what it refused: then the absence of a fact is no proof, and the result says so."""
    quiet = user_box.run("true", flags=["-l", "processes=20"])
    means = quiet.result["limits"]["means"]["processes"]
    assert ("ProcessLimitViolation" in quiet.result["observed"]) is (means == "cgroup"), quiet.result
    assert means == "cgroup" or f"an {means} here" in quiet.result["not_observed_why"]["ProcessLimitViolation"], quiet.result
    full = user_box.python("import os, time\nfor _ in range(60):\n    try:\n        if os.fork() == 0: time.sleep(0.5); os._exit(0)\n"
                           "    except OSError: pass\ntime.sleep(0.3)", flags=["-l", "processes=20"])
    assert full.events == {"ProcessLimitViolation"} and "ProcessLimitViolation" in full.result["observed"], full.result
    sampled = user_box.run("true", policy=LANDLOCK)
    assert "every 50 ms" in sampled.result["not_observed_why"]["ProcessLimitViolation"], sampled.result


def test_a_refused_write_names_its_list(box):
    """Rule, sentence and suggestion are of the path that matched, be it the second of a rename."""
    box.file(".env", "TOKEN=x")
    box.file(".git/config", "[core]\n")
    policy = f"version: 1\nworkspace: {{path: {box.ws}, mode: rw}}\n"
    run = box.sh("echo x >.env; echo x >.git/config.lock; mv -f .git/config.lock .git/config; true", policy=policy)
    rules = {fact["rule"]: fact for fact in run.facts}
    assert set(rules) == {"workspace.hide", "workspace.protect"}, run.facts
    assert "/.env is not" in rules["workspace.hide"]["say"] and "/.git/config is not" in rules["workspace.protect"]["say"], rules
    run = box.sh("echo x >.git/config", policy=policy.replace("mode: rw", "mode: ro"))
    assert run.facts[0]["rule"] == "workspace.mode: ro, workspace.protect", run.facts
    assert "rw" not in run.facts[0]["say"].replace(str(box.ws), ""), run.facts
