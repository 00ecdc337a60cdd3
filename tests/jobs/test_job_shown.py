"""What ls, show and logs print: costs as they are, a sentence where there is nothing, and nothing that others may have written."""
import json
import os
import pty
import re
import select
import subprocess

import job_chain
import pytest
from job_chain import Chain

OTHERS = 65534


def at_terminal(jobs, *words):
    """What a person sees; with stderr in a pipe of its own, told apart."""
    shown, ours = pty.openpty()
    process = subprocess.Popen(jobs.argv(*words), cwd=jobs.home, env=jobs.env | {"NO_COLOR": "1"}, stdin=ours, stdout=ours, stderr=ours)
    os.close(ours)
    text = b""
    while select.select([shown], [], [], 60)[0]:
        try:
            text += os.read(shown, 65536)
        except OSError:
            break
    os.close(shown)
    assert process.wait(60) == 0
    return text.decode().replace("\r\n", "\n")


def test_costs_are_written_as_short_as_they_read_back(jobs):
    done = jobs.start("one", "caisson-report usage cost_usd=0.0042; caisson-report iteration cost_usd=0.1; "
                             "echo '{\"event\":\"x\",\"deep\":[0.3,1e-7]}' >&3", flags=["--max-cost-usd", "0.7"])
    assert done.returncode == 0 and "$0.1042," in done.stderr, done.stderr
    for name in ("events", "iterations"):
        text = (jobs.root / "one/logs" / f"{name}.jsonl").read_text()
        assert '"cost_usd":0.1042' in text and not re.search(r"[0-9]\.[0-9]{15}", text), text
    assert '"deep":[0.3,1e-7]' in (jobs.root / "one/logs/events.jsonl").read_text()
    jobs.verify("one")


def test_records_with_all_digits_stay_good(jobs, monkeypatch):
    short = job_chain.canonical
    monkeypatch.setattr(job_chain, "canonical", lambda value: short(value).replace(b'"cost_usd":0.1,', b'"cost_usd":0.10000000000000001,'))
    chain = Chain(jobs.root, "one")
    chain.launch()
    chain.report("usage", cost=0.1)
    chain.end()
    assert b"0.10000000000000001" in chain.write().read_bytes()
    jobs.verify("one")
    assert jobs.cli("resume", "one").returncode == 125  # its data set is nowhere: the chain was read


def test_small_costs_are_seen(jobs):
    jobs.start("one", "caisson-report usage cost_usd=0.0042")
    assert "$0.0042 " in jobs.cli("ls").stdout and "$0.0042 " in jobs.cli("top").stdout
    assert "cost        $0.0042\n" in jobs.cli("show", "one").stdout
    jobs.start("two", "caisson-report usage cost_usd=12.3000004", flags=["--max-cost-usd", "20"])
    assert "$12.30 " in jobs.cli("ls").stdout
    assert "cost        $12.3000004 of $20.00\n" in jobs.cli("show", "two").stdout


def test_an_empty_list_says_what_fills_it(jobs):
    assert at_terminal(jobs, "ls") == ("caisson: there are no jobs here; `caisson job start --data PATH -- WORKER` makes one "
                                       "(--run-dir names another folder)\n")
    assert at_terminal(jobs, "ls", "-q") == "" and json.loads(at_terminal(jobs, "ls", "--json")) == {"jobs": []}
    done = jobs.cli("ls")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    jobs.start("one", "true")
    assert "no jobs" not in at_terminal(jobs, "ls")


def test_logs_are_hashed_within_the_budget(jobs):
    jobs.start("one", "echo said; exit 1")
    with (jobs.root / "one/logs/stdout").open("r+b") as file:
        file.truncate(3 << 30)  # no disk is used
    assert jobs.cli("extend", "one", "--max-iterations", "5").returncode == 0
    files = {file["path"]: file for file in json.loads((jobs.root / "one/manifest.json").read_text())["files"]}
    assert files["logs/stdout"] == {"path": "logs/stdout", "size": 3 << 30}
    assert all("sha256" in files[name] for name in ("logs/events.jsonl", "logs/iterations.jsonl", "state.json"))
    jobs.verify("one")


def chown(path):
    if os.geteuid() != 0:
        pytest.skip("root: only it gives files away")
    os.chown(path, OTHERS, OTHERS, follow_symlinks=False)


@pytest.mark.parametrize("path", [".", "logs", "logs/events.jsonl"])
@pytest.mark.parametrize("change", [lambda path: path.chmod(0o777), chown], ids=["writable", "foreign"])
def test_what_others_may_have_written_is_not_read(jobs, path, change):
    jobs.start("one", "caisson-report usage cost_usd=1.25; echo said")
    change(jobs.root / "one" / path)
    for words in (("show",), ("show", "--json"), ("logs",), ("report",)):
        done = jobs.cli(words[0], "one", *words[1:])
        assert done.returncode == 1 and "belongs to somebody else, or others may write" in done.stdout + done.stderr, (words, done)
        assert "1.25" not in done.stdout and "said" not in done.stdout
    done = jobs.cli("ls")
    assert done.returncode == 0 and done.stdout.splitlines()[1].split()[0] == "unknown" and "1.25" not in done.stdout
    assert "belongs to somebody else, or others may write" in done.stderr


@pytest.mark.parametrize("change", [lambda path: path.chmod(0o666), chown, lambda path: os.link(path, path.parent / "other")],
                         ids=["writable", "foreign", "linked"])
def test_a_state_of_others_is_not_believed(jobs, change):
    jobs.start("one", "caisson-report usage cost_usd=1.25")
    change(jobs.root / "one/state.json")
    assert json.loads(jobs.cli("show", "one", "--json").stdout) == {"run_id": "one", "status": "unknown"}
