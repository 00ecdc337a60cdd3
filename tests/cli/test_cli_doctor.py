"""doctor: every wall with its cause and fix, the facts behind them, for people and for programs."""
import os
import subprocess

import pytest

KEYS = {"schema", "version", "kernel", "machine", "uid", "landlock_abi", "user_namespaces", "cgroup",
        "apparmor_restricts_userns", "yama_ptrace_scope", "walls", "tiers", "kept_groups", "missing_capabilities"}
WALL_KEYS = {"name", "tier", "runtime", "usable", "enforces", "enforces_by_cgroup", "limits", "cause", "fix", "weaker"}
WITHOUT = {"memory": "sampled", "processes": "rlimit", "cpus": "affinity"}
CONTROLLERS = {"memory": "memory", "processes": "pids", "cpus": "cpu"}
FEATURES = {"memory": "memory", "processes": "processes", "cpus": "cpu"}


def check_limits(told, wall):
    """Each limit is held by its controller or by what there is without; what controllers add is listed."""
    assert set(wall["limits"]) == set(WITHOUT)
    assert not set(wall["enforces"]) & set(wall["enforces_by_cgroup"])
    for limit, means in wall["limits"].items():
        has = told["cgroup"]["controllers"][CONTROLLERS[limit]]["usable"]
        assert means == ("cgroup" if has else WITHOUT[limit])
        if has:
            assert FEATURES[limit] in wall["enforces"] + wall["enforces_by_cgroup"]


def check(told):
    assert set(told) == KEYS and told["schema"] == "caisson.doctor/1"
    assert told["cgroup"]["layout"] in ("none", "v1", "v2")
    assert set(told["cgroup"]["controllers"]) == {"memory", "pids", "cpu"}
    assert told["walls"], "a build has walls"
    for wall in told["walls"]:
        assert set(wall) == WALL_KEYS
        if wall["usable"]:
            assert wall["cause"] == "" and wall["enforces"]
            check_limits(told, wall)
        else:
            assert wall["cause"], "an unusable wall says why"


def test_json(cli):
    answer = cli("doctor", "--json")
    told = answer.json()
    check(told)
    assert told["kernel"] == os.uname().release and told["uid"] == os.geteuid()
    assert (answer.status == 0) is any(wall["usable"] and wall["tier"] != "local" for wall in told["walls"])


def test_text_tells_the_same_walls(cli):
    told = cli("doctor", "--json").json()
    out = cli("doctor").out
    for wall in told["walls"]:
        assert f"{'yes' if wall['usable'] else 'no '} {wall['name']}" in out
        assert wall["cause"] in out and wall["fix"] in out and wall["weaker"] in out
    assert f"ABI {told['landlock_abi']}" in out or told["landlock_abi"] == 0
    assert cli("doctor", "-q").out == ""
    more = cli("doctor", "-v").out
    assert "enforces: " in more or not any(wall["usable"] for wall in told["walls"])
    for wall in told["walls"]:
        if wall["usable"]:
            said = ", ".join(f"{name} {'' if means == 'sampled' else 'by '}{means}" for name, means in wall["limits"].items())
            assert f"limits: {said}\n" in more
            assert not wall["enforces_by_cgroup"] or f"by cgroup: {' '.join(wall['enforces_by_cgroup'])}\n" in more


def test_a_run_holds_what_doctor_says(cli):
    """The same machine, the same means."""
    told = cli("doctor", "--json").json()
    if not told["walls"][0]["usable"]:
        pytest.skip("process: the wall is not usable here")
    result = cli("run", "--json", "--", "true").json()
    wall = next(wall for wall in told["walls"] if wall["runtime"] == result["backend"])
    means = result["limits"]["means"]
    assert {name: means[name] for name in wall["limits"]} == wall["limits"]
    assert set(wall["enforces"] + wall["enforces_by_cgroup"]) == set(result["enforced"])


def test_an_ordinary_user_with_groups(caisson, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("root: becomes another user")
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--groups=65534,4321", caisson, "doctor", "--json"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30, cwd="/", env={"HOME": "/nonexistent"})
    if done.returncode == 126 or b"ermission" in done.stderr:
        pytest.skip("nobody: cannot reach the build folder")
    import json
    told = json.loads(done.stdout)
    check(told)
    assert told["kept_groups"] == [4321] and told["missing_capabilities"] == []


def test_no_user_namespaces_is_named(caisson):
    if os.geteuid() != 0:
        pytest.skip("root: makes a namespace with the switch at 0")
    script = f"echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all \
--reuid=65534 --regid=65534 --clear-groups {caisson} doctor --json"
    done = subprocess.run(["unshare", "--user", "--map-users=all", "--map-groups=all", "--setuid=0", "--mount-proc", "--fork",
                           "--pid", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
    if not done.stdout:
        pytest.skip(f"unshare: {done.stderr.decode()[:80]}")
    import json
    told = json.loads(done.stdout)["user_namespaces"]
    assert told["usable"] is False and "max_user_namespaces" in told["cause"] and "sysctl" in told["fix"]
