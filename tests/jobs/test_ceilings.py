"""Ceilings end a worker, count over all launches, and are raised on the record."""
import json
import signal

import pytest

LOOP = """
trap 'echo asked to end; caisson-report usage tokens=1000; exit 0' TERM
while :; do caisson-report iteration cost_usd=0.01 tokens=10; sleep 0.02; done
"""
DEAF = "trap '' TERM\nwhile :; do caisson-report iteration cost_usd=0.01 tokens=10; sleep 0.05; done"


@pytest.mark.parametrize("flags, reason", [
    (["--max-cost-usd", "0.05"], "max_cost_usd"), (["--max-tokens-total", "50"], "max_tokens_total"),
    (["--max-iterations", "5"], "max_iterations"), (["--max-time-minutes", "0.005"], "max_time_minutes")])
def test_a_ceiling_asks_the_worker_to_end(jobs, flags, reason):
    done = jobs.start("one", LOOP, flags=flags)
    state = jobs.state("one")
    assert done.returncode == 124, done.stderr
    assert (state["status"], state["reason"]) == ("limited", reason)
    assert "asked to end" in jobs.output("one")
    assert state["cumulative"]["tokens"] % 1000 == 10 * state["iteration"], "what it reports in its grace counts"
    end = jobs.events("one", "RunExited")[0]["payload"]["termination"]
    assert (end["reason"], end["clock"]) == (("timeout", "budget") if "time" in reason else ("cancelled", None))
    jobs.verify("one")


def test_who_does_not_listen_is_killed(jobs):
    done = jobs.start("one", DEAF, flags=["--max-iterations", "3", "--grace", "300ms"])
    assert done.returncode == 124 and jobs.state("one")["reason"] == "max_iterations"
    assert jobs.state("one")["iteration"] >= 3


def test_a_reached_ceiling_is_raised_first(jobs):
    jobs.start("one", LOOP, flags=["--max-iterations", "3"])
    first = jobs.state("one")
    refused = jobs.cli("resume", "one")
    assert refused.returncode == 125 and "max_iterations of one is reached" in refused.stderr
    assert jobs.state("one")["status"] == "limited" and jobs.state("one")["launches"] == 1
    jobs.verify("one")
    assert jobs.cli("extend", "one", "--add-iterations", "4").returncode == 0
    assert jobs.state("one")["limits"]["max_iterations"] == 7 and jobs.state("one")["status"] == "limited"
    jobs.verify("one")
    result = json.loads((jobs.root / "one/result.json").read_text())
    assert result["schema"] == "caisson.result/1" and result["run_id"] == "one", "that of the last launch stays"
    assert jobs.cli("resume", "one").returncode == 124
    second = jobs.state("one")
    assert second["iteration"] >= 7 and second["launches"] == 2
    assert second["cumulative"]["wall_ms"] > first["cumulative"]["wall_ms"]
    assert second["cumulative"]["cost_usd"] == pytest.approx(0.01 * second["iteration"])
    extended = jobs.events("one", "JobExtended")[0]["payload"]
    assert extended["old"]["max_iterations"] == 3 and extended["limits"]["max_iterations"] == 7
    assert [launch["iteration"] for launch in second["resume_history"]] == [0, first["iteration"]]
    jobs.verify("one")


def test_resume_takes_ceilings_too(jobs):
    jobs.start("one", "caisson-report iteration", flags=["--max-iterations", "1"])
    done = jobs.cli("resume", "one", "--max-iterations", "none", "--max-cost-usd", "2.5")
    assert done.returncode == 0, done.stderr
    assert jobs.state("one")["limits"] == {"max_cost_usd": 2.5, "max_time_minutes": None, "max_tokens_total": None,
                                           "max_iterations": None}


@pytest.mark.parametrize("flags, word", [
    (["--max-cost-usd", "-1"], "above 0"), (["--max-cost-usd", "nan"], "above 0"), (["--max-iterations", "1.5"], "whole"),
    (["--max-tokens-total", "0"], "above 0"), (["--max-cost-usd", "1e5"], "above 0")])
def test_ceilings_are_numbers(jobs, flags, word):
    done = jobs.start("one", "true", flags=flags)
    assert done.returncode == 125 and word in done.stderr
    assert not (jobs.root / "one/logs").exists()


def test_to_add_needs_a_ceiling(jobs):
    jobs.start("one", "true")
    done = jobs.cli("extend", "one", "--add-cost-usd", "1")
    assert done.returncode != 0 and "no max_cost_usd to add to" in done.stderr
    assert "say what is extended" in jobs.cli("extend", "one").stderr
    jobs.verify("one")


def test_silence_is_an_end_where_the_policy_says_so(jobs):
    done = jobs.start("one", "echo begun; sleep 60", flags=["--limit", "idle=1s"])
    assert done.returncode == 124 and jobs.state("one")["reason"] == "idle", done.stderr


def test_without_a_terminal(jobs):
    """As nohup starts it, a hangup is nothing to it."""
    launcher = jobs.popen(*jobs.started("one", LOOP), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    jobs.wait_for("one", lambda state: state.get("iteration", 0) > 2)
    launcher.send_signal(signal.SIGHUP)
    before = jobs.state("one")["iteration"]
    jobs.wait_for("one", lambda state: state.get("iteration", 0) > before + 5)
    assert jobs.cli("stop", "one").returncode == 0
    launcher.wait(timeout=30)


def test_stop(jobs):
    launcher = jobs.popen(*jobs.started("one", LOOP))
    jobs.wait_for("one", lambda state: state.get("iteration", 0) > 2)
    busy = jobs.cli("resume", "one")
    assert busy.returncode == 125 and "one is still running" in busy.stderr
    assert "is running" in jobs.start("one").stderr
    assert jobs.cli("extend", "one", "--max-iterations", "9").returncode != 0
    assert jobs.cli("stop", "one").returncode == 0
    launcher.wait(timeout=30)
    assert jobs.state("one")["status"] == "stopped" and "asked to end" in jobs.output("one")
    assert "is not running" in jobs.cli("stop", "one").stderr
    jobs.verify("one")


def test_huge_checkpoints_hold_nobody(jobs):
    """The same sparse file four times, and one of more bytes than are hashed in all: listed, by size."""
    done = jobs.start("one", """
truncate -s 16G big; echo small >small
for i in 1 2 3 4; do caisson-report checkpoint path=big; caisson-report checkpoint path=small; done
""")
    assert done.returncode == 0, done.stderr
    files = json.loads((jobs.root / "one/manifest.json").read_text())["files"]
    assert [file["size"] for file in files if file["path"] == "big"] == [16 << 30]
    assert [len(file.get("sha256", "")) for file in files if file["path"] in ("big", "small")] in ([0, 64], [64, 0])
    jobs.verify("one")
    (jobs.root / "one/big").write_text("smaller")
    with pytest.raises(AssertionError, match="bytes where"):
        jobs.verify("one")
