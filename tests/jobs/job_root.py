"""A run root of its own for a test, jobs in it, and their books read back."""
import json
import os
import subprocess
import time

SLOW_S = 60.0  # what a busy machine may take for anything


class Jobs:
    """The command line against one run root."""

    def __init__(self, base, caisson):
        self.base, self.caisson = base, caisson
        self.root, self.home, self.data = base / "runs", base / "home", base / "data"
        for folder in (self.root, self.home, self.data):
            folder.mkdir()
        (self.data / "rows.txt").write_text("one\ntwo words\n")
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.home)}

    def argv(self, *words):
        verb, *rest = map(str, words)
        return [self.caisson, "job", verb, "--run-dir", str(self.root), *rest]

    def cli(self, *words, env=None, cwd=None):
        return subprocess.run(self.argv(*words), cwd=cwd or self.home, env=self.env | (env or {}), encoding="utf-8",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SLOW_S)

    def popen(self, *words, env=None, **more):
        return subprocess.Popen(self.argv(*words), cwd=self.home, env=self.env | (env or {}),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)

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

    def iterations(self, name):
        return [json.loads(line) for line in (self.root / name / "logs/iterations.jsonl").read_text().splitlines()]

    def output(self, name):
        return (self.root / name / "logs/stdout").read_text()

    def verify(self, name):
        done = subprocess.run([self.caisson, "runs", "verify", "--run-dir", str(self.root), name], env=self.env,
                              encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SLOW_S)
        assert done.returncode == 0, done.stdout

    def wait_for(self, name, claim):
        """Until a claim about the state holds."""
        end = time.monotonic() + SLOW_S
        while time.monotonic() < end:
            if (self.root / name / "state.json").exists() and claim(self.state(name)):
                return
            time.sleep(0.02)
        raise AssertionError(f"{name}: {self.state(name)}")
