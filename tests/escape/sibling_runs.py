"""Looks for the records and sandboxes of other runs: by name, by links and dots, by other roots and layers.

Would gain: what other runs printed and were started with; a way to change what their record says.
"""
import contextlib
import os
import re

from inside import attempt, main, opens, reads


def by_link(path):
    link = f"{os.environ['TMPDIR']}/to-a-sibling"
    os.symlink(path, link)
    return reads(link)


def any_reads(paths):
    """Does one of them open? Where none does, no errno tells why: they fail in several ways."""
    for path in paths:
        with contextlib.suppress(OSError):
            if reads(path):
                return True
    return False


def roots():
    """Another view of the machine: each process's that is shown, and its folder's and descriptors'."""
    for pid in (name for name in os.listdir("/proc") if name.isdigit()):
        yield from (f"/proc/{pid}/{name}" for name in ("root", "cwd", "cwd/../../..", "fd/0/../../../..", "fd/3"))


def layers():
    """Folders of overlays and of mounts' sources that the kernel names, their neighbours, and where engines keep theirs."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        named = re.findall(r"(?:upperdir|workdir|lowerdir)=([^,: ]+)|^\S+ \S+ \S+ (/\S+) ", file.read(), re.M)
    for folder in {one for pair in named for one in pair if one}:
        yield from (folder, os.path.dirname(folder), os.path.dirname(os.path.dirname(folder)))
    yield from ("/var/lib/docker/overlay2", "/var/lib/containers/storage/overlay", "/run/runc", "/run/crun", "/run/runsc", "/run/containerd")


def neighbours(runs, sibling):
    for folder in layers():
        for name in ("result.json", f"{sibling}/result.json", f".oci/{sibling}/config.json", f".oci/{sibling}/state/state.json",
                     "upper/result.json", f"{sibling}/upper/secret"):
            yield f"{folder}/{name}"


def attack(runs, sibling):
    result = f"{runs}/{sibling}/result.json"
    attempt("by a link", by_link, result)
    attempt("by dots from the workspace", reads, "../" * 24 + result[1:])
    attempt("by dots from /proc", reads, "/proc/self/cwd/" + "../" * 24 + result[1:])
    attempt("by other processes' roots", lambda: any_reads(root + result for root in roots()))
    attempt("by layers and sources of mounts", lambda: any_reads(neighbours(runs, sibling)))
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
