"""Records of jobs as a launcher leaves them, of any length, without running one: chain, manifest, head."""
import datetime
import hashlib
import json
import re

START = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
NO_LIMITS = {"max_cost_usd": None, "max_time_minutes": None, "max_tokens_total": None, "max_iterations": None}


def canonical(value):
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return re.sub(r"\\u00[01][a-f]", lambda found: found[0][:2] + found[0][2:].upper(), text).encode()


class Chain:
    """Lines of a job. The books go with each of them; add() of a payload with `books` true writes them in."""

    def __init__(self, root, name, limits=None, worker=("sh", "w.sh")):
        self.root, self.name, self.folder = root, name, root / name
        (self.folder / "logs").mkdir(parents=True, mode=0o700)
        for folder in (self.folder, self.folder / "logs"):
            folder.chmod(0o700)
        self.head, self.lines, self.now = "0" * 64, [], START
        self.books = {"checkpoint": "", "cost_usd": 0.0, "duplicates": 0, "iteration": 0, "refused": 0, "report_seq": 0,
                      "reports": 0, "tokens": 0, "wall_ms": 0}
        self.limits = NO_LIMITS | (limits or {})
        self.config = {"backend": "process", "data": "/data", "env": [], "execution": {}, "limits": [], "worker": list(worker)}
        self.launches = 0
        self.add("JobStarted", {"config": self.config, "limits": self.limits, "books": self.books})

    def add(self, event, payload, seconds=0.0):
        self.now += datetime.timedelta(seconds=seconds)
        time = self.now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.now.microsecond // 1000:03d}Z"
        line = {"event": event, "payload": payload, "prev": self.head, "seq": len(self.lines) + 1, "time": time}
        self.head = hashlib.sha256(canonical(line)).hexdigest()
        self.lines.append(canonical(line | {"hash": self.head}))

    def launch(self, mounts=(), pause=0.0, **more):
        self.launches += 1
        self.add("JobResumed", {"launch": self.launches, "config": self.config, "permission_mode": "acceptEdits",
                                "books": self.books}, pause)
        self.setup = {"backend": "process", "command": self.config["worker"], "env_passed": ["LANG"], "image": None,
                      "mounts": list(mounts), "network": "none", "permission_mode": "acceptEdits", "policy_sha256": None,
                      "runtime": "process", "tier": "balanced"} | more
        self.add("RunStarted", self.setup)

    def report(self, kind, seconds=1.0, cost=0.0, tokens=0, **report):
        books = self.books = self.books | {
            "cost_usd": self.books["cost_usd"] + cost, "tokens": self.books["tokens"] + tokens,
            "wall_ms": self.books["wall_ms"] + int(seconds * 1000), "reports": self.books["reports"] + 1}
        if kind == "iteration":
            books["iteration"] += 1
        if kind == "checkpoint":
            books["checkpoint"] = report["path"]
        self.add("WorkerEvent", {"books": books, "kind": kind, "report": {"event": kind} | report}, seconds)

    def deny(self, say, event="FilesystemWriteViolation", count=1):
        self.add("Violation", {"certain": True, "comm": "sh", "count": count, "detail": {}, "event": event, "pid": 7,
                               "rule": "workspace.mode: ro", "say": say, "source": "seccomp", "time": "now"})

    def extend(self, **limits):
        old, self.limits = self.limits, self.limits | limits
        self.add("JobExtended", {"limits": self.limits, "old": old, "books": self.books})

    def end(self, status="finished", reason="", exit_status=0, **more):
        self.add("RunExited", {key: self.setup[key] for key in ("env_passed", "image", "mounts", "network", "permission_mode",
                                                                "runtime", "tier")}
                 | {"status": exit_status, "termination": {"clock": None, "exit_code": exit_status, "reason": "exited",
                                                           "signal": None, "signal_name": None}} | more)
        self.add("JobEnded", {"status": status, "reason": reason, "exit_status": exit_status, "books": self.books})

    def write(self, closes=True):
        events = self.folder / "logs/events.jsonl"
        events.write_bytes(b"".join(line + b"\n" for line in self.lines))
        if not closes:
            return events
        (self.folder / "result.json").write_text("{}")
        files = [{"path": path, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
                 for path, data in (("logs/events.jsonl", events.read_bytes()), ("result.json", b"{}"))]
        for path in sorted(self.folder.rglob("*")):
            name = str(path.relative_to(self.folder)).encode("utf-8", "surrogateescape")
            if path.is_file() and not path.is_symlink() and path.parent != self.folder / "logs" and name.isascii() and name != b"result.json":
                files.append({"path": name.decode(), "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "size": path.stat().st_size})
        manifest = json.dumps({"schema": "caisson.manifest/1", "run_id": self.name, "files": files, "is_incomplete": False,
                               "head": {"hash": self.head, "seq": len(self.lines)}}).encode()
        (self.folder / "manifest.json").write_bytes(manifest)
        with (self.root / "heads.jsonl").open("ab") as heads:
            heads.write(canonical({"hash": self.head, "manifest": hashlib.sha256(manifest).hexdigest(), "run_id": self.name,
                                   "seq": len(self.lines), "time": "2026-01-02T03:04:05.678Z"}) + b"\n")
        return events
