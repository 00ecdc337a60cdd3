"""CAISSON_BACKEND: between the option and the policy, and never a way around either."""
import json

import pytest
from run_fixtures import *  # noqa: F403

AUTO = "version: 1\ntier: auto\n"
LENIENT = "overrides: {per_request: true}\n"


def taken(box, value, *flags, policy=None):
    """The wall that was taken, or the sentence of the refusal."""
    run = box.run("true", env={"CAISSON_BACKEND": value}, flags=flags, policy=policy)
    assert (run.status == 0) == (run.reason == "exited"), run
    return run.result["backend"] if run.status == 0 else run.err


@pytest.mark.parametrize("value, flags, policy, wall", [
    ("landlock", (), AUTO, "landlock"),
    ("process", (), AUTO, "process"),
    ("landlock", ("--backend", "process"), AUTO, "process"),
    ("no-such-wall", ("--backend", "process"), AUTO, "process"),
    ("", (), AUTO, "process"),
    ("any", (), AUTO, "process"),
    ("process", (), None, "process"),
    ("landlock", (), AUTO + "backend: landlock\n", "landlock"),
    ("process", (), AUTO + "backend: landlock\n" + LENIENT, "process"),
])
def test_the_order(user_box, value, flags, policy, wall):
    assert taken(user_box, value, *flags, policy=policy) == wall


@pytest.mark.parametrize("value, policy", [
    ("process", AUTO + "backend: landlock\n"),  # what the policy names is not replaced,
    ("any", AUTO + "backend: landlock\n"),  # nor forgotten
    ("landlock", None),  # nothing lowers a tier
    ("landlock", "version: 1\n"),
    ("landlock", "version: 1\n" + LENIENT),
    ("local", None),
    ("local", "version: 1\ntier: auto\n"),
    ("command", AUTO),
    ("no-such-wall", None),
])
def test_what_it_may_not(user_box, value, policy):
    run = user_box.run("true", env={"CAISSON_BACKEND": value}, policy=policy)
    assert run.status == 125 and "CAISSON_BACKEND" in run.err, run


def test_the_record_says_who_named_it(user_box):
    user_box.run("true", env={"CAISSON_BACKEND": "landlock"}, policy=AUTO)
    events = [json.loads(line) for line in (user_box.record() / "logs/events.jsonl").read_text().splitlines()]
    assert [e["payload"] for e in events if e["payload"].get("what") == "backend"] == [
        {"what": "backend", "old": "any", "now": "landlock", "where": "CAISSON_BACKEND",
         "digest": next(e["payload"]["digest"] for e in events if e["event"] == "Grant")}]


def test_it_stays_out_of_the_sandbox_and_of_commands_that_start_none(user_box):
    box = user_box
    assert box.run("env", env={"CAISSON_BACKEND": "process"}).text.count("CAISSON_BACKEND") == 0
    assert box.cli("runs", "ls", env={"CAISSON_BACKEND": "no-such-wall"}).status == 0


def test_explain_names_the_variable(user_box):
    done = user_box.cli("policy", "explain", *user_box.policy(AUTO + "backend: landlock\n"), "--", "true", env={"CAISSON_BACKEND": "process"})
    assert done.status != 0 and "  CAISSON_BACKEND process\n" in done.text, done


def test_sandboxes_that_stay_take_it_too(user_box):
    box = user_box
    (box.base / "runtime").mkdir(mode=0o700)
    policy = box.policy(AUTO)
    box.give()
    env = {"CAISSON_BACKEND": "landlock", "XDG_RUNTIME_DIR": str(box.base / "runtime")}
    assert box.cli("up", "w", *policy, env=env).status == 0
    assert box.cli("exec", "w", "-c", "pwd", env=env).text == f"{box.ws}\n", "the host's path: not the process wall"
    assert box.cli("down", "w", env=env).status == 0
    assert "CAISSON_BACKEND" in box.cli("up", "w", env=env).err
