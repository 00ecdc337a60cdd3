"""A worker for `caisson job`: it goes through a data set line by line, and can be killed at any moment.

    mkdir -p RUNS/count && cp examples/job_worker.py RUNS/count/
    caisson job start --run-dir RUNS --run-id count --data README.md --backend process \
        --max-iterations 40 -- python3 /workspace/run/job_worker.py

Each unit of work is written to a journal first and reported afterwards, under a number of its own. A start reports
again what the books had not entered when it was killed (CAISSON_REPORT_SEQ); what comes twice counts once.
"""
import json
import os
import pathlib
import time

RUN = pathlib.Path(os.environ["CAISSON_RUN_DIR"])
DATA = pathlib.Path(os.environ["CAISSON_DATA_DIR"])
PAUSE_S = float(os.environ.get("UNIT_S", "0.01"))
reports = os.fdopen(int(os.environ["CAISSON_REPORT_FD"]), "w", buffering=1)


def report(event, **fields):
    print(json.dumps({"event": event, **fields}), file=reports)


def report_unit(number, unit):
    report("iteration", seq=number, iteration=number, cost_usd=0.001, tokens=unit["words"], summary=f"line {number}")


def read_journal(path):
    """The whole lines; what a kill cut short is cut off."""
    whole = path.read_bytes() if path.exists() else b""
    whole = whole[: whole.rfind(b"\n") + 1]
    path.write_bytes(whole)
    return [json.loads(line) for line in whole.splitlines()]


def work(journal, number, line):
    time.sleep(PAUSE_S)
    unit = {"words": len(line.split())}
    journal.write(json.dumps(unit) + "\n")
    journal.flush()
    os.fsync(journal.fileno())
    report_unit(number, unit)


def main():
    done = read_journal(RUN / "journal.jsonl")
    for number in range(int(os.environ["CAISSON_REPORT_SEQ"]) + 1, len(done) + 1):
        report_unit(number, done[number - 1])
    with DATA.open() as data, (RUN / "journal.jsonl").open("a") as journal:
        for number, line in enumerate(data, 1):
            if number > len(done):
                work(journal, number, line)
    (RUN / "answer.json").write_text(json.dumps({"words": sum(u["words"] for u in read_journal(RUN / "journal.jsonl"))}))
    report("checkpoint", path="answer.json")


if __name__ == "__main__":
    main()
