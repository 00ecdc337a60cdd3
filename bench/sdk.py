"""The part of bench/run on the Python package: what it adds to a call of libcaisson's.

Run as a program it is what is measured: `sdk.py CAISSON ROUNDS` prints percentiles as JSON.
"""
import json
import pathlib
import statistics
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[1]

EXEC_MS = 1.2
EXEC_FLOOR = 1.35  # of csn_exec, in the same minute


def times_us(rounds, call):
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        taken.append((time.perf_counter() - begin) * 1e6)
    taken.sort()
    return {"count": rounds, "min": taken[0], "p50": statistics.median(taken), "p99": taken[rounds * 99 // 100]}


def main(program, rounds):
    sys.path[:0] = [str(TOP / "sdk/python/src")]
    import caisson  # noqa: PLC0415

    with caisson.Sandbox(program=program, no_record=True) as sandbox:
        sandbox.exec(["/bin/true"])
        print(json.dumps({"exec": times_us(rounds, lambda: sandbox.exec(["/bin/true"])),
                          "stat": times_us(rounds, lambda: sandbox.stat("/usr"))}))


def measure_sdk(bench, tools, staying):
    rounds = bench.rounds(300, 1000)
    staying.compile_stay(bench)
    is_user = tools.IS_ROOT  # an ordinary user's conditions
    theirs = staying.measure(bench, tools, ["exec", rounds], is_user)
    done = tools.run(bench, [sys.executable, __file__, bench.caisson, rounds], is_user,
                     stdin=tools.subprocess.DEVNULL, stdout=tools.subprocess.PIPE, check=True)
    table = {"csn_exec": theirs["exec"], **{f"python {name}": row for name, row in json.loads(done.stdout).items()}}
    staying.show(bench, "a call of the Python package", table, "us")
    bench.result["tables"]["sdk"] = table
    own = table["python exec"]
    bench.judge("python exec: to csn_exec", staying.ratio(bench, own, table["csn_exec"]), EXEC_FLOOR)
    bench.judge("python exec of /bin/true, p50", own["p50"] / 1000, EXEC_MS, unit="ms", is_aim=True)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main(sys.argv[1], int(sys.argv[2]))
