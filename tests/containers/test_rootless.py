"""podman of an ordinary user: what is his stays his, and what it cannot hold is refused."""
import json
import os
import pathlib

from run_fixtures import wait_for

HELD = "workspace: {mode: rw}\ncontainer: {rootless: required}\n"


def test_it_is_taken_and_recorded(rootless):
    run = rootless.sh("id -u; id -un; echo mine > made; cat /proc/self/uid_map; grep -E '^(CapEff|NoNewPrivs|Seccomp:)' /proc/self/status",
                      HELD)
    lines = [line.split() for line in run.text.splitlines()]
    assert lines[:2] == [["1000"], ["sandbox"]] and ["1000", "0", "1"] in lines, run
    assert lines[-3:] == [["CapEff:", "0" * 16], ["NoNewPrivs:", "1"], ["Seccomp:", "2"]], run
    made = rootless.box.ws / "made"
    assert made.read_text() == "mine\n" and made.stat().st_uid == rootless.box.uid, "behind the wall he is himself"
    assert run.result["container"]["rootless"] is True and run.result["runtime"] == "balanced/podman", run


def test_nobody_is_root_behind_it(rootless):
    with rootless.up(more=HELD) as name:
        assert rootless.cli("exec", name, "--", "sh", "-c", "sleep 321 & echo").status == 0
        inside = [pid for pid in pathlib.Path("/proc").glob("[0-9]*") if is_agent(pid)]
        assert inside and all(pid.stat().st_uid == rootless.box.uid for pid in inside)
        assert rootless.cli("write", name, "note", input=b"new\n").status == 0
        assert (rootless.box.ws / "note").stat().st_uid == rootless.box.uid
    assert wait_for(lambda: rootless.containers() == [], 60)


def is_agent(pid):
    try:
        return (pid / "cmdline").read_bytes().startswith(b"/run/caisson/caisson-agent\0--stdio")
    except OSError:
        return False


def test_what_it_cannot_hold_is_refused(rootless):
    """With the reason. On control groups of the second generation it holds what is delegated."""
    if "memory" in pathlib.Path("/sys/fs/cgroup/cgroup.controllers").read_text().split() if os.path.exists(
            "/sys/fs/cgroup/cgroup.controllers") else False:
        return
    run = rootless.sh("true", "limits_mode: hard\n")
    assert run.status == 125 and run.result["container"] is None, run
    assert "the podman wall does not enforce: memory, processes, cpu: rootless, and control groups v1 are root's alone" in run.err, run
    run = rootless.sh("true", HELD)
    assert run.status == 0 and run.result["limits"]["means"]["memory"] == "none", run
    assert not {"memory", "processes", "cpu"} & set(run.result["enforced"]), run


def test_its_own_network(rootless):
    """By slirp4netns, and only where the policy lends it."""
    show = "ls /sys/class/net; grep -c 192.0.2.1 /etc/resolv.conf"
    assert rootless.sh(show, "network: {mode: engine}\n").text.split() == ["lo", "tap0", "0"]
    assert rootless.sh(show).text.split() == ["lo", "1"]


def test_what_is_killed_leaves_nothing(rootless):
    process = rootless.box.start("sleep", "600", policy=rootless.policy(HELD))
    assert wait_for(lambda: len(rootless.containers()) == 1, 60)
    process.kill()
    process.communicate(timeout=60)
    assert wait_for(lambda: rootless.containers() == [], 60)
    done = rootless.cli("doctor", "--json")
    [podman] = [wall for wall in json.loads(done.text)["walls"] if wall["name"] == "podman"]
    assert "its engine runs as root" not in json.dumps(podman), podman
