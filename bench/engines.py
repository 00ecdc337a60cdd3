"""The part of bench/run on walls of an installed engine: docker, podman, runc and runsc.

Each start stands beside the engine's own run, and each command in a sandbox that stays beside the engine's own exec. The
bench brings up a dockerd of its own; an engine that is not installed or does not come up is named as not measured.
"""
import contextlib
import os
import subprocess
import time

import staying

# An engine takes its time on a busy machine; the wall's own ten seconds would end a start that is to be timed.
POLICY = "version: 1\nbackend: {}\nlimits: {{startup: 60s}}\n"
START_FLOOR = 1.1  # of the engine's own run
EXEC_FLOOR_MS = {"docker": 2.0, "podman": 2.0, "oci": 2.0, "gvisor": 5.0}
PROGRAM = {"docker": "docker", "podman": "podman", "oci": "runc", "gvisor": "runsc"}
DAEMON_S = 60
OWN_RUN = ["run", "--rm", "--pull=never", "--network=none", "--log-driver=none", "--read-only", "--volume=/usr:/usr:ro"]
# Without these Debian's podman starts nothing where root lacks CAP_SYS_RESOURCE.
PODMAN = (["--runtime=runc"], ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"])
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@contextlib.contextmanager
def dockerd(bench, tools):
    """One of our own, without a network; what a client needs to reach it."""
    folder = bench.dir / "docker"
    folder.mkdir(exist_ok=True)
    env = {"DOCKER_HOST": f"unix://{folder / 'sock'}"}
    words = ["dockerd", "--data-root", folder / "data", "--exec-root", folder / "exec", "-p", folder / "pid", "-H",
             env["DOCKER_HOST"], "--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"]
    with open(folder / "log", "wb") as log:
        daemon = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            end = time.monotonic() + DAEMON_S
            while daemon.poll() is None and time.monotonic() < end and subprocess.run(
                    ["docker", "version"], env=tools.environment(bench, False) | env, check=False, **QUIET).returncode:
                time.sleep(0.1)
            yield env
        finally:
            daemon.terminate()
            daemon.wait(60)


def first_word(bench, tools, words):
    done = tools.run(bench, words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return done.stdout.split()[0]


def own_of_engine(bench, tools, name, prefix, stack):
    """The engine's own start of our image, and its exec in a container of ours."""
    program = [*prefix, tools.find(name)]
    image = first_word(bench, tools, [*program, "images", "--quiet", "--filter", "label=caisson.image"])
    before, after = PODMAN if name == "podman" else ([], [])
    started = [*prefix, bench.caisson, "up", staying.NAME, "--backend", name]
    tools.run(bench, started, check=True, **QUIET)
    stack.callback(tools.run, bench, [*prefix, bench.caisson, "down", staying.NAME], **QUIET)
    there = first_word(bench, tools, [*program, "ps", "--quiet", "--filter", "label=caisson.sandbox"])
    return [*program, *before, *OWN_RUN, *after, image, "/bin/true"], [*program, "exec", there, "/bin/true"]


def own_of_runtime(bench, tools, name, _prefix, stack):
    found = staying.container(bench, tools, PROGRAM[name])
    if found:
        stack.callback(tools.run, bench, found[1], **QUIET)
    return tools.oci(PROGRAM[name])(bench), found[0][2] if found else None


def measure_wall(bench, tools, name, env):
    runtime = bench.dir / "engines-run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    env = env | {"XDG_RUNTIME_DIR": str(runtime)}
    prefix = ["/usr/bin/env", *(f"{key}={value}" for key, value in env.items())]
    policy = bench.dir / f"{name}.yaml"
    policy.write_text(POLICY.format(name))
    ours = [*prefix, bench.caisson, "run", "-q", "--policy", policy, "--", "/bin/true"]
    cause = tools.is_working(bench, ours, False)  # makes the image, too
    if cause:
        bench.result["missing"].append(f"{name}: {cause}")
        return
    with contextlib.ExitStack() as stack:
        own = own_of_engine if name in ("docker", "podman") else own_of_runtime
        own_run, own_exec = own(bench, tools, name, prefix, stack)
        starts = tools.spawn(bench, [("own run", "-", own_run), ("caisson", "-", ours)], False, "-r", str(bench.rounds(5, 20)), "-w", "1")
        execs = tools.spawn(bench, [("own exec", "-", own_exec)], False, "-r", str(bench.rounds(5, 20)), "-w", "1") if own_exec else {}
    ours = staying.measure(bench, tools, ["exec", bench.rounds(60, 400)], False, more=env | {"CAISSON_BACKEND": name})["exec"]
    rows = starts | execs | {"library": ours}
    print(f"\n{name}: a start and its end, beside the engine's own; a command in what runs\n  {'':14}{'min':>10}{'p50':>10}{'p99':>10}  ms")
    for row in rows:
        print(f"  {row:14}" + "".join(f"{rows[row][key] / 1000:10.2f}" for key in ("min", "p50", "p99")))
    bench.result["tables"][f"engine {name}"] = rows
    key = "min" if bench.short else "p50"
    bench.judge(f"{name}: a start, to {PROGRAM[name]}'s own run", starts["caisson"][key] / starts["own run"][key], START_FLOOR, is_aim=True)
    bench.judge(f"{name}: a command through the library", ours[key] / 1000, EXEC_FLOOR_MS[name], unit="ms", is_aim=True)


def measure_engines(bench, tools):
    staying.compile_stay(bench)
    with contextlib.ExitStack() as stack:
        env = {"docker": stack.enter_context(dockerd(bench, tools))} if tools.find("dockerd") else {}
        for name, program in PROGRAM.items():
            if tools.find(program):
                measure_wall(bench, tools, name, env.get(name, {}))
            else:
                bench.result["missing"].append(f"{name}: {program} is not installed")
