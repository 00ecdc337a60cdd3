"""Attacks of the escape suite behind the runtimes: each comes to what it comes to behind the process wall.

Those that matter most here run always; CSN_ESCAPE_ALL=1 runs every one, two minutes. Events are not compared: behind a
runtime attempts are not observed, and the result says so.
"""
import os
import pathlib
import sys

import pytest

from runtimes import skip_without

SUITE = str(pathlib.Path(__file__).resolve().parents[1] / "escape")


def suite():
    """Its modules, whose names (conftest, inside) must not be taken for those of others."""
    mine, path = sys.modules.pop("conftest", None), list(sys.path)
    sys.path.insert(0, SUITE)
    try:
        import behind
        import conftest
        import test_escape
        import verdicts
        return behind, conftest, test_escape, verdicts
    finally:
        sys.path[:] = [*path, SUITE]  # attacks are imported when they run
        sys.modules.pop("conftest", None)
        if mine:
            sys.modules["conftest"] = mine


ALWAYS = ["agent_limits", "agent_memory", "capabilities", "hidden_files_ro", "hidden_files_rw", "host_files", "host_memory",
          "mount_calls", "mount_symlink", "namespaces", "proc_links", "protected_names", "symlinks_out", "system_files",
          "workspace_ro", "device_nodes", "sibling_runs", "file_handles"]
# What a runtime makes different, and why that gives nothing away.
DIFFERENT = {
    "connect is refused, or answered by another kernel": "abstract_socket unix_socket_cow unix_socket_dup2 unix_socket_ro unix_socket_swap",
    "no copy-on-write": "commit_links commit_setid cow_layer hidden_files_cow unix_socket_cow",
    "another kernel's own": "agent_signals cgroup_files devices kernel_uid mount_table netlink_route raise_limits "
                            "unreadable_program",
    "the agent's file and /proc entry are there, and refused": "agent_file agent_proc",
    "a namespace of its own has a loopback": "tcp_loopback udp_host",
    "another architecture's call ends the program": "foreign_entry",
    "it asks for the process wall's own filter, mounts or rows of the table": "fifo_ro host_signals proc_machine scratch_fill",
}
BEHIND, ESCAPES, ATTACKS, TABLE = suite()
shared, caisson, native, walls = (getattr(ESCAPES, name) for name in ("shared", "caisson", "native", "walls"))
case = ESCAPES.case


def cases():
    different = set(" ".join(DIFFERENT.values()).split())
    names = [name for name in BEHIND.attacks() if name not in different] if os.environ.get("CSN_ESCAPE_ALL") else ALWAYS
    for attack in names:
        for wall in ("oci", "gvisor") if attack != "host_files" else ("oci",):  # gvisor has a /sys of its own
            yield pytest.param(attack, (wall, "root"), id=f"{attack}-{wall}")


@pytest.mark.parametrize("attack, case", cases(), indirect=["case"])
def test_attack(attack, case):
    skip_without({"oci": "runc"}.get(case.wall, case.wall))
    verdict = TABLE.verdict_of(attack, "process", "root")
    run = ATTACKS.perform(case, attack)
    ATTACKS.judge(run, TABLE.Verdict(verdict.word, tuple(run.events), but=verdict.but, ends=verdict.ends))
