"""Looks for the records and sandboxes of other runs.

Would gain: what other runs printed and were started with; a way to change what their record says.
"""
import os

from inside import attempt, main, opens, reads


def attack(runs, sibling):
    attempt("list the run root", os.listdir, runs)
    attempt("list a sibling", os.listdir, f"{runs}/{sibling}")
    attempt("read its result", reads, f"{runs}/{sibling}/result.json")
    attempt("write its result", opens, f"{runs}/{sibling}/result.json", os.O_WRONLY)
    attempt("read its log", reads, f"{runs}/{sibling}/logs/events.jsonl")
    attempt("read the heads", reads, f"{runs}/heads.jsonl")
    attempt("write the heads", opens, f"{runs}/heads.jsonl", os.O_WRONLY | os.O_APPEND)
    attempt("a run of our own", os.mkdir, f"{runs}/forged")


def host(case):
    from hosts import picture
    first = case.run([], ["/bin/true"])
    sibling = first.result["run_id"]
    before = picture(case.runs / sibling)
    assert before, "the record is there"
    yield {"args": [str(case.runs), sibling]}
    assert picture(case.runs / sibling) == before


if __name__ == "__main__":
    main(attack)
