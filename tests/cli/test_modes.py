"""Which wall a start gets: by tier, by flag, by what the policy says triggers the strictest; and never a weaker one."""
import contextlib
import json
import re
import subprocess
import sys

import pytest

from run_fixtures import *
from run_fixtures import TOP

TIERS = ("local", "virtual", "auto", "balanced", "assisted", "strict")
STRICT_WHEN = "version: 1\nstrict_when: [{tag: payments}, {command: '*migrate*'}, {path: '**/secrets/**'}]\n"


def told(box):
    return json.loads(box.cli("doctor", "--json").text)


def walls_for(box, tier):
    return next(row for row in told(box)["tiers"] if row["tier"] == tier)


def chain(box, run):
    return [json.loads(line) for line in (box.record(run.result["run_id"]) / "logs" / "events.jsonl").read_text().splitlines()]


def test_the_default_is_balanced(box):
    """Default mode is `balanced`."""
    run = box.run("true")
    assert run.status == 0 and run.result["tier"] == "balanced" and run.result["runtime"] == f"balanced/{run.result['backend']}", run


@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_gets_a_wall_of_that_tier_or_is_refused(box, tier):
    """Tiers map to walls; what cannot be had is refused, and nothing weaker is taken."""
    row = walls_for(box, tier)
    policy = f"version: 1\ntier: {tier}\n" if tier != "strict" else None
    run = box.run("true", policy=policy, flags=["--tier", tier])
    if row["usable"]:
        assert run.status == 0 and run.result["tier"] == tier and run.result["backend"] in row["walls"], run
        reached = {wall["name"]: wall["tier"] for wall in told(box)["walls"]}[run.result["backend"]]
        assert TIERS.index(reached) >= TIERS.index(tier)
        return
    code = "StrictModeUnavailable" if tier == "strict" else "TierUnavailable"
    assert run.status == 125 and run.result["error"]["code"] == code and run.result["termination"]["reason"] == "start_failed", run


LIMITS = {
    # "Per-command timeout, total verification budget, CPU quota, memory limit, max processes, output/log cap, scratch disk cap"
    "balanced": ("45s", "3m", "2", "1GiB", "256", "10MiB", "512MiB"),
    "strict": ("1m", "4m", "2", "1536MiB", "128", "10MiB", "512MiB"),
}


@pytest.mark.parametrize("tier", LIMITS)
def test_default_limits(box, tier):
    """Hard resource limits, the default values of each mode."""
    shown = box.cli("policy", "show", "--effective", *box.policy(f"version: 1\ntier: {tier}\n")).text
    found = {}
    for key, _, value in (line.partition(":") for line in shown.splitlines()):
        found.setdefault(key.strip(), value.strip())
    keys = ("command", "budget", "cpus", "memory", "processes", "output", "size")
    assert tuple(found[key] for key in keys) == LIMITS[tier], shown


@pytest.mark.parametrize("name, tier", [("HumanApprove", "assisted"), ("human-approve", "assisted"), ("MANUALONLY", "strict"),
                                        ("manual-only", "strict")])
def test_names_that_ask_for_a_person(box, name, tier):
    """`human-approve` and `manual-only` are assisted and strict, and approval."""
    shown = box.cli("policy", "show", "--effective", *box.policy(f"version: 1\ntier: {name}\napproval: none\n")).text
    assert f"tier: {tier}\n" in shown and "approval: required\n" in shown, shown
    for flags in (["--tier", name], box.policy(f"version: 1\ntier: {name}\n")):
        run = box.run("touch", "here", flags=flags)
        assert run.status == 125 and not (box.ws / "here").exists(), run
        expected = {"ApprovalRequired"} if walls_for(box, tier)["usable"] else {
            "TierUnavailable", "StrictModeUnavailable", "StrictModeRequired"}
        assert run.result["error"]["code"] in expected, run
        if not walls_for(box, tier)["usable"]:
            assert not list((box.runs / "approvals").glob("*.request")), "nobody is asked about what cannot start"


@pytest.mark.parametrize("policy, flags, code", [
    (None, ["--tier", "strict"], "StrictModeUnavailable"),
    ("version: 1\ntier: strict\n", [], "StrictModeRequired"),
    ("version: 1\ntier: strict\n", ["--tier", "strict"], "StrictModeRequired"),
    ("version: 1\ntier: strict\noverrides: {per_request: false}\n", ["--tier", "balanced"], None),
    ("version: 1\ntier: balanced\n", ["--tier", "auto"], None),
    (STRICT_WHEN, ["--tag", "payments"], "StrictModeRequired"),
    (STRICT_WHEN, ["--tag", "payments", "--backend", "process"], "StrictModeRequired"),
])
def test_strict_fails_closed(box, policy, flags, code):
    """If strict is explicitly requested but unavailable: StrictModeUnavailable. If policy requires it: StrictModeRequired."""
    if walls_for(box, "strict")["usable"]:
        pytest.skip("strict: this machine has it")
    run = box.run("touch", "here", policy=policy and f"{policy}workspace: {{path: {box.ws}, mode: rw}}\n", flags=flags)
    assert run.status == 125 and not (box.ws / "here").exists(), run
    if code:
        assert run.result["error"]["code"] == code and code in run.events, run
    else:
        assert run.result["error"]["stage"] == "policy", "a tier is a minimum: no flag lowers it"


@pytest.mark.parametrize("variable", ["CAISSON_TIER", "CAISSON_BACKEND"])
def test_no_variable_lowers_it(box, variable):
    """Nothing lowers a tier, no environment variable either."""
    run = box.run("true", policy="version: 1\ntier: balanced\n", env={variable: "landlock"})
    assert run.status == 125 if variable == "CAISSON_BACKEND" else run.result["backend"] != "landlock", run


@contextlib.contextmanager
def staying(box, name, policy, *flags):
    up = box.cli("up", name, *box.policy(policy), *flags)
    assert up.status == 0, up
    try:
        yield
    finally:
        box.cli("down", name)


REFUSED = [
    ("--", "sh", "db-migrate.sh"), ("-c", "echo x; ./migrate now"), ("--", "cat", "secrets/key"), ("-c", "cat ./secrets/key"),
    ("--", "tar", "--file=/workspace/secrets/key"), ("--cwd", "secrets", "--", "ls"), ("--cwd", "/workspace/secrets", "--", "ls"),
    ("--tag", "payments", "--", "true"),
]


def test_a_running_sandbox_is_no_way_around(box):
    """High-risk policy triggers hold for each command of a sandbox that stays: by tag, command, path."""
    box.file("secrets/key", "hidden?\n")
    box.file("db-migrate.sh", "touch migrated\n")
    with staying(box, "modes", f"{STRICT_WHEN}workspace: {{path: {box.ws}, mode: rw}}\n"):
        assert box.cli("exec", "modes", "--", "echo", "fine").text == "fine\n"
        for words in REFUSED:
            done = box.cli("exec", "modes", *words)
            assert done.status != 0 and "StrictModeRequired" in done.err and "hidden" not in done.text, (words, done)
        assert not (box.ws / "migrated").exists() and box.cli("exec", "modes", "--", "echo", "fine").text == "fine\n"
    result = json.loads(next(box.runs.glob("2*/result.json")).read_text())
    events = {v["event"] for v in result["violations"]}
    assert "StrictModeRequired" in events, events


def test_nor_is_a_late_mount(box):
    outside = box.home / "more" / "secrets"
    outside.mkdir(parents=True)
    (box.home / "more" / "plain").mkdir()
    box.give()
    policy = f"{STRICT_WHEN}workspace: {{path: {box.ws}}}\nmount_roots: [{box.home / 'more'}]\n"
    with staying(box, "modes-mount", policy):
        assert box.cli("mount", "modes-mount", f"{box.home}/more/plain:/mnt/plain").status == 0
        done = box.cli("mount", "modes-mount", f"{outside}:/mnt/plain2")
        assert done.status != 0 and "StrictModeRequired" in done.err, done


def test_doctor_says_which_tiers_exist_and_how_to_get_the_others(box):
    """`caisson doctor` says which tiers exist here and how to get the others."""
    found, text = told(box), box.cli("doctor").text
    assert [row["tier"] for row in found["tiers"]] == list(TIERS)
    usable = {wall["name"]: wall["tier"] for wall in found["walls"] if wall["usable"]}
    for row in found["tiers"]:
        assert row["usable"] == bool(row["walls"]) and set(row["walls"]) <= set(usable)
        assert all(TIERS.index(usable[wall]) >= TIERS.index(row["tier"]) for wall in row["walls"])
        assert row["usable"] or row["fix"], "why not, and what to do"
        assert set(row["by_name"]) <= set(usable) - set(row["walls"])
        start = f"{'yes' if row['usable'] else 'no '} {row['tier']}"
        line, = [line for line in text.split("\n\n")[1].splitlines() if line.startswith(start)]
        assert all(wall in line for wall in row["walls"])
    assert next(row for row in found["tiers"] if row["tier"] == "local")["walls"] == ["local"]


def test_the_page_of_tiers(box):
    """docs/tiers.md is what the table of walls and the escape suite say."""
    done = subprocess.run([sys.executable, str(TOP / "tools/gen-tiers.py"), "--check", box.caisson], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert done.returncode == 0, done.stdout.decode()


EVERYTHING = ["fs-view", "fs-write", "fs-hide", "fs-protect", "net-none", "net-loopback", "pids", "syscalls", "privilege", "identity",
              "time", "output", "memory", "processes", "cpu", "scratch"]


def approve(box, text):
    """Says yes to what a refusal asks for."""
    name = re.search(r"caisson approve ([0-9a-f]{8})\b", text)[1]
    done = box.cli("approve", "-q", "--yes", name)
    assert done.status == 0, done
    return name


def test_human_approve_from_start_to_end(root_box):
    """HumanApprove: an application kernel, and a recorded approval before it starts."""
    box = root_box
    row = walls_for(box, "assisted")
    if not row["usable"]:
        pytest.skip(f"gvisor: {row['fix']}")
    flags = box.policy(f"version: 1\ntier: human-approve\nworkspace: {{path: {box.ws}, mode: rw}}\n")
    run = box.run("touch", "here", flags=flags)
    assert run.status == 125 and not (box.ws / "here").exists(), run
    name = approve(box, run.err)
    run = box.run("touch", "here", flags=flags)
    assert run.status == 0 and run.result["tier"] == "assisted" and run.result["backend"] in row["walls"], run
    assert run.result["approval"]["id"] == name and (box.ws / "here").exists()


def test_manual_only_is_each_command_by_itself(user_box):
    """ManualOnly: a yes for each start; a sandbox that stays would run anything on one."""
    box = user_box
    wall = {"argv": ["caisson-agent", "--stdio"], "enforces": EVERYTHING}
    flags = box.policy(f"version: 1\ntier: manual-only\nlimits_mode: best\nbackend: command\ncommand: {json.dumps(wall)}\nworkspace: {{path: {box.ws}, at: host}}\n")
    run = box.run("echo", "in", flags=flags)
    assert run.status == 125 and run.result["error"]["code"] == "ApprovalRequired", run
    approve(box, run.err)
    run = box.run("echo", "in", flags=flags)
    assert run.text == "in\n" and run.result["runtime"] == "strict/command" and run.result["approval"], run
    up = box.cli("up", "manual", *flags)
    assert up.status == 125 and "a yes for each command" in up.err and "caisson run" in up.err, up
    assert not list((box.runs / "approvals").glob("*.request"))


def test_a_library_is_told_what_to_ask_for(user_box):
    """Whatever opens a sandbox is refused with the id, and starts it once after the yes."""
    box = user_box
    program = box.base / "opens.py"
    program.write_text(f"""
import sys
sys.path.insert(0, {str(TOP / "sdk/python/src")!r})
import caisson
try:
    with caisson.Sandbox(policy=sys.argv[1], workspace=sys.argv[2]) as box:
        sys.stdout.write(box.exec(["echo", "in"]).stdout.decode())
except caisson.PolicyRefused as error:
    sys.exit(f"{{error.code}} {{error}}")
""")
    policy = box.policy("version: 1\napproval: required\n")[1]

    def start():
        return subprocess.run([PYTHON, program, policy, box.ws], cwd=box.ws, env=box.env | {"CAISSON": box.caisson}, timeout=60,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", **box.as_owner())

    box.give()
    done = start()
    assert done.returncode == 1 and done.stderr.startswith("ApprovalRequired "), done
    approve(box, done.stderr)
    assert start().stdout == "in\n" and "ApprovalRequired" in start().stderr
