"""A run root of its own for a test, jobs in it, and their books read back."""
import json
import os
import subprocess
import time

SLOW_S = 60.0  # what a busy machine may take for anything


# One iteration a launch; the first then waits to be killed.
KILLED = """
[ -e again ] && last=yes
echo >> again
echo '{"event": "iteration", "cost_usd": 0.5, "tokens": 100}' >&3
[ "$last" ] || exec sleep 600
"""


class Jobs:
    """The command line against one run root, of the caller's or, by words for subprocess, of somebody else's."""

    def __init__(self, base, caisson, env=None, who=None):
        self.base, self.caisson, self.who = base, caisson, who or {}
        self.root, self.home, self.data = base / "runs", base / "home", base / "data"
        for folder in (self.root, self.home, self.data):
            folder.mkdir()
        (self.data / "rows.txt").write_text("one\ntwo words\n")
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.home)} | (env or {})

    def argv(self, *words):
        verb, *rest = map(str, words)
        return [self.caisson, "job", verb, "--run-dir", str(self.root), *rest]

    def cli(self, *words, env=None, cwd=None):
        return subprocess.run(self.argv(*words), cwd=cwd or self.home, env=self.env | (env or {}), encoding="utf-8",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SLOW_S, **self.who)

    def popen(self, *words, env=None, **more):
        return subprocess.Popen(self.argv(*words), cwd=self.home, env=self.env | (env or {}),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **self.who, **more)

    def started(self, name, text=None, data=None, flags=(), worker=None, backend="process"):
        """The words of `start` for a job whose worker is a shell text, or words."""
        folder = self.root / name
        folder.mkdir(mode=0o755, exist_ok=True)
        if text is not None:
            (folder / "worker.sh").write_text(text)
        return ["start", "--run-id", name, "--data", data or self.data, "--backend", backend, *flags, "--",
                *(worker or ["sh", "/workspace/run/worker.sh"])]

    def start(self, name, text=None, **more):
        return self.cli(*self.started(name, text, **more))

    def state(self, name):
        for _ in range(50):
            try:
                return json.loads((self.root / name / "state.json").read_text())
            except (ValueError, FileNotFoundError):
                time.sleep(0.02)
        raise AssertionError(f"{name} has no state")

    def events(self, name, kind=None):
        """The chain's whole lines."""
        lines = (self.root / name / "logs/events.jsonl").read_bytes().splitlines(keepends=True)
        events = [json.loads(line) for line in lines if line.endswith(b"\n")]
        return [event for event in events if kind in (None, event["event"])]

    def events_of(self, name, kind):
        """The same of one that may not have started yet."""
        return self.events(name, kind) if (self.root / name / "logs/events.jsonl").exists() else []

    def iterations(self, name):
        return [json.loads(line) for line in (self.root / name / "logs/iterations.jsonl").read_text().splitlines()]

    def output(self, name):
        return (self.root / name / "logs/stdout").read_text()

    def verify(self, name):
        done = subprocess.run([self.caisson, "runs", "verify", "--run-dir", str(self.root), name], env=self.env,
                              encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SLOW_S, **self.who)
        assert done.returncode == 0, done.stdout

    def wait_for(self, name, claim):
        """Until a claim about the state holds."""
        end = time.monotonic() + SLOW_S
        while time.monotonic() < end:
            if (self.root / name / "state.json").exists() and claim(self.state(name)):
                return
            time.sleep(0.02)
        raise AssertionError(f"{name}: {self.state(name)}")

    def kill_and_resume(self, *flags, backend):
        """A job whose launcher is killed after an iteration, and which goes on; its last state."""
        words = self.started("one", KILLED, flags=flags, backend=backend)
        self.give()
        launcher = self.popen(*words)
        try:
            end = time.monotonic() + SLOW_S
            while launcher.poll() is None and time.monotonic() < end and not self.events_of("one", "WorkerEvent"):
                time.sleep(0.05)
        finally:
            launcher.kill()
            err = launcher.communicate(timeout=SLOW_S)[1]
        assert launcher.returncode == -9, err
        done = self.cli("resume", "one")
        assert done.returncode == 0, done.stderr
        self.verify("one")
        state = self.state("one")
        assert (state["iteration"], state["cumulative"]["tokens"]) == (2, 200) and state["cumulative"]["cost_usd"] == 1.0, state
        assert len(self.iterations("one")) == 2 and state["launches"] == 2, state
        return state

    def give(self):
        """What was made for it becomes its owner's."""
        if "user" in self.who:
            for path in [self.base, *self.base.rglob("*")]:
                os.chown(path, self.who["user"], self.who["group"], follow_symlinks=False)
