"""What a worker reports is entered, checked and shown; what is no report is refused, and counts nothing."""
import json
import time

REPORTS = r"""
caisson-report usage cost_usd=0.02 tokens=150 seq=1
caisson-report usage cost_usd=0.1 input_tokens=7 output_tokens=3
caisson-report iteration summary="the first"
caisson-report iteration iteration=5 tokens=1
mkdir -p research/checkpoints; echo '{}' >research/checkpoints/1.json
caisson-report checkpoint path=research/checkpoints/1.json
caisson-report tool_call tool=bash command="make test"
echo '{"event":"anything","deep":{"list":[1,2,"x"]}}' >&3
"""

NONSENSE = r"""
caisson-report usage cost_usd=-1
caisson-report usage tokens=-5
caisson-report usage tokens=1.5
caisson-report usage cost_usd=a_lot
caisson-report usage cost_usd=1000001
caisson-report usage tokens=1 seq=-4
caisson-report checkpoint path=../../elsewhere
caisson-report checkpoint path=/etc/passwd
caisson-report checkpoint
echo '{"event":"usage","cost_usd":NaN}' >&3
echo '{"event":"usage","cost_usd":1e400}' >&3
echo '{"event":"usage","tokens":99999999999999999999}' >&3
echo '{"event":"usage","tokens":1,"tokens":2}' >&3
echo '{"event":"../x"}' >&3
echo '{"no":"event"}' >&3
echo '[1]' >&3
echo 'no json' >&3
printf '\377\376\n' >&3
printf '\n' >&3
printf '{"event":"a\0b"}\n' >&3
head -c 70000 /dev/zero | tr '\0' x >&3; echo >&3
"""


def test_reports_become_books(jobs):
    done = jobs.start("one", REPORTS)
    assert done.returncode == 0, done.stderr
    state = jobs.state("one")
    assert state["status"] == "finished" and state["iteration"] == 5
    assert state["cumulative"]["cost_usd"] == 0.12 and state["cumulative"]["tokens"] == 161
    assert state["checkpoint"] == "research/checkpoints/1.json" and state["report_seq"] == 1
    assert (state["reports"], state["refused"], state["duplicates"]) == (7, 0, 0)
    assert [line["iteration"] for line in jobs.iterations("one")] == [1, 5]
    assert jobs.iterations("one")[0]["summary"] == "the first"
    reports = [event["payload"] for event in jobs.events("one", "WorkerEvent")]
    assert [report["kind"] for report in reports] == ["usage", "usage", "iteration", "iteration", "checkpoint",
                                                      "tool_call", "anything"]
    assert reports[5]["report"]["command"] == "make test" and reports[6]["report"]["deep"] == {"list": [1, 2, "x"]}
    jobs.verify("one")
    manifest = json.loads((jobs.root / "one/manifest.json").read_text())
    assert "research/checkpoints/1.json" in [file["path"] for file in manifest["files"]]


def test_launch_and_exit_are_in_the_log(jobs):
    jobs.start("one", "exit 7")
    launch, exit_ = jobs.events("one", "RunStarted")[0]["payload"], jobs.events("one", "RunExited")[0]["payload"]
    for event in (launch, exit_):
        assert event["runtime"] == "process" and event["image"] is None and event["network"] == "none"
        assert event["permission_mode"] == "acceptEdits"
        assert [(mount["at"], mount["mode"]) for mount in event["mounts"]] == [("/workspace/run", "rw"),
                                                                              ("/workspace/data", "ro")]
    assert exit_["status"] == 7 and jobs.state("one")["status"] == "failed"
    ended = jobs.events("one", "JobEnded")[0]["payload"]
    assert (ended["status"], ended["reason"], ended["exit_status"]) == ("failed", "exited", 7)


def test_nonsense_is_refused_and_counts_nothing(jobs):
    done = jobs.start("one", NONSENSE + "\ncaisson-report usage cost_usd=0.5 tokens=10\n")
    assert done.returncode == 0, done.stderr
    state = jobs.state("one")
    refused = [event["payload"]["refused"] for event in jobs.events("one", "WorkerEvent") if "refused" in event["payload"]]
    # An empty line is none.
    assert len(refused) == state["refused"] == NONSENSE.count("\n") - 2, refused
    assert state["cumulative"]["cost_usd"] == 0.5 and state["cumulative"]["tokens"] == 10 and state["iteration"] == 0
    assert state["checkpoint"] is None
    assert "longer than 64 KiB" in refused
    jobs.verify("one")


def test_secrets_are_in_no_book(jobs):
    secret = "correct-horse-battery"
    done = jobs.start("one", """
caisson-report iteration summary="it said $WORD"
caisson-report checkpoint path="kept/$WORD/1.json"
caisson-report checkpoint path=kept/2.json
""", flags=["--env", f"WORD={secret}"])
    assert done.returncode == 0, done.stderr
    for path in ("state.json", "result.json", "manifest.json", "logs/events.jsonl", "logs/iterations.jsonl"):
        assert secret not in (jobs.root / "one" / path).read_text(), path
    assert jobs.iterations("one")[0]["summary"] == "it said [REDACTED:WORD]"
    state = jobs.state("one")
    assert (state["checkpoint"], state["refused"], state["reports"]) == ("kept/2.json", 1, 2)
    assert any("holds a secret" in event["payload"].get("refused", "") for event in jobs.events("one", "WorkerEvent"))
    jobs.verify("one")


def test_iterations_and_numbers_only_grow(jobs):
    jobs.start("one", """
caisson-report iteration iteration=3 seq=10 tokens=5
caisson-report iteration iteration=2 seq=11 tokens=5
caisson-report usage seq=10 tokens=100
caisson-report usage seq=9 tokens=100
caisson-report usage seq=12 tokens=1
""")
    state = jobs.state("one")
    assert (state["iteration"], state["cumulative"]["tokens"], state["report_seq"]) == (3, 6, 12)
    assert (state["refused"], state["duplicates"]) == (1, 2)


def test_a_flood_of_nonsense_does_not_fill_the_log(jobs):
    done = jobs.start("one", "yes nonsense | head -3000 >&3; caisson-report usage tokens=1")
    assert done.returncode == 0, done.stderr
    assert jobs.state("one")["refused"] == 3000 and jobs.state("one")["cumulative"]["tokens"] == 1
    assert len(jobs.events("one", "WorkerEvent")) == 101


def test_a_flood_of_reports_waits_and_is_entered(jobs):
    """A thousand a second, beyond what a window and two seconds of burst hold: nothing is dropped."""
    begun = time.monotonic()
    done = jobs.start("one", """python3 -c '
print("\\n".join(["{\\"event\\":\\"usage\\",\\"tokens\\":1,\\"pad\\":\\"" + "x" * 260 + "\\"}"] * 4000))' >&3""")
    assert done.returncode == 0, done.stderr
    assert jobs.state("one")["cumulative"]["tokens"] == 4000 and len(jobs.events("one", "WorkerEvent")) == 4000
    assert time.monotonic() - begun > 1.5


def test_a_long_report_is_an_outline(jobs):
    jobs.start("one", """python3 -c '
import json
print(json.dumps({"event": "iteration", "tokens": 3, "text": "x" * 60000}))' >&3""")
    report = jobs.events("one", "WorkerEvent")[0]["payload"]
    assert report["report"]["cut"] is True and jobs.state("one")["cumulative"]["tokens"] == 3
    assert jobs.state("one")["iteration"] == 1


def test_the_worker_is_told(jobs):
    jobs.start("one", "env; caisson-report checkpoint path=c.json seq=4; ls /proc/self/fd | wc -l")
    out = jobs.output("one")
    for line in ("CAISSON_RUN_ID=one", "CAISSON_RUN_DIR=/workspace/run", "CAISSON_DATA_DIR=/workspace/data",
                 "CAISSON_STATE=/workspace/run/state.json", "CAISSON_REPORT_FD=3", "CAISSON_REPORT_SEQ=0",
                 "CAISSON_PERMISSION_MODE=acceptEdits"):
        assert line in out.splitlines()
    assert out.splitlines()[-1] == "5"  # 0, 1, 2, the reports, and the folder that ls reads
    jobs.cli("resume", "one")
    assert "CAISSON_REPORT_SEQ=4" in jobs.output("one") and "CAISSON_CHECKPOINT=c.json" in jobs.output("one")


def test_output_is_cut_at_the_cap_without_a_kill(jobs):
    done = jobs.start("one", "seq 1 400000; caisson-report usage tokens=1", flags=["--limit", "output=1MiB"])
    assert done.returncode == 0, done.stderr
    kept = jobs.cli("logs", "one").stdout
    assert kept.startswith("1\n2\n3\n") and kept.endswith("\n400000\n")
    assert sum(path.stat().st_size for path in (jobs.root / "one/logs").glob("stdout*")) <= 1 << 20
    assert jobs.state("one")["cumulative"]["tokens"] == 1


def test_show_is_for_people(jobs):
    jobs.start("one", "for i in 1 2 3; do caisson-report usage cost_usd=0.1 tokens=5; done; "
               "caisson-report usage cost_usd=0.000025; caisson-report iteration",
               flags=["--max-cost-usd", "0.7", "--max-iterations", "9"])
    lines = [line.split(maxsplit=1) for line in jobs.cli("show", "one").stdout.splitlines()]
    shown = {words[0]: words[-1] for words in lines}
    assert shown["cost"] == "$0.300025 of $0.70" and shown["tokens"] == "15"
    assert shown["iteration"] == "1 of 9" and shown["status"] == "finished" and shown["checkpoint"] == "none"
    assert shown["reports"] == "5 entered, 0 refused, 0 came twice"
    assert '"cost_usd": 0.300025,' in (jobs.root / "one/state.json").read_text()


def test_the_hint_finds_the_job(jobs):
    done = jobs.start("one", "echo out")
    hint = done.stderr.split("`")[1]
    assert hint == f"caisson job logs -f --run-dir {jobs.root} one"


def test_shown_by_the_end_of_a_name(jobs):
    for name in ("alpha-1", "beta-1", "alpha-2"):
        jobs.start(name, "caisson-report iteration")
    assert json.loads(jobs.cli("show", "a-2", "--json").stdout)["run_id"] == "alpha-2"
    several = jobs.cli("show", "-1")
    assert several.returncode != 0
    assert "alpha-1, beta-1" in jobs.cli("show", "a-1").stderr
    assert "no job ends in gamma" in jobs.cli("show", "gamma").stderr
    assert jobs.cli("top").stdout == jobs.cli("ls").stdout
    rows = json.loads(jobs.cli("ls", "--json").stdout)["jobs"]
    assert [(row["run_id"], row["status"], row["iteration"]) for row in rows] == [
        ("alpha-1", "finished", 1), ("alpha-2", "finished", 1), ("beta-1", "finished", 1)]
