"""Every attack, behind every wall, started by root and by an ordinary user, against the table."""
import subprocess
import sys

import pytest

from behind import HERE, PYTHON, TOP, attacks, module_of
from verdicts import OWN_WALLS, VERDICTS, verdict_of

BARE = ["descriptors", "devices", "hidden_files_rw", "host_files", "mount_calls", "mount_symlink", "mount_table",
        "namespaces", "proc_links", "proc_machine", "protected_names", "symlinks_out", "system_files", "workspace_ro"]
NOWHERE = {"ENOENT", "ENODEV", "ENXIO", "ESRCH", "ENOTDIR", "ECONNREFUSED", None}


def perform(case, attack):
    """The attack's host side: a generator that yields a plan of the run and is sent the run."""
    module = module_of(attack)
    command = [PYTHON, f"attack/{attack}.py"] if module else [f"attack/{attack}"]
    host = module.host(case) if module and hasattr(module, "host") else None
    plan = (next(host) if host else None) or {}
    flags = plan.get("flags", [])
    if "run" in plan:
        run = plan["run"](flags, command + plan.get("args", []))
    else:
        run = case.run(flags, plan.get("command") or command + plan.get("args", []), **plan.get("popen", {}))
    if host:
        with_end(host, run)
    return run


def with_end(host, run):
    try:
        host.send(run)
    except StopIteration:
        return
    raise AssertionError("a host side yields once")


def judge(run, verdict):
    print(run)
    assert run.reason in (verdict.ends, verdict.or_ends), run
    if run.reason == "exited":
        assert run.is_done, f"the attack was cut short\n{run}"
        assert any(not a.get("control") for a in run.attempts), run
    for a in run.attempts:
        word = verdict.but.get(a["attempt"], "allowed" if a.get("control") else verdict.word)
        assert word == "either" or a["got"] == (word == "allowed"), f"{a}: {word} was expected\n{run}"
        if word == "not_visible":
            assert a["errno"] in NOWHERE, f"{a}: it is there, and refused\n{run}"
    known = {a["attempt"] for a in run.attempts}
    assert run.reason != "exited" or set(verdict.but) <= known, f"the table names others than {known}"
    missing, extra = set(verdict.events) - run.events, run.events - set(verdict.events) - set(verdict.may)
    assert not missing and not extra, f"missing events {missing}, others {extra}\n{run}"


def cases():
    for attack in attacks():
        for wall in OWN_WALLS:
            for who in ("root", "user"):
                yield pytest.param(attack, (wall, who), id=f"{attack}-{wall}-{who}")


@pytest.mark.parametrize("attack, case", cases(), indirect=["case"])
def test_attack(attack, case, request):
    verdict = verdict_of(attack, case.wall, case.who)
    if verdict.broken:
        request.node.add_marker(pytest.mark.xfail(reason=verdict.broken, strict=True))
    judge(perform(case, attack), verdict)


def bare_cases():
    for attack in BARE:
        for who in ("root", "user"):
            yield pytest.param(attack, ("process", who), id=f"{attack}-{who}")


@pytest.mark.parametrize("attack, case", bare_cases(), indirect=["case"])
def test_attack_on_a_bare_root(attack, case):
    """Without a record there is no skeleton: the root is a file system of its own."""
    case.more_flags = ["--no-record"]
    judge(perform(case, attack), verdict_of(attack, case.wall, case.who))
    assert not (case.runs / ".roots").exists()


@pytest.mark.parametrize("case", [("process", "root"), ("process", "user")], indirect=True, ids=["root", "user"])
def test_most_attacks_meet_a_skeleton(case):
    run = case.run([], ["/usr/bin/cat", "/proc/self/mountinfo"])
    assert any("/.roots/" in line.split()[3] and line.split()[4] == "/" for line in run.out.splitlines()), run


def test_every_attack_is_in_the_table():
    assert sorted(VERDICTS) == attacks()


def test_no_attack_hides_a_module_of_python():
    assert not set(attacks()) & set(sys.stdlib_module_names)


def test_the_page_is_the_table():
    done = subprocess.run([sys.executable, str(TOP / "tools/gen-verdicts.py"), "--check"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stdout


def test_every_attack_says_what_it_would_gain():
    for attack in attacks():
        path = HERE / f"{attack}.py"
        text = (path if path.exists() else path.with_suffix(".c")).read_text()
        assert "Would gain:" in text, attack
