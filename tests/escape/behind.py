"""Runs an attack behind a wall as somebody, and tells what came of it."""
import contextlib
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

USER_UID = 54321  # an ordinary user without an account; tests started by root become him
PYTHON = "/usr/bin/python3"
NOT_ATTACKS = {"behind", "conftest", "contained", "hosts", "inside", "test_contained", "test_escape", "verdicts"}


def attacks():
    names = {path.stem for path in HERE.iterdir() if path.suffix in (".py", ".c")}
    return sorted(names - NOT_ATTACKS)


class Run:
    """One end of `caisson run`: the result, and the lines that the attack printed."""

    def __init__(self, status, out, err, result, seconds):
        self.status, self.err, self.result, self.seconds = status, err, result, seconds
        self.out = out.decode(errors="replace")
        self.lines = []
        for line in self.out.splitlines():
            with contextlib.suppress(ValueError):
                parsed = json.loads(line)
                if isinstance(parsed, dict):
                    self.lines.append(parsed)

    @property
    def attempts(self):
        return [line for line in self.lines if "attempt" in line]

    @property
    def is_done(self):
        return {"done": True} in self.lines

    @property
    def reason(self):
        return self.result["termination"]["reason"] if self.result else "refused"

    @property
    def violations(self):
        return self.result["violations"] if self.result else []

    @property
    def events(self):
        return {v["event"] for v in self.violations if not v.get("expected")}

    def __repr__(self):
        out = self.out.replace("x" * 64, "")[-4000:]
        return (f"status {self.status}, {self.seconds:.1f} s, {self.reason}\n--- out\n{out}\n"
                f"--- err\n{self.err[-3000:]}\n--- violations\n" +
                "\n".join(json.dumps(v) for v in self.violations))


class Case:
    """An attack's surroundings on the host, all beneath `base`, which belongs to whoever starts it."""

    def __init__(self, base, caisson, wall, who, native):
        self.base, self.caisson, self.wall, self.who = base, caisson, wall, who
        self.uid = 0 if who == "root" else USER_UID if os.geteuid() == 0 else os.geteuid()
        self.token = f"csn-escape-{os.urandom(6).hex()}"
        self.home, self.ws, self.outside = base / "home", base / "ws", base / "outside"
        self.runs = base / "runs"
        for folder in (self.home, self.ws, self.outside):
            folder.mkdir()
        self.runs.mkdir(mode=0o700)  # there: so the first run has a skeleton for a root, as most have
        self.more_flags = []  # of every run
        shutil.copytree(native, self.ws / "attack")
        self.env = {"HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        self.groups, self.pass_fds, self.cleanups = [], (), []

    def give(self):
        """Everything beneath base becomes the starter's."""
        if os.geteuid() == 0:
            for path in [self.base, *self.base.rglob("*")]:
                os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def as_starter(self):
        if os.geteuid() != 0 or self.uid == 0:
            return {}
        return {"user": self.uid, "group": self.uid, "extra_groups": self.groups}

    def spawn(self, *argv, **more):
        """A process of the starter's on the host; killed at the end."""
        process = subprocess.Popen(argv, env=self.env, cwd=self.base, **self.as_starter(), **more)
        self.cleanups.append(lambda: (process.kill(), process.wait()))
        return process

    def copy_programs(self, folder):
        """caisson and its agent, as the starter's own files."""
        folder.mkdir()
        shutil.copy(self.caisson, folder / "caisson")
        shutil.copy(agent_beside(self.caisson), folder / "caisson-agent")
        return folder

    def victim(self):
        """A host process of the starter's own uid: what an escape would reach first."""
        return self.spawn("/usr/bin/sleep", "300", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def argv(self, flags, command):
        flags = [str(flag) for flag in [*flags, *self.more_flags]]
        common = ["--run-dir", str(self.runs), "--result", str(self.base / "result.json")]
        if self.wall == "landlock":
            flags = ["--policy", str(self.lend(flags)), *flags]
        else:
            flags = ["--backend", self.wall, "-w", str(self.ws), *flags]
        return [self.caisson, "run", "-q", *common, *flags, "--", *map(str, command)]

    def lend(self, flags):
        """A weaker tier has to be permitted by a policy file; with one, it also grants what flags would."""
        mode, network = "ro", "none"
        while "--rw" in flags or "--cow" in flags:
            mode = flags.pop(flags.index("--rw" if "--rw" in flags else "--cow"))[2:]
        if "--network" in flags:
            at = flags.index("--network")
            network = flags[at + 1]
            del flags[at:at + 2]
        path = self.base / "policy.yaml"
        path.write_text(f"version: 1\ntier: auto\nbackend: {self.wall}\nnetwork: {{mode: {network}}}\n"
                        f"workspace: {{path: {self.ws}, at: host, mode: {mode}}}\n")
        return path

    def start(self, flags, command, **more):
        self.give()
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
        return subprocess.Popen(self.argv(flags, command), cwd=self.ws, env=self.env, pass_fds=self.pass_fds,
                                **self.as_starter(), **more)

    def finish(self, process, started, timeout=60):
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            pytest.fail(f"caisson did not end within {timeout} s\n{out[-2000:]!r}\n{err[-2000:]!r}")
        path = self.base / "result.json"
        result = None
        if path.exists():
            result = json.loads(path.read_text())
            if result.get("error") and result["termination"]["reason"] not in ("exited", "signaled"):
                err += json.dumps(result["error"]).encode()
        return Run(process.returncode, out or b"", (err or b"").decode(errors="replace"), result,
                   time.monotonic() - started)

    def run(self, flags, command, **more):
        started = time.monotonic()
        return self.finish(self.start(flags, command, **more), started)

    def survivors(self, within=3.0):
        """Processes of the host that carry this run's token, after at most `within` seconds."""
        end = time.monotonic() + within
        while True:
            left = pids_with(self.token)
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.05)

    def close(self):
        for cleanup in reversed(self.cleanups):
            with contextlib.suppress(OSError):
                cleanup()


def pids_with(token):
    """Processes started with this argument; caisson itself and its helper have it too and do not count."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                process = pathlib.Path("/proc", entry)
                if token.encode() in process.joinpath("cmdline").read_bytes() and \
                        not process.joinpath("comm").read_text().startswith("caisson"):
                    found.append(int(entry))
    return found


def agent_beside(caisson):
    folder = pathlib.Path(caisson).resolve().parent
    return next(p for p in (folder / "caisson-agent", folder.parent / "agent/caisson-agent") if p.exists())


def doctor(caisson):
    done = subprocess.run([caisson, "doctor", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60)
    return {wall["name"]: wall for wall in json.loads(done.stdout)["walls"]}


def module_of(attack):
    """The attack's Python side; a C attack without one has only its comment."""
    if not (HERE / f"{attack}.py").exists():
        return None
    return importlib.import_module(attack)
