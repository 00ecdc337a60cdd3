"""The part of bench/run on `caisson mcp`: calls over pipes, by a client of a few lines.

What is measured is what an agent program waits for: a line written, a line read. `bash -c true` from the same process is
the peer of the tool Bash; the time of a ping is what the pipes, JSON and this client take.
"""
import json
import os
import pathlib
import subprocess
import time

READ_FLOOR_MS = 0.3
BASH_AIM_MS = 1.5
BASH_FLOOR = 2.0  # of `bash -c true` on the host


class Client:
    """One request after the other."""

    def __init__(self, argv, **more):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, **more)
        self.count = 0
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})

    def ask(self, method, params):
        self.count += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}).encode() + b"\n"
        began, answer = time.perf_counter(), b""
        self.process.stdin.write(line)
        while not answer.endswith(b"\n"):
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                raise EOFError("the server ended")
            answer += data
        took = (time.perf_counter() - began) * 1000
        result = json.loads(answer)["result"]
        if result.get("isError"):
            raise RuntimeError(result["content"][0]["text"])
        return took

    def call(self, name, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)
        self.process.stdout.close()


def bare_bash(env):
    began = time.perf_counter()
    os.waitpid(os.posix_spawn("/bin/bash", ["bash", "-c", "true"], env), 0)
    return (time.perf_counter() - began) * 1000


def row(times):
    times.sort()
    return {"count": len(times), "min": times[0], "p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100]}


def measure_mcp(bench, tools):
    """Interleaved: each round one of each."""
    (bench.workspace / "small").write_bytes(b"x" * 63 + b"\n" + b"y" * 4031 + b"\n")
    env = tools.environment(bench, not tools.IS_ROOT)
    client = Client([str(bench.caisson), "mcp", "-w", f"{pathlib.Path(bench.workspace)}:ro"], cwd=bench.workspace, env=env)
    found = {name: [] for name in ("first call", "ping", "Read of 4 KiB", "Bash true", "bash -c true")}
    found["first call"].append(client.call("Read", path="small"))
    for number in range(bench.rounds(300, 2000)):
        rows = {"ping": client.ask("ping", {}), "Read of 4 KiB": client.call("Read", path="small"),
                "Bash true": client.call("Bash", command="true"), "bash -c true": bare_bash(env)}
        for name, took in rows.items() if number >= 20 else ():
            found[name].append(took)
    client.close()
    table = {name: row(times) for name, times in found.items()}
    bench.result["tables"]["mcp"] = table
    print(f"\ncaisson mcp, over pipes\n  {'':16}{'min':>10}{'p50':>10}{'p99':>10}  ms")
    for name, values in table.items():
        print(f"  {name:16}{values['min']:10.3f}{values['p50']:10.3f}{values['p99']:10.3f}")
    bench.judge("mcp: Read of 4 KiB", table["Read of 4 KiB"]["p50"], READ_FLOOR_MS, unit="ms")
    bench.judge("mcp: Bash true", table["Bash true"]["p50"], BASH_AIM_MS, unit="ms", is_aim=True)
    bench.judge("mcp: Bash true to bash -c true", table["Bash true"]["p50"] / table["bash -c true"]["p50"], BASH_FLOOR)
