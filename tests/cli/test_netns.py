"""The net namespace is made beside the wall: it is the sandbox's own, and a failure there is told."""
import os
import subprocess
import sys

import pytest

from run_fixtures import *

CHILD = """
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x10000000) == 0, ctypes.get_errno()
print("made", flush=True)
sys.stdin.readline()
open("/proc/sys/user/max_net_namespaces", "w").write("0")
done = subprocess.run(sys.argv[2:], user=int(sys.argv[1]), group=int(sys.argv[1]), extra_groups=[])
sys.exit(done.returncode)
"""


def test_it_is_its_own(box):
    """Nothing of the host's but what every namespace has; two runs have two, and neither is ours."""
    script = "readlink /proc/self/ns/net; cut -d: -f1 /proc/net/dev | tail -n +3"
    first, second = box.sh(script), box.sh(script)
    names = [run.out.decode().split() for run in (first, second)]
    assert all(name[1:] == ["lo"] for name in names), names
    assert os.readlink("/proc/self/ns/net") not in (names[0][0], names[1][0])


def test_no_room_for_one(user_box):
    """The kernel's limit on net namespaces: refused with the cause, nothing ran."""
    if os.geteuid() != 0:
        pytest.skip("root: maps the ids of a user namespace")
    argv = [sys.executable, "-c", CHILD, str(user_box.uid), user_box.caisson, "run", "--", "sh", "-c", "echo ran"]
    user_box.give()
    child = subprocess.Popen(argv, cwd=user_box.ws, env=user_box.env, text=True, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == "made\n"
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{child.pid}/{name}", "w") as maps:
            maps.write("0 0 4294967295")
    out, err = child.communicate("\n", timeout=20)
    assert child.returncode == 125 and out == "", (out, err)
    assert "cannot make a net namespace: No space left on device" in err and "user.max_net_namespaces" in err, err
