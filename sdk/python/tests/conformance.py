"""Tells the stories of sdk/conformance to a sandbox, and compares what it answers."""

from __future__ import annotations

import base64
import json
import pathlib
import shutil
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional

import caisson

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "conformance"
SCHEMA = "caisson.conformance/1"


class Different(AssertionError):
    """An answer is not the expected one; says where."""


def stories() -> List[pathlib.Path]:
    return sorted(FOLDER.glob("*.json"))


# ---- values -------------------------------------------------------------------------------------


def is_value(item: object) -> bool:
    return isinstance(item, str) or (isinstance(item, dict) and bool({"base64", "repeat", "join"} & set(item)))


def data(value: Any) -> bytes:
    """The bytes of a value."""
    if isinstance(value, str):
        return value.encode("utf-8")
    if "base64" in value:
        return base64.b64decode(value["base64"])
    if "repeat" in value:
        return data(value["repeat"]) * int(value["times"])
    return b"".join(data(item) for item in value["join"])


def replaced(item: Any, places: Mapping[str, str]) -> Any:
    if isinstance(item, str):
        for name, path in places.items():
            item = item.replace("{" + name + "}", path)
        return item
    if isinstance(item, dict):
        return {key: replaced(value, places) for key, value in item.items()}
    return [replaced(value, places) for value in item] if isinstance(item, list) else item


# ---- comparing ----------------------------------------------------------------------------------


def as_bytes(value: Any) -> Any:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def compare(expected: Any, found: Any, where: str) -> None:
    if isinstance(expected, dict) and not is_value(expected):
        matcher = next((key for key in MATCHERS if key in expected), None)
        if matcher is None:
            for key, value in expected.items():
                if key not in found:
                    raise Different(f"{where}.{key}: not there")
                compare(value, found[key], f"{where}.{key}")
            return
        for key in expected:
            if not MATCHERS[key](expected[key], found, where):
                raise Different(f"{where}: {key} {expected[key]!r:.200}, found {found!r:.300}")
    elif isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            raise Different(f"{where}: {len(expected)} expected, found {found!r:.300}")
        for i, item in enumerate(expected):
            compare(item, found[i], f"{where}[{i}]")
    elif is_value(expected):
        if as_bytes(found) != data(expected):
            raise Different(f"{where}: {expected!r:.200} expected, found {found!r:.300}")
    elif type(expected) is not type(found) or expected != found:
        raise Different(f"{where}: {expected!r} expected, found {found!r:.300}")


def contains(expected: Any, found: Any, where: str) -> bool:
    if not isinstance(found, list):
        return data(expected) in as_bytes(found)
    for item in found:
        try:
            compare(expected, item, where)
        except Different:
            continue
        return True
    return False


MATCHERS: Dict[str, Callable[[Any, Any, str], bool]] = {
    "contains": contains,
    "length": lambda expected, found, _: len(as_bytes(found)) == expected,
    "at_least": lambda expected, found, _: found >= expected,
    "at_most": lambda expected, found, _: found <= expected,
}


# ---- calling ------------------------------------------------------------------------------------


def seconds(args: Dict[str, Any]) -> Dict[str, Any]:
    if "timeout_ms" in args:
        args["timeout"] = args.pop("timeout_ms") / 1000
    return args


def fields(value: Any, *names: str) -> Dict[str, Any]:
    return {name: getattr(value, name) for name in names}


class Teller:
    """One story's sandbox."""

    def __init__(self, sandbox: caisson.Sandbox) -> None:
        self.sandbox = sandbox

    def exec(self, args: Dict[str, Any], meanwhile: Optional[Dict[str, Any]]) -> Dict[str, Any]:
        more = seconds(dict(args))
        command = more.pop("command", None) or more.pop("argv")
        if more.pop("tty", False):
            more["tty"] = (more.pop("rows", 24), more.pop("cols", 80))
        more.update({"keep": more.pop("keep_bytes")} if "keep_bytes" in more else {})
        if more.pop("detach", False):
            done = self.sandbox.start(command, **more)
        elif meanwhile:
            done = self.meddle(self.sandbox.stream(command, **more), meanwhile)
        else:
            done = self.sandbox.exec(command, **more)
        termination, usage = done.termination, done.usage
        return {
            **fields(termination, "reason", "clock", "error"),
            **fields(done, "exit_code", "signal", "stdout", "stderr", "stdout_cut", "stderr_cut"),
            **fields(usage, "stdout_bytes", "stderr_bytes"),
            "output_cut_bytes": done.output_cut,
            "detached": termination.reason == "detached",
            "events": [violation.event for violation in done.violations if not violation.expected],
        }

    def meddle(self, stream: caisson.Stream, meanwhile: Dict[str, Any]) -> caisson.ExecResult:
        seen = b""
        is_due = True
        for chunk in stream:
            seen += chunk.data
            if is_due and data(meanwhile["after"]) in seen:
                is_due = False
                stream.cancel() if meanwhile.get("cancel") else stream.signal(meanwhile["signal"])
        return stream.result

    def ps(self, args: Dict[str, Any]) -> Dict[str, Any]:
        names = ("tag", "state", "detached", "exit_code", "signal", "bytes")
        return {"commands": [fields(item, *names) for item in self.sandbox.ps()]}

    def logs(self, args: Dict[str, Any]) -> Dict[str, Any]:
        done = self.sandbox.logs(**args)
        return {**fields(done, "stdout", "stderr", "bytes", "running"), "cut_bytes": done.cut}

    def wait(self, args: Dict[str, Any]) -> Dict[str, Any]:
        done = self.sandbox.wait(**seconds(dict(args)))
        return fields(done, "reached", "timed_out", "running", "exit_code", "signal", "line")

    def kill(self, args: Dict[str, Any]) -> Dict[str, Any]:
        self.sandbox.kill(**args)
        return {}

    def read(self, args: Dict[str, Any]) -> Dict[str, Any]:
        return {"bytes": self.sandbox.read(**seconds(dict(args)))}

    def write(self, args: Dict[str, Any]) -> Dict[str, Any]:
        more = dict(args)
        self.sandbox.write(more.pop("path"), more.pop("bytes", b""), **seconds(more))
        return {}

    def edit(self, args: Dict[str, Any]) -> Dict[str, Any]:
        return fields(self.sandbox.edit(**args), "occurrences", "content")

    def stat(self, args: Dict[str, Any]) -> Dict[str, Any]:
        return fields(self.sandbox.stat(**args), "type", "size", "mode", "target")

    def list(self, args: Dict[str, Any]) -> Dict[str, Any]:
        done = self.sandbox.list(**args)
        return {
            "entries": [fields(item, "name", "type", "size") for item in done.entries],
            "truncated": done.truncated,
        }

    def remove(self, args: Dict[str, Any]) -> Dict[str, Any]:
        self.sandbox.remove(**args)
        return {}

    def move(self, args: Dict[str, Any]) -> Dict[str, Any]:
        self.sandbox.move(**args)
        return {}

    def glob(self, args: Dict[str, Any]) -> Dict[str, Any]:
        done = self.sandbox.glob(**seconds(dict(args)))
        return {**fields(done, "truncated", "skipped"), "paths": list(done.paths)}

    def grep(self, args: Dict[str, Any]) -> Dict[str, Any]:
        done = self.sandbox.grep(**seconds(dict(args)))
        names = ("path", "line_number", "line", "is_context")
        matches = [fields(item, *names) for item in done.matches]
        return {**fields(done, "truncated", "skipped"), "matches": matches, "binary": list(done.binary)}

    def mount(self, args: Dict[str, Any]) -> Dict[str, Any]:
        self.sandbox.mount(**args)
        return {}

    def diff(self, args: Dict[str, Any]) -> Dict[str, Any]:
        done = self.sandbox.diff(**args)
        names = ("path", "change", "kind", "other", "guarded")
        return {**fields(done, "text", "truncated"), "changes": [fields(item, *names) for item in done.changes]}

    def commit(self, args: Dict[str, Any]) -> Dict[str, Any]:
        done = self.sandbox.commit(**args)
        applied = [fields(item, "path", "change", "kind") for item in done.applied]
        return {"applied": applied, "left": [fields(item, "path", "change", "kind", "reason") for item in done.left]}

    def snapshot(self, args: Dict[str, Any]) -> Dict[str, Any]:
        return fields(self.sandbox.snapshot(**args), "entries", "torn")

    def stats(self, args: Dict[str, Any]) -> Dict[str, Any]:
        return fields(self.sandbox.stats(), "tier", "mode")

    def verbs(self, args: Dict[str, Any]) -> Dict[str, Any]:
        return {"has": [name in self.sandbox.verbs for name in args["names"]]}


def ready(item: Any) -> Any:
    """Arguments with values as bytes; texts stay texts."""
    if is_value(item) and not isinstance(item, str):
        return data(item)
    if isinstance(item, dict):
        return {key: ready(value) for key, value in item.items()}
    return [ready(value) for value in item] if isinstance(item, list) else item


class Story:
    """A file: its folders, its sandbox, its rows."""

    def __init__(self, path: pathlib.Path) -> None:
        self.told = json.loads(path.read_text(encoding="utf-8"))
        assert self.told["schema"] == SCHEMA
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="caisson-story-"))
        self.places = {name: str(self.folder / name) for name in ("workspace", "host")}
        for name in self.places:
            place = self.folder / name
            place.mkdir(mode=0o700)
            for file, content in self.told.get(name, {}).items():
                (place / file).parent.mkdir(parents=True, exist_ok=True)
                (place / file).write_bytes(data(content))
        self.sandbox = self.open(self.told.get("open", {}))
        self.teller = Teller(self.sandbox)

    def open(self, options: Mapping[str, Any]) -> caisson.Sandbox:
        more = {"no_record": True, **replaced(dict(options), self.places)}
        mode = more.pop("mode", None)
        if mode is not None:
            more["workspace"] = f"{self.places['workspace']}:{mode}"
        if "policy" in self.told and "policy" not in more:
            policy = self.folder / "policy.yaml"
            policy.write_text(replaced(self.told["policy"], self.places), encoding="utf-8")
            more["policy"] = policy
        return caisson.Sandbox(**more)

    def close(self) -> None:
        self.sandbox.close()
        shutil.rmtree(self.folder)

    def answer(self, row: Dict[str, Any]) -> Dict[str, Any]:
        """Its result, or {"error": …}."""
        args = ready(replaced(row.get("args", {}), self.places))
        try:
            if row["call"] == "open":
                self.open(args).close()
                return {}
            if row["call"] == "exec":
                return self.teller.exec(args, row.get("meanwhile"))
            done: Dict[str, Any] = getattr(self.teller, row["call"])(args)
            return done
        except caisson.CaissonError as error:
            return {"error": {"code": error.code, "stage": error.stage, "says": str(error)}}

    def check(self, row: Dict[str, Any]) -> None:
        found = self.answer(row)
        if "error" in row:
            expected = dict(row["error"])
            if "says" in expected:
                expected["says"] = {"contains": expected["says"]}
            compare({"error": expected}, found, row["name"])
        elif set(found) == {"error"}:
            raise Different(f"{row['name']}: {found['error']}")
        else:
            compare(row.get("result", {}), found, row["name"])
