"""The parts of bench/run on sandboxes that stay: calls, bytes, a life, many at once.

bench/stay.c measures through libcaisson, each thing beside its least possible peer in one process;
bench/spawn.c measures the command beside `crun exec` and `runc exec`.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "faults")]

import killing  # noqa: E402

EXEC_FLOOR = 1.7
COMMAND_FLOOR_MS = 3.0
READ_FLOOR = 1.4
COPY_FLOOR = 0.5  # of a bare relay, which stores what is written: 2 GB/s where that makes 4
COPY_AIM_GB_S = 2.0
LIFE_FLOOR = 1.5
POOL_FLOOR_MS = 1.5  # open, a command and close
CROWD_PSS_FLOOR = 3.0
CROWD_CPU_FLOOR = 0.01
CROWD_SETTLE_S = 1
GONE_S = 5
NAME = "bench"


def compile_stay(bench):
    """Linked with the static library of the build folder, as a program of somebody's would be."""
    top = HERE.parent
    library = bench.build / "src/client/libcaisson.a"
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-O2", "-D_GNU_SOURCE", f"-I{top / 'src'}",
                    f"-I{top / 'include'}", "-o", str(bench.bin / "stay"), str(HERE / "stay.c"),
                    str(top / "src/base/str.c"), str(library), "-lpthread"], check=True)


def measure(bench, tools, words, is_user, cwd=None, more=None):
    """What bench/stay.c prints: {name: {count, min, p50, p99}}."""
    drop = tools.as_user if is_user and tools.IS_ROOT else None
    done = subprocess.run([str(bench.bin / "stay"), words[0], str(bench.caisson), *map(str, words[1:])],
                          cwd=cwd or bench.workspace, env=tools.environment(bench, is_user or not tools.IS_ROOT) | (more or {}),
                          preexec_fn=drop, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    table = {}
    for line in done.stdout.splitlines():
        name, count, *values = line.split("\t")
        table[name] = {"count": int(count), **dict(zip(("min", "p50", "p99"), map(float, values)))}
    return table


def ratio(bench, ours, theirs):
    """Of p50; of few rounds on a busy machine, the best of each."""
    key = "min" if bench.short else "p50"
    return ours[key] / theirs[key]


def show(bench, title, table, unit):
    print(f"\n{title}\n  {'':14}{'min':>10}{'p50':>10}{'p99':>10}  {unit}")
    for name, row in table.items():
        print(f"  {name:14}" + "".join(f"{row[key]:10.1f}" for key in ("min", "p50", "p99")))
    bench.result["tables"][title] = table


def measure_calls(bench, tools, who, is_user):
    table = measure(bench, tools, ["exec", bench.rounds(200, 1000)], is_user)
    show(bench, f"/bin/true in a sandbox that stays ({who})", table, "us")
    bench.judge(f"a command through the library ({who}): to fork, exec and wait",
                ratio(bench, table["exec"], table["fork"]), EXEC_FLOOR)
    table = measure(bench, tools, ["read", bench.rounds(3000, 20000)], is_user)
    show(bench, f"a file of 4 KiB, read through the library ({who})", table, "us")
    bench.judge(f"a read of 4 KiB through the library ({who}): to a bare relay",
                table["read"]["p50"] / table["relay"]["p50"], READ_FLOOR, is_aim=True)  # of four wake-ups, says where they land
    table = measure(bench, tools, ["life", bench.rounds(30, 200)], is_user)
    show(bench, f"open, a command and close ({who})", table, "us")
    bench.judge(f"open, a command and close ({who}): to caisson run",
                ratio(bench, table["life"], table["run"]), LIFE_FLOOR)


def measure_pool(bench, tools, who, is_user):
    """Sandboxes of a pool, one at a time; the pool is full again when the next is asked for."""
    environment = tools.environment(bench, is_user or not tools.IS_ROOT)
    runtime = pathlib.Path(environment["HOME"], "run")
    runtime.mkdir(mode=0o700, exist_ok=True)
    if is_user and tools.IS_ROOT:
        os.chown(runtime, tools.USER, tools.USER)
    caisson = ["/usr/bin/env", f"XDG_RUNTIME_DIR={runtime}", bench.caisson, "pool"]
    tools.run(bench, [*caisson, "start", NAME, "--size", "2"], is_user, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    try:
        table = measure(bench, tools, ["pool", bench.rounds(30, 150)], is_user, more={"XDG_RUNTIME_DIR": str(runtime)})
    finally:
        tools.run(bench, [*caisson, "stop", NAME], is_user, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    show(bench, f"open, a command and close, from a pool ({who}); fork: to fork, exec and wait", table, "us")
    bench.judge(f"open, a command and close, from a pool ({who})", table["life"]["min" if bench.short else "p50"] / 1000,
                POOL_FLOOR_MS, unit="ms", is_aim=True)  # fork, exec and wait alone takes most of it where processors are slow


def measure_copy(bench, tools):
    """Files in memory, so that no disk is measured; `sparse` is a hole, `large` and what is written are real bytes."""
    mib = bench.rounds(256, 1024)
    folder = pathlib.Path("/dev/shm", bench.dir.name)
    folder.mkdir()
    try:
        with open(folder / "sparse", "wb") as sparse, open(folder / "large", "wb") as large:
            sparse.truncate(mib << 20)
            for _ in range(mib):
                large.write(os.urandom(1 << 20))
        if tools.IS_ROOT:
            for path in (folder, *folder.iterdir()):
                os.chown(path, tools.USER, tools.USER)
        table = measure(bench, tools, ["copy", bench.rounds(5, 9), mib], True, folder)
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    show(bench, f"{mib} MiB through the wall, files in memory", table, "MB/s")
    for name in ("read, sparse", "read", "write"):
        relay = table["relay, stored" if name == "write" else "relay"]
        values = [table[name][key] / relay[key] for key in ("p50", "p99")]
        bench.judge(f"{mib} MiB through the library: {name}, to a bare relay", max(values) if bench.short else values[0],
                    COPY_FLOOR, at_least=True)
        bench.judge(f"{mib} MiB through the library: {name}", table[name]["p99" if bench.short else "p50"] / 1000, COPY_AIM_GB_S,
                    at_least=True, unit="GB/s", is_aim=True)


# ---- the command, beside the peers that have such a verb ------------------------------------------


def sleeping(bench, tools):
    """The bundle of bench/run, whose command sleeps."""
    folder = bench.dir / "bundle-sleeping"
    if not folder.exists():
        config = json.loads((tools.bundle(bench) / "config.json").read_text())
        config["process"]["args"] = ["/bin/sleep", "3600"]
        config["root"]["path"] = str(bench.dir / "bundle" / "rootfs")
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def container(bench, tools, name):
    """Starts one; the line for spawn that runs a command in it, and how it is removed. None: it cannot."""
    namespace, folder = "-", sleeping(bench, tools)
    if name == "crun" and os.path.ismount("/sys/fs/cgroup/unified"):
        namespace = tools.without_v2(bench)
    enter = [] if namespace == "-" else ["nsenter", "--mount=" + namespace]
    program = [tools.find(name), "--root", str(bench.dir / ("state-stay-" + name))]
    ident = f"{bench.dir.name}-{name}"
    started = tools.run(bench, [*enter, *program, "run", "--detach", "--bundle", folder, ident], stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30)  # a pipe would stay open
    if started.returncode != 0:
        bench.result["missing"].append(f"{name} exec: {name} run --detach failed")
        return None
    return (name, namespace, [*program, "exec", ident, "/bin/true"]), [*enter, *program, "delete", "--force", ident]


def measure_command(bench, tools, who, is_user):
    environment = tools.environment(bench, is_user)
    runtime = pathlib.Path(environment["HOME"], "run")
    runtime.mkdir(mode=0o700, exist_ok=True)
    if is_user and tools.IS_ROOT:
        os.chown(runtime, tools.USER, tools.USER)
    caisson = ["/usr/bin/env", f"XDG_RUNTIME_DIR={runtime}", bench.caisson]
    tools.run(bench, [*caisson, "up", NAME], is_user, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    socket = runtime / "caisson" / (NAME + ".sock")
    lines = [("true", "-", ["/bin/true"]), ("caisson", "-", [bench.caisson, "exec", socket, "--", "/bin/true"])]
    found = [container(bench, tools, name) for name in ("crun", "runc") if tools.IS_ROOT and not is_user and tools.find(name)]
    found = [pair for pair in found if pair]
    try:
        table = tools.spawn(bench, [*lines, *(line for line, _ in found)], is_user, "-r", str(bench.rounds(60, 400)), "-w", "2")
    finally:
        tools.run(bench, [*caisson, "down", NAME], is_user, stdin=subprocess.DEVNULL)
        for _, removal in found:
            tools.run(bench, removal, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    for row in table.values():
        row.update({key: row[key] / 1000 for key in ("min", "p50", "p99")})
    title = f"a command in what runs already ({who})"
    bench.result["tables"][title] = table
    tools.print_table(f"{title}: caisson exec to ...", table, "ms")
    bench.judge(f"caisson exec NAME -- /bin/true ({who})", table["caisson"]["min" if bench.short else "p50"], COMMAND_FLOOR_MS,
                unit="ms")


def measure_stay(bench, tools):
    compile_stay(bench)
    (bench.workspace / "small").write_bytes(os.urandom(4096))
    for who, is_user in (("ordinary user", True), ("root", False)):
        if is_user or tools.IS_ROOT:
            measure_calls(bench, tools, who, is_user)
            measure_pool(bench, tools, who, is_user)
            measure_command(bench, tools, who, is_user)
    measure_copy(bench, tools)


# ---- many at once ---------------------------------------------------------------------------------


def cpu_us(pids):
    """Processor time of them all so far."""
    total = 0
    for pid in pids:
        total += int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    return total / 1000


def present(bench):
    """Processes without a parent and mounts: runsc, timed before, keeps one for good."""
    return [*killing.survivors(), *killing.mounts(str(bench.dir))]


def left_of_crowd(bench, groups, scratch, others):
    """What closing must have taken away; `others` were there before."""
    checks = (lambda: [text for text in present(bench) if text not in others], groups.left if groups else list,
              lambda: killing.dead_scratch(scratch))
    return killing.gone_within(GONE_S, *checks)[1]


def watch_crowd(bench, tools, process, count):
    """The opening is over: what `count` of them take while nobody asks anything."""
    watch_s = bench.rounds(2, 10)
    time.sleep(CROWD_SETTLE_S)
    members = [pid for pid in tools.tree(process.pid) if pid != process.pid]
    before = cpu_us(members)
    time.sleep(watch_s)
    share = (cpu_us(members) - before) / (watch_s * 1e6) * 100
    total = sum(tools.pss(pid) for pid in members)
    return {"processes": len(members), "pss_mib_each": total / count / (1 << 20), "pss_mib": total / (1 << 20),
            "cpu_percent": share}


def one_crowd(bench, tools, who, is_user, count):
    groups = killing.Groups() if tools.IS_ROOT and not is_user else None
    scratch, others = killing.scratch_folders(), present(bench)

    def enter():
        if groups:
            groups.enter()
        if is_user and tools.IS_ROOT:
            tools.as_user()

    with killing.adopting():
        process = subprocess.Popen([str(bench.bin / "stay"), "crowd", str(bench.caisson), str(count)], preexec_fn=enter,
                                   cwd=bench.workspace, env=tools.environment(bench, is_user or not tools.IS_ROOT),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            words = [process.stdout.readline().split() for _ in range(2)]
            if not all(words):
                raise RuntimeError("a crowd could not be opened")
            row = {name + "_us": float(value) for name, value in words} | watch_crowd(bench, tools, process, count)
        finally:
            process.stdin.close()
        row["close_us"] = float(process.stdout.readline().split()[1])
        process.wait()
        row["left"] = left_of_crowd(bench, groups, scratch, others)
        if groups:
            groups.close()
    label = f"{count} sandbox{'es at once' if count > 1 else ''} ({who})"
    print(f"\n{label}: each opened in {row['open_us'] / 1000:.1f} ms, a command in "
          f"{row['call_us'] / 1000:.1f}, closed in {row['close_us'] / 1000:.1f}; {row['processes']} processes, "
          f"{row['pss_mib']:.0f} MiB, {row['cpu_percent']:.3f}% of a processor while they wait; left: {row['left'] or 'nothing'}")
    bench.result.setdefault("crowd", {})[label] = {"count": count, **row}
    bench.judge(f"{label}: PSS of each", row["pss_mib_each"], CROWD_PSS_FLOOR, unit="MiB")
    bench.judge(f"{label}: processor while they wait, each", row["cpu_percent"] / count,
                CROWD_CPU_FLOOR, unit="%")
    bench.judge(f"{label}: left after closing", len(row["left"]), 0, unit="things")


def measure_crowd(bench, tools):
    if not (bench.bin / "stay").exists():
        compile_stay(bench)
    for count in (1, bench.rounds(50, 1000)):
        for who, is_user in (("ordinary user", True), ("root", False)):
            if is_user or tools.IS_ROOT:
                one_crowd(bench, tools, who, is_user, count)
