"""kernel.yama.ptrace_scope: where nobody can take the filter's listener, a run goes on unobserved.

Started by root, with a file over the kernel's in a mount namespace; behind landlock, because no proc
can be mounted where something covers it. tests/vm has the real switch.
"""
import json
import os
import shutil
import socket
import subprocess

import pytest

from run_fixtures import *

FORBIDDEN = """
import os, socket
def tried(name, call, *args):
    try:
        call(*args)
        print(name, "done")
    except OSError as e:
        print(name, e.errno)
path = os.environ["TMPDIR"] + "/f"
tried("write", lambda: open(path, "w").write("x"))
tried("elsewhere", lambda: open("/etc/passwd", "a"))
tried("set-id", os.open, path + "s", os.O_CREAT | os.O_WRONLY, 0o4755)
tried("empty", os.open, path, os.O_RDONLY | os.O_TRUNC)
tried("chmod", os.chmod, path, 0o600)
tried("utime", os.utime, path)
tried("connect", socket.socket(socket.AF_UNIX).connect, %r)
"""
WITHOUT = "write done\nelsewhere 13\nset-id 1\nempty 1\nchmod 1\nutime 1\nconnect 13\n"
WITH = "write done\nelsewhere 13\nset-id 1\nempty done\nchmod done\nutime done\nconnect 13\n"
ATTEMPTS = {"NetworkAccessViolation", "FilesystemWriteViolation", "SyscallViolation"}


def with_scope(box, scope, *argv):
    """`caisson argv` where the switch has this value."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("root: a file is mounted over the switch")
    kernel = box.base / "kernel"
    (kernel / "yama").mkdir(parents=True, exist_ok=True)
    (kernel / "yama/ptrace_scope").write_text(f"{scope}\n")
    box.give()
    ids = ["setpriv", "--reuid", str(box.uid), "--regid", str(box.uid), "--clear-groups"] if box.uid else []
    done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount --bind "$0" /proc/sys/kernel && exec "$@"', str(kernel), *ids,
                           box.caisson, *argv], env=box.env, cwd=box.ws, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", timeout=60, check=False)
    if "cannot mount" in done.stderr:
        pytest.skip("CAP_SYS_ADMIN: a file is mounted over the switch")
    return done


def is_closed(box, scope):
    return scope == 3 or scope == 2 and box.uid != 0


@pytest.mark.parametrize("scope", [1, 2, 3])
def test_a_run_goes_on(box, scope):
    policy, result = box.base / "landlock.yaml", box.base / "yama.json"
    policy.write_text(f"version: 1\ntier: auto\nbackend: landlock\nworkspace: {{path: {box.ws}, at: host, mode: ro}}\n")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(box.base / "socket"))
        listening.listen()
        (box.base / "socket").chmod(0o777)
        done = with_scope(box, scope, "run", "-q", "--result", str(result), "--policy", str(policy), "--", PYTHON, "-c",
                          FORBIDDEN % str(box.base / "socket"))
    assert result.exists(), done
    told = json.loads(result.read_text())
    assert (done.returncode, done.stdout) == (0, WITHOUT if is_closed(box, scope) else WITH), done
    if is_closed(box, scope):
        assert ATTEMPTS <= set(told["not_observed"]) and not ATTEMPTS & set(told["observed"])
        assert all("ptrace_scope" in told["not_observed_why"][name] for name in ATTEMPTS)
        assert told["violations"] == []
    else:
        assert ATTEMPTS <= set(told["observed"])
        assert {v["event"] for v in told["violations"]} == {"FilesystemWriteViolation", "NetworkAccessViolation", "SyscallViolation"}


@pytest.mark.parametrize("scope", [1, 2, 3])
def test_doctor_says_it_of_each_wall(box, scope):
    told = json.loads(with_scope(box, scope, "doctor", "--json").stdout)
    weaker = {wall["name"]: wall["weaker"] for wall in told["walls"]}
    assert told["yama_ptrace_scope"] == scope
    assert ("ptrace_scope is 3" in weaker["process"]) == (scope == 3)
    assert (f"ptrace_scope is {scope}" in weaker["landlock"]) == is_closed(box, scope)
