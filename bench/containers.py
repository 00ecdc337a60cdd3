#!/usr/bin/python3
"""What the walls docker and podman cost, beside the engine's own command line.

    CAISSON=build/caisson bench/containers.py [docker] [podman]

Prints for each engine p50 and min, in ms: a start to the end of `true`, and one more command in what runs already.
The engine's own run has the same image, the same view of /usr, no network and no log.
"""
import os
import statistics
import subprocess
import sys
import time

CAISSON = os.environ.get("CAISSON", "caisson")
STARTS, EXECS = 9, 60
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
OWN = ["run", "--rm", "--network=none", "--log-driver=none", "--read-only", "--volume=/usr:/usr:ro"]
LIMITS = {"podman": ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]}
GLOBAL = {"podman": ["--runtime=runc"]}


def measure(words, times):
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run(words, check=True, **QUIET)
        taken.append((time.perf_counter() - start) * 1000)
    return f"{statistics.median(taken):7.1f} {min(taken):7.1f}"


def first_word(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[0]


def bench(engine):
    name = f"bench-{os.getpid()}"
    subprocess.run([CAISSON, "run", "--backend", engine, "--", "true"], check=True, **QUIET)  # makes the image
    image = first_word(engine, "images", "--quiet", "--filter", "label=caisson.image")
    own = [engine, *GLOBAL.get(engine, []), *OWN, *LIMITS.get(engine, []), image, "/usr/bin/true"]
    print(f"{engine} run            {measure(own, STARTS)}")
    print(f"caisson run ({engine})  {measure([CAISSON, 'run', '--backend', engine, '--', '/usr/bin/true'], STARTS)}")
    subprocess.run([CAISSON, "up", name, "--backend", engine], check=True, **QUIET)
    try:
        container = first_word(engine, "ps", "--quiet", "--filter", "label=caisson.sandbox")
        print(f"{engine} exec           {measure([engine, 'exec', container, '/usr/bin/true'], STARTS)}")
        print(f"caisson exec ({engine}) {measure([CAISSON, 'exec', name, '--', '/usr/bin/true'], EXECS)}")
    finally:
        subprocess.run([CAISSON, "down", name], check=False, **QUIET)


if __name__ == "__main__":
    for engine in sys.argv[1:] or ["docker", "podman"]:
        bench(engine)
