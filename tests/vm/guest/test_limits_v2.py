"""Limits held by cgroup v2 controllers, as root and as a user in a delegated group."""
import os
import signal
import subprocess
import time

import pytest

from conftest import GROUPS, doctor, wait_for, write

PYTHON = "/usr/bin/python3"
EAT = "x = []\nwhile True: x.append(bytearray(1) * (8 << 20))"
ALL = {"memory": "cgroup", "processes": "cgroup", "cpus": "cgroup"}
LEFT_S = 8


def means(run):
    return {name: run.result["limits"]["means"][name] for name in ALL}


def nothing_left(place):
    left = wait_for(lambda: not place.left(), LEFT_S) or place.left()
    assert left is True, left
    assert not (place.groups / "caisson").exists()


def processes_with(token):
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and pid != str(os.getpid())
            and token in read(f"/proc/{pid}/cmdline") and "pytest" not in read(f"/proc/{pid}/cmdline")]


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def test_means_and_enforced(place):
    run = place.box.run("true")
    assert run.status == 0 and means(run) == ALL, run
    assert {"memory", "processes", "cpu"} <= set(run.result["enforced"]), run.result["enforced"]
    nothing_left(place)


def test_what_is_written(place):
    """The kernel's own files say what was asked for, and who is in which group."""
    process = place.box.start("sleep", "60", flags=["--memory", "128MiB", "-l", "processes=20", "--cpus", "0.5"])
    cmd = place.cmd()
    assert wait_for(lambda: any("sleep" in read(f"/proc/{pid}/cmdline") for pid in (cmd / "cgroup.procs").read_text().split()), 20)
    found = {name: (cmd / name).read_text().strip() for name in ("memory.max", "memory.swap.max", "pids.max", "cpu.max")}
    assert found == {"memory.max": str(128 << 20), "memory.swap.max": "0", "pids.max": "20", "cpu.max": "50000 100000"}
    assert int((cmd.parent / "memory.max").read_text()) == 192 << 20
    [inside] = (cmd / "cgroup.procs").read_text().split()
    assert "sleep" in read(f"/proc/{inside}/cmdline")
    agents = (cmd.parent / "agent" / "cgroup.procs").read_text().split()
    assert agents and inside not in agents
    assert str(process.pid) not in agents, "the monitor stays outside"
    process.terminate()
    process.communicate(timeout=30)
    nothing_left(place)


def test_memory(place):
    run = place.box.run(PYTHON, "-c", EAT, flags=["--memory", "96MiB"])
    assert (run.status, run.reason) == (137, "memory"), run
    [fact] = run.facts
    assert fact["event"] == "MemoryLimitViolation" and fact["source"] == "cgroup" and fact["certain"], fact
    assert 80 << 20 < run.result["usage"]["mem_peak_bytes"] <= 96 << 20, run.result["usage"]
    nothing_left(place)


def test_memory_of_a_helper(place):
    run = place.box.sh(f"{PYTHON} -c '{EAT}'; exit 2", flags=["--memory", "96MiB"])
    assert (run.status, run.reason) == (137, "memory"), run


def test_memory_in_shared_memory(place):
    """Pages that no process maps: nothing but a controller sees them."""
    run = place.box.sh("head -c 300M /dev/zero >/dev/shm/x && echo survived", flags=["--memory", "96MiB"],
                       policy="version: 1\nscratch: {size: 1GiB}\nlimits: {memory: 2GiB}\n")
    assert (run.status, run.reason) == (137, "memory") and "survived" not in run.text, run
    nothing_left(place)


def test_processes(place):
    run = place.box.python("""
        import os, time
        made = 0
        for _ in range(100):
            try:
                pid = os.fork()
            except OSError:
                break
            if pid == 0:
                time.sleep(20)
                os._exit(0)
            made += 1
        print(made)
    """, flags=["-l", "processes=20"])
    assert (run.status, run.text) == (0, "19\n"), run
    [fact] = run.facts
    assert fact["event"] == "ProcessLimitViolation" and fact["source"] == "cgroup" and fact["count"] == 1, fact
    nothing_left(place)


def test_processes_under_kill(place):
    policy = "version: 1\nlimits: {processes: 12}\non_violation: kill\n"
    run = place.box.python("import os, time\nfor _ in range(40):\n    try:\n        if os.fork() == 0: time.sleep(60); os._exit(0)\n"
                           "    except OSError: pass\ntime.sleep(60)", policy=policy)
    assert (run.status, run.reason) == (137, "processes"), run
    nothing_left(place)


def test_fork_bomb(place):
    run = place.box.run("bash", "-c", "f() { f | f & }; f; sleep 60", flags=["-l", "processes=60", "--timeout", "3s"])
    assert run.status in (0, 1, 124, 254) and run.seconds < 20, run
    nothing_left(place)


def test_cpu(place):
    """Two busy processes on half a processor get half the time that passes."""
    run = place.box.sh(f"for i in 1 2; do {PYTHON} -c 'import time\ne = time.time() + 3\nwhile time.time() < e: pass' & done; wait",
                       flags=["--cpus", "0.5"])
    assert run.status == 0, run
    usage = run.result["usage"]
    assert usage["cpu_ms"] < 0.7 * usage["wall_ms"], usage


def test_hard(place):
    run = place.box.run("true", policy="version: 1\nlimits_mode: hard\n")
    assert run.status == 0 and means(run) == ALL, run


def test_monitor_is_killed(place):
    process = place.box.start("sh", "-c", "sleep 4711 & sleep 4711; true")
    cmd = place.cmd()
    assert wait_for(lambda: len((cmd / "cgroup.procs").read_text().split()) >= 3, 20)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    nothing_left(place)
    assert wait_for(lambda: not processes_with("4711"), LEFT_S)


def test_monitor_and_cleaner_are_killed(place):
    """Whatever is left then, the next run takes away; groups younger than ten seconds are spared."""
    process = place.box.start("sleep", "4712")
    place.cmd()
    for pid in os.listdir("/proc"):
        if pid.isdigit() and read(f"/proc/{pid}/comm").strip() in ("caisson-cleaner", "caisson-cleane"):
            os.kill(int(pid), signal.SIGKILL)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert wait_for(lambda: not processes_with("4712"), LEFT_S), "it ends with its monitor all the same"
    if place.left():
        time.sleep(11)
        assert place.box.run("true").status == 0
    nothing_left(place)


def test_many_at_once(place):
    """Groups come and go beside each other: nobody loses his, nothing stays."""
    for _ in range(3):
        runs = []
        for _ in range(6):
            process = place.box.start("true", flags=["--memory", "200MiB"])
            runs.append((process, place.box.result))
        for process, result in runs:
            out, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
            assert '"memory":"cgroup"' in result.read_text().replace(" ", ""), result.read_text()
    nothing_left(place)


def test_no_deeper_with_each_run(place_of):
    """The group that our own processes were moved to is no place for another one."""
    place = place_of("leaf")
    before = None
    for _ in range(3):
        assert means(place.box.run("true")) == ALL
        groups = sorted(str(path) for path in place.groups.rglob("*") if path.is_dir())
        assert before in (None, groups), groups
        before = groups


@pytest.mark.parametrize("name", ["root-leaf", "leaf"])
def test_the_callers_own_limit_holds(place_of, name):
    """Nobody gets out of a limited group by running Caisson in it."""
    place = place_of(name)
    write(place.start / "memory.max", str(150 << 20))
    run = place.box.run(PYTHON, "-c", EAT, policy="version: 1\nlimits: {memory: 1GiB}\n")
    assert (run.status, run.reason) == (137, "memory"), run
    assert run.result["usage"]["mem_peak_bytes"] < 160 << 20  # charged in batches, for each processor and by the kernel itself


def test_part_of_the_controllers(place_of):
    place = place_of("part")
    run = place.box.run("true")
    assert means(run) == ALL | {"cpus": "affinity"}, run
    assert "cpu" not in run.result["enforced"] and "memory" in run.result["enforced"], run.result["enforced"]
    run = place.box.run("true", policy="version: 1\nlimits_mode: hard\nlimits: {cpus: 1}\n")
    assert run.status == 125 and "cpus" in run.err and "Delegate=cpu" in run.err, run
    nothing_left(place)
    report = doctor(place.box)
    assert "memory yes, pids yes" in report and "Delegate=cpu memory pids" in report, report


def test_no_delegation(place_of):
    place = place_of("nothing")
    run = place.box.run("true")
    assert run.status == 0 and "cgroup" not in means(run).values(), run
    assert not {"memory", "cpu"} & set(run.result["enforced"]), run.result["enforced"]
    run = place.box.run("true", policy="version: 1\nlimits_mode: hard\n")
    assert run.status == 125 and "Delegate=yes" in run.err and "limits_mode: best" in run.err, run
    assert "Delegate=yes" in doctor(place.box), doctor(place.box)
    assert not [path for path in place.start.rglob("*") if path.is_dir()]


def in_namespace(place, script):
    """Runs a script in mount and cgroup namespaces of its own, as a container's engine does."""
    return subprocess.run(["sh", "-c", f"echo 0 >{place.start}/cgroup.procs; exec unshare -m -C sh -c '{script}'"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                          encoding="utf-8", env=place.box.env | {"PATH": os.environ["PATH"]}, cwd=place.box.ws).stdout


def test_in_a_container(place_of):
    """Its own group is the mount's top, with the container's processes in it."""
    place = place_of("root-leaf")
    out = in_namespace(place, f"umount {GROUPS}; mount -t cgroup2 x {GROUPS}; {os.environ['CAISSON']} doctor; "
                              f"exec {os.environ['CAISSON']} run --result - -q -- true")
    assert "memory yes, pids yes, cpu yes" in out and out.count('"cgroup"') == 3, out
    nothing_left(place)


def test_in_a_container_with_a_read_only_mount(place_of):
    place = place_of("root-leaf")
    out = in_namespace(place, f"umount {GROUPS}; mount -t cgroup2 x {GROUPS}; mount -o remount,bind,ro {GROUPS}; exec {os.environ['CAISSON']} doctor")
    assert "read-only" in out and "writable" in out, out


def test_without_a_cgroup_mount(place_of):
    place = place_of("root-leaf")
    out = in_namespace(place, f"umount -l {GROUPS}; exec {os.environ['CAISSON']} doctor")
    assert "mount -t cgroup2" in out, out


def test_command_cannot_reach_the_groups(place):
    """Delegation is the caller's: the command inside sees no group that it could write."""
    run = place.box.sh(f"ls {GROUPS}/*; cat /proc/self/cgroup; for f in {GROUPS}/cgroup.procs {GROUPS}/tester/cgroup.procs; "
                       "do echo 0 >$f && echo entered; done; true")
    assert "entered" not in run.text, run
    run = place.box.sh(f"for f in {GROUPS}/cgroup.procs {GROUPS}/tester/cgroup.procs {GROUPS}/tester/caisson-main/cgroup.procs; "
                       "do echo 0 >$f && echo entered; done; true",
                       policy=f"version: 1\ntier: auto\nbackend: landlock\nworkspace: {{path: {place.box.ws}, at: host}}\n")
    assert run.status in (0, 125) and "entered" not in run.text, run


