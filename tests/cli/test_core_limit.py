"""The limit of core files is 1 inside: for 0 the kernel would start the handler of core_pattern.

A caller whose own hard limit is 0 cannot have 1, unless he is root and may raise it; doctor says it.
"""
import json
import os
import resource
import shutil
import subprocess

import pytest

from run_fixtures import *

CAP_SYS_RESOURCE = 24


def without_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def may_raise(box):
    with open("/proc/self/status", encoding="ascii") as file:
        [effective] = [int(line.split()[1], 16) for line in file if line.startswith("CapEff:")]
    return box.uid == 0 and effective >> CAP_SYS_RESOURCE & 1


@pytest.mark.parametrize("policy", [None, LANDLOCK], ids=["process", "landlock"])
@pytest.mark.parametrize("has_none", [False, True])
def test_limit_inside(box, policy, has_none):
    if not has_none and resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        pytest.skip("core: the hard limit of core files is 0 here")
    run = box.run("grep", "core file", "/proc/self/limits", policy=policy, cwd=box.ws,
                  preexec_fn=without_core if has_none else None)
    wanted = "0" if has_none and not may_raise(box) else "1"
    assert run.text.split()[4:6] == [wanted, wanted], run


STARTED_BY_US = ("process", "landlock")  # an engine or a runtime that may not set the limit starts nothing


@pytest.mark.parametrize("pattern, has_none", [("|/bin/x", True), ("|/bin/x", False), ("core", True)])
def test_doctor_says_it(box, pattern, has_none):
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("root: a file is mounted over core_pattern")
    if not has_none and resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        pytest.skip("core: the hard limit of core files is 0 here")
    kernel = box.base / "kernel"
    kernel.mkdir()
    (kernel / "core_pattern").write_text(pattern + "\n")
    box.give()
    ids = ["setpriv", "--reuid", str(box.uid), "--regid", str(box.uid), "--clear-groups"] if box.uid else []
    done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount --bind "$0" /proc/sys/kernel && exec "$@"', str(kernel), *ids,
                           box.caisson, "doctor", "--json"], env=box.env, cwd=box.ws, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, encoding="utf-8", timeout=60, check=False,
                          preexec_fn=without_core if has_none else None)
    for wall in json.loads(done.stdout)["walls"]:
        is_said = "core_pattern" in wall["weaker"]
        assert is_said == (has_none and pattern[0] == "|" and not may_raise(box) and wall["name"] in STARTED_BY_US), wall
