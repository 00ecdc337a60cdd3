"""Any part of a sandbox that stays is killed at any instant, and so is who uses it: he is told, and nothing stays.

A round: tests/client/victim.c opens a sandbox or joins one and makes calls; something of it is killed at a random
moment, while it opens, calls or closes. CSN_SOAK=1 makes it 200 rounds of each kind (`make soak`).
"""
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]

import killing  # noqa: E402
from run_fixtures import *  # noqa: E402,F403
from test_kill import adopted, groups, watched  # noqa: E402,F401

ROUNDS = 200 if os.environ.get("CSN_SOAK") == "1" else 10  # of each test, as root and as a user
GONE_S = 3.0
TOLD_S = 3.0  # from a kill to the word that the sandbox is lost, on a busy machine
PARTS = ("client", "monitor", "agent", "command", "cleaner")
MOMENTS = ("open", "call", "close")


@pytest.fixture
def victim(program):
    """The path of the client program."""
    built = pathlib.Path(os.environ.get("CAISSON") or HERE.parents[1] / "build" / "caisson").resolve()
    folder = next((path for path in built.parents if (path / "build.ninja").exists()), None)
    path = folder and folder / "tests" / "client" / "victim"
    if not path or not path.exists():
        pytest.skip("victim: tests/client/victim.c is not built")
    return path


class Client:
    """The client program, and who is behind it."""

    def __init__(self, box, path, target, seed, life_ms):
        self.box, self.monitor_pid = box, None
        runtime = box.base / "runtime"
        runtime.mkdir(mode=0o700, exist_ok=True)
        box.give()
        self.env = box.env | {"XDG_RUNTIME_DIR": str(runtime)}
        self.out = (box.base / "said").open("w+b")  # a pipe would wait for what a defect leaves behind
        enter = {"preexec_fn": box.groups.enter} if box.is_root and box.groups.folders else {}
        self.process = subprocess.Popen([path, target or box.caisson, str(seed), str(life_ms)], cwd=box.ws, env=self.env,
                                        stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.out, **box.as_owner(), **enter)

    def said(self):
        return os.pread(self.out.fileno(), 1 << 16, 0).decode(errors="replace").splitlines()

    def pids(self, part):
        """Those that are this part now."""
        monitor = self.monitor_pid or next(iter(killing.children(self.process.pid)), None)
        wall = monitor and killing.wall_of(monitor)
        found = {"client": lambda: self.process.pid, "monitor": lambda: monitor, "agent": lambda: wall,
                 "cleaner": lambda: monitor and killing.cleaner_of(monitor),
                 "command": lambda: wall and random.choice(killing.family(wall) or [None])}[part]()
        return [found] if found else []

    def close(self):
        self.process.wait()
        self.out.close()


def kill_part(client, part):
    """True: something was killed."""
    pids = client.pids(part)
    for pid in pids:
        killing.kill(pid)
    return bool(pids)


def wait_for_word(client, *words):
    assert wait_for(lambda: client.process.poll() is not None or any(line.startswith(words) for line in client.said()),
                    15, 0.002), client.said()


def clean(box, what):
    took, left = killing.gone_within(GONE_S, killing.survivors, lambda: killing.mounts(str(box.base)),
                                     box.groups.left if box.is_root else list,
                                     lambda: killing.dead_scratch(box.tmp_before))
    assert not left, f"{what}: {left}"
    return took


def wait_until(client, moment, rng):
    if moment != "open":
        wait_for_word(client, "open", "lost")
    if moment == "close":
        wait_for_word(client, "closing", "lost")
        time.sleep(rng.random() * 0.004)
    else:
        time.sleep(rng.choice((0.002, 0.01, 0.05, 0.2)) * rng.random())


def told(client, part, moment, was_killed):
    """What the client must have heard, and how soon; then it is ended too."""
    killed_at = time.monotonic()
    is_fatal = was_killed and (part == "monitor" or part == "agent" and moment != "open")
    if not is_fatal and moment != "close":  # what has the agent's place while it opens may be a helper
        wait_for(lambda: client.process.poll() is not None, 0.05, 0.002)
        killing.kill(client.process.pid)
    assert wait_for(lambda: client.process.poll() is not None, TOLD_S, 0.002), client.said()
    took, said = time.monotonic() - killed_at, client.said()
    if is_fatal and moment != "close":
        assert any(line.startswith("lost: ") for line in said), said
    return took


def one_round(box, path, part, moment, rng, target=None, monitor_pid=None):
    client = Client(box, path, target, rng.randrange(1 << 30), rng.randrange(1, 80) if moment == "close" else 0)
    client.monitor_pid = monitor_pid
    try:
        wait_until(client, moment, rng)
        was_killed = kill_part(client, part)
        took = told(client, part, moment, was_killed)
        box.hits += was_killed
        box.losses += any(line.startswith("lost: ") for line in client.said())
        return took
    finally:
        killing.kill(client.process.pid)
        client.close()


def rounds(box, one):
    """Runs `one(part, moment, rng)` with random parts and moments; its seed is in what a failure says."""
    seed = int(os.environ.get("CSN_SEED", random.randrange(1 << 32)))
    rng, slowest, box.hits, box.losses = random.Random(seed), 0.0, 0, 0
    for number in range(ROUNDS):
        part, moment = rng.choice(PARTS), rng.choice(MOMENTS)
        what = f"round {number} of seed {seed}: {part} while it {moment}s"
        try:
            slowest = max(slowest, one(part, moment, rng))
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from None
        clean(box, what)
    print(f"{ROUNDS} rounds, {box.hits} kills, {box.losses} clients told of a loss; slowest {slowest:.2f} s")


def test_kills_of_what_a_program_opened(watched, victim):
    rounds(watched, lambda part, moment, rng: one_round(watched, victim, part, moment, rng))


def down(box, env):
    return subprocess.run([box.caisson, "down", "t"], cwd=box.ws, env=env, capture_output=True, timeout=30, **box.as_owner())


def joined(box, path, part, moment, rng):
    """With a sandbox of `caisson up`; a client that is killed leaves it alive and usable."""
    runtime = box.base / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    box.give()
    env = box.env | {"XDG_RUNTIME_DIR": str(runtime)}
    enter = {"preexec_fn": box.groups.enter} if box.is_root and box.groups.folders else {}
    quiet = {"cwd": box.ws, "env": env, "stdin": subprocess.DEVNULL, "timeout": 30, **box.as_owner()}
    made = subprocess.run([box.caisson, "up", "t"], capture_output=True, **quiet, **enter)
    assert made.returncode == 0, made
    monitor = next(pid for pid in killing.children(os.getpid())
                   if killing.name_of(pid) == "caisson" and killing.state_of(pid) not in "ZX")
    moment = "call" if moment == "open" else moment
    took = one_round(box, path, part, moment, rng, "attach:t", monitor)
    if part in ("monitor", "agent"):
        assert wait_for(lambda: killing.state_of(monitor) in "ZX", GONE_S), killing.survivors()
    else:
        again = subprocess.run([box.caisson, "exec", "t", "--", "echo", "here"], capture_output=True, **quiet)
        assert again.stdout == b"here\n", again
        assert down(box, env).returncode == 0

    def files():
        subprocess.run([box.caisson, "ps"], stdout=subprocess.DEVNULL, **quiet)
        return list((runtime / "caisson").iterdir())

    assert wait_for(lambda: not files(), GONE_S), files()
    return took


def test_kills_of_what_a_program_joined(watched, victim):
    rounds(watched, lambda part, moment, rng: joined(watched, victim, part, moment, rng))


def test_the_check_sees_a_part_that_is_left(watched, victim):
    """A monitor that is stopped while its client is killed is found, until it goes on."""
    client = Client(watched, victim, None, 1, 0)
    wait_for_word(client, "open")
    monitor = client.pids("monitor")[0]
    killing.kill(monitor, signal.SIGSTOP)
    killing.kill(client.process.pid)
    client.close()
    with pytest.raises(AssertionError):
        clean(watched, "stopped")
    killing.kill(monitor, signal.SIGCONT)
    clean(watched, "goes on")
