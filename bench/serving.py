"""The part of bench/run on `caisson serve`: calls over HTTP on loopback, by the client in bench/http.c.

Plain posix_spawn() of the same program, in the same rounds and by as many processes, is the peer. Beside it stands what
the walls of a command cost the kernel alone (bench/command.c).
"""
import json
import os
import pathlib
import signal
import subprocess
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
CLIENTS = 16
EXEC_FLOOR_MS = 1.5
RATE_FLOOR = 0.45  # of that many plain spawners


def compile_all(bench):
    for name in ("http", "command"):
        subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-O2", "-D_GNU_SOURCE", f"-I{HERE.parent / 'src'}", "-o",
                        str(bench.bin / name), str(HERE / f"{name}.c"), str(HERE.parent / "src/base/str.c")], check=True)


def make_sandbox(url, token):
    request = urllib.request.Request(f"http://{url.netloc}/v1/sandboxes", json.dumps({"name": "bench"}).encode(),
                                     {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()


def row(line):
    name, count, *numbers = line.split("\t")
    return name, {"count": int(count), **dict(zip(("min", "p50", "p99", "rate"), map(float, numbers), strict=True))}


def measure_walls(bench):
    done = subprocess.run([str(bench.bin / "command"), str(CLIENTS), str(bench.rounds(3, 15))], stdout=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode != 0:  # it said why
        return
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    table = {name: {"rate": float(rate), "cpu_us": float(cpu_us)} for name, rate, cpu_us in lines}
    bench.result["tables"]["walls"] = table
    print(f"\nwhat a command's walls cost the kernel; at once: {CLIENTS}\n  {'':16}{'calls/s':>10}{'cpu us':>10}")
    for name, values in table.items():
        print(f"  {name:16}{values['rate']:10.0f}{values['cpu_us']:10.0f}")


def measure_serve(bench, tools):
    compile_all(bench)
    env = tools.environment(bench, not tools.IS_ROOT)
    server = subprocess.Popen([str(bench.caisson), "serve", "--listen", "127.0.0.1:0"], cwd=bench.workspace, env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        url = urllib.parse.urlsplit(server.stdout.readline().strip())
        token = url.fragment.removeprefix("token=")
        make_sandbox(url, token)
        done = subprocess.run([str(bench.bin / "http"), str(url.port), token, "bench", str(CLIENTS), str(bench.rounds(3, 15))],
                              stdout=subprocess.PIPE, text=True, check=True)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=30)
        server.stdout.close()
    table = dict(map(row, done.stdout.splitlines()))
    bench.result["tables"]["serve"] = table
    print(f"\ncaisson serve, over loopback; at once: {CLIENTS}\n  {'':16}{'min':>10}{'p50':>10}{'p99':>10}  us{'calls/s':>12}")
    for name, values in table.items():
        print(f"  {name:16}{values['min']:10.1f}{values['p50']:10.1f}{values['p99']:10.1f}{values['rate']:16.0f}")
    measure_walls(bench)
    bench.judge("serve: exec of /bin/true, p50", table["exec"]["p50"] / 1000, EXEC_FLOOR_MS, unit="ms")
    bench.judge(f"serve: exec by {CLIENTS} clients, to {CLIENTS} spawners", table["exec at once"]["rate"] / table["spawn at once"]["rate"],
                RATE_FLOOR, at_least=True, is_aim=True)
