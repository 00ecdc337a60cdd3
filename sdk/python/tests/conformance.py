"""Tells the stories of sdk/conformance to the Python package."""

from __future__ import annotations

import pathlib
from typing import Any, Dict, Mapping, Optional

import caisson
from compare import Told, data, ready, replaced


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


class Story:
    """A story, and its sandbox."""

    def __init__(self, path: pathlib.Path) -> None:
        self.told = Told(path)
        self.sandbox = self.open(self.told.story.get("open", {}))
        self.teller = Teller(self.sandbox)

    def open(self, options: Mapping[str, Any]) -> caisson.Sandbox:
        return caisson.Sandbox(**self.told.options(options))

    def close(self) -> None:
        self.sandbox.close()
        self.told.close()

    def answer(self, row: Dict[str, Any]) -> Dict[str, Any]:
        """Its result, or {"error": …}."""
        args = ready(replaced(row.get("args", {}), self.told.places))
        try:
            if row["call"] == "open":
                self.open(args).close()
                return {}
            if row["call"] == "exec":
                return self.teller.exec(args, row.get("meanwhile"))
            done: Dict[str, Any] = getattr(self.teller, row["call"])(args)
            return done
        except caisson.CaissonError as error:
            is_refusal = isinstance(error, caisson.PolicyRefused)
            return {"error": {"code": error.code, "stage": error.stage, "says": str(error), "refused": is_refusal}}
