"""Asks the kernel, from outside, whose uid and gid the sandbox really has.

Would gain: kernel uid 0 writes /proc/sys and whatever on the host belongs to root, without a
single capability.
"""
import os
import sys
import time

from inside import attempt, main


def attack(token):
    print("ready", token, flush=True)
    sys.stdin.read()
    attempt("root inside", lambda: os.getuid() == 0 or os.geteuid() == 0 or os.getgid() == 0)


def host(case):
    import pathlib
    import subprocess
    from behind import pids_with

    def run(flags, command):
        started, seconds = time.monotonic(), 2 if case.wall == "gvisor" else 10
        process = case.start(flags, command, stdin=subprocess.PIPE)
        ids = set()
        while not ids and time.monotonic() - started < seconds:
            for pid in pids_with(case.token):
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
                if lines["Name"] == "python3" and lines.get("Seccomp") == "2":
                    ids.add((tuple(lines["Uid"].split()), tuple(lines["Gid"].split()), lines["Groups"].strip()))
            time.sleep(0.02)
        case.seen = ids
        return case.finish(process, started)

    yield {"run": run, "args": [case.token], "flags": []}
    assert bool(case.seen) != (case.wall == "gvisor"), "what runs on gVisor's kernel is no process of the host's by that name"
    for uids, gids, groups in case.seen:
        assert len(set(uids)) == 1 and len(set(gids)) == 1 and "0" not in uids + gids + tuple(groups.split())
        if case.who == "user":
            assert uids[0] == str(case.uid)
        else:
            assert int(uids[0]) > 65536 and groups in ("", gids[0]), "root's sandbox has an id that owns nothing"


if __name__ == "__main__":
    main(attack)
