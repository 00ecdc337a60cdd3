"""What a sandbox may answer. Printed by tools/tables.py from docs/protocol.md; a test compares."""

from __future__ import annotations

from typing import Dict, NamedTuple


class Key(NamedTuple):
    """Of a map: its type, whether it has to be there, its bound (0: none), the keys of the maps in it."""

    kind: str
    required: bool
    most: int
    keys: "Dict[str, Key]"


# fmt: off
READY: Dict[str, Key] = {
    "version": Key("integer", True, 65535, {}),
    "verbs": Key("atoms", True, 64, {}),
    "enforces": Key("atoms", True, 64, {}),
    "gates": Key("boolean", False, 0, {}),
    "forwards": Key("boolean", False, 0, {}),
    "forward_error": Key("text", False, 4095, {}),
}

VIOLATION: Dict[str, Key] = {
    "event": Key("text", True, 255, {}),
    "source": Key("atom", False, 0, {}),
    "rule": Key("text", True, 255, {}),
    "say": Key("text", True, 4096, {}),
    "certain": Key("boolean", True, 0, {}),
    "expected": Key("boolean", False, 0, {}),
    "others": Key("boolean", False, 0, {}),
    "count": Key("integer", True, 9223372036854775807, {}),
    "time_ms": Key("integer", False, 9223372036854775807, {}),
    "last_ms": Key("integer", False, 9223372036854775807, {}),
    "pid": Key("integer", False, 9223372036854775807, {}),
    "comm": Key("text", False, 255, {}),
    "syscall": Key("text", False, 255, {}),
    "path": Key("text", False, 4095, {}),
    "to": Key("text", False, 4095, {}),
    "address": Key("text", False, 255, {}),
    "port": Key("integer", False, 65535, {}),
    "host": Key("text", False, 255, {}),
    "text": Key("text", False, 4096, {}),
    "ref": Key("integer", False, 9223372036854775807, {}),
}

OPENED: Dict[str, Key] = {
    "caisson": Key("text", True, 255, {}),
    "protocol": Key("integer", True, 65535, {}),
    "verbs": Key("atoms", True, 64, {}),
    "enforces": Key("atoms", True, 64, {}),
    "sandbox_id": Key("text", True, 255, {}),
    "tier": Key("text", True, 255, {}),
    "backend": Key("text", True, 255, {}),
    "workspace": Key("text", True, 4095, {}),
    "mode": Key("text", True, 255, {}),
    "name": Key("text", False, 255, {}),
    "at": Key("text", False, 4095, {}),
    "network": Key("text", False, 255, {}),
    "warnings": Key("texts", False, 2097152, {}),
    "protect_not_enforced": Key("texts", False, 2097152, {}),
}

CLOSED: Dict[str, Key] = {
    "reason": Key("atom", True, 0, {}),
    "sandbox_id": Key("text", False, 255, {}),
    "recorded": Key("boolean", False, 0, {}),
    "result": Key("map", False, 0, {}),
}

REPLIES: Dict[str, Dict[str, Key]] = {
    "exec": {
        "reason": Key("atom", True, 0, {}),
        "detached": Key("boolean", False, 0, {}),
        "pid": Key("integer", False, 2147483647, {}),
        "clock": Key("atom", False, 0, {}),
        "exit_code": Key("integer or null", True, 255, {}),
        "signal": Key("integer or null", True, 64, {}),
        "error": Key("atom", False, 0, {}),
        "stage": Key("text", False, 255, {}),
        "text": Key("text", False, 4096, {}),
        "wall_us": Key("integer", True, 9223372036854775807, {}),
        "cpu_us": Key("integer", True, 9223372036854775807, {}),
        "mem_peak_bytes": Key("integer", True, 9223372036854775807, {}),
        "scope": Key("atom", False, 0, {}),
        "stdout_bytes": Key("integer", True, 9223372036854775807, {}),
        "stderr_bytes": Key("integer", True, 9223372036854775807, {}),
        "output_cut_bytes": Key("integer", True, 9223372036854775807, {}),
        "violations": Key("maps", True, 1024, {
            "event": Key("text", True, 255, {}),
            "source": Key("atom", False, 0, {}),
            "rule": Key("text", True, 255, {}),
            "say": Key("text", True, 4096, {}),
            "certain": Key("boolean", True, 0, {}),
            "expected": Key("boolean", False, 0, {}),
            "others": Key("boolean", False, 0, {}),
            "count": Key("integer", True, 9223372036854775807, {}),
            "time_ms": Key("integer", False, 9223372036854775807, {}),
            "last_ms": Key("integer", False, 9223372036854775807, {}),
            "pid": Key("integer", False, 9223372036854775807, {}),
            "comm": Key("text", False, 255, {}),
            "syscall": Key("text", False, 255, {}),
            "path": Key("text", False, 4095, {}),
            "to": Key("text", False, 4095, {}),
            "address": Key("text", False, 255, {}),
            "port": Key("integer", False, 65535, {}),
            "host": Key("text", False, 255, {}),
            "text": Key("text", False, 4096, {}),
            "ref": Key("integer", False, 9223372036854775807, {}),
        }),
    },
    "ps": {
        "commands": Key("maps", True, 128, {
            "ref": Key("integer", True, 9223372036854775807, {}),
            "tag": Key("text", False, 255, {}),
            "state": Key("atom", True, 0, {}),
            "detached": Key("boolean", True, 0, {}),
            "pid": Key("integer or null", True, 2147483647, {}),
            "exit_code": Key("integer or null", True, 255, {}),
            "signal": Key("integer or null", True, 64, {}),
            "started_ms": Key("integer", True, 9223372036854775807, {}),
            "bytes": Key("integer", True, 9223372036854775807, {}),
            "cut": Key("integer", True, 9223372036854775807, {}),
        }),
    },
    "logs": {
        "bytes": Key("integer", True, 9223372036854775807, {}),
        "cut": Key("integer", True, 9223372036854775807, {}),
        "running": Key("boolean", True, 0, {}),
    },
    "wait": {
        "reached": Key("boolean", True, 0, {}),
        "timed_out": Key("boolean", True, 0, {}),
        "running": Key("boolean", True, 0, {}),
        "exit_code": Key("integer or null", True, 255, {}),
        "signal": Key("integer or null", True, 64, {}),
        "line": Key("bytes", False, 4096, {}),
    },
    "kill": {
    },
    "read": {
        "bytes": Key("bytes", False, 65536, {}),
        "size": Key("integer", True, 9223372036854775807, {}),
    },
    "write": {
    },
    "edit": {
        "occurrences": Key("integer", True, 9223372036854775807, {}),
        "content": Key("bytes", False, 1048576, {}),
    },
    "glob": {
        "paths": Key("texts", True, 2097152, {}),
        "truncated": Key("boolean", True, 0, {}),
        "skipped": Key("integer", True, 9223372036854775807, {}),
    },
    "grep": {
        "matches": Key("maps", True, 10000, {
            "path": Key("path", True, 4095, {}),
            "line_number": Key("integer", True, 9223372036854775807, {}),
            "line": Key("bytes", True, 65536, {}),
            "is_context": Key("boolean", False, 0, {}),
        }),
        "binary": Key("texts", True, 2097152, {}),
        "truncated": Key("boolean", True, 0, {}),
        "skipped": Key("integer", True, 9223372036854775807, {}),
    },
    "stat": {
        "type": Key("atom", True, 0, {}),
        "size": Key("integer", True, 9223372036854775807, {}),
        "mode": Key("integer", True, 4095, {}),
        "mtime_ms": Key("integer", True, 9223372036854775807, {}),
        "target": Key("text", False, 4095, {}),
    },
    "list": {
        "entries": Key("maps", True, 10000, {
            "name": Key("path", True, 255, {}),
            "type": Key("atom", True, 0, {}),
            "size": Key("integer", True, 9223372036854775807, {}),
        }),
        "truncated": Key("boolean", True, 0, {}),
    },
    "remove": {
    },
    "move": {
    },
    "mount": {
    },
    "diff": {
        "changes": Key("maps", True, 10000, {
            "path": Key("path", True, 4095, {}),
            "change": Key("atom", True, 0, {}),
            "kind": Key("atom", False, 0, {}),
            "size": Key("integer", False, 9223372036854775807, {}),
            "mode": Key("integer", False, 4095, {}),
            "other": Key("path", False, 4095, {}),
            "guarded": Key("boolean", False, 0, {}),
            "reason": Key("text", False, 4096, {}),
        }),
        "truncated": Key("boolean", True, 0, {}),
        "foreign": Key("integer", False, 2147483647, {}),
        "foreign_names": Key("texts", False, 2097152, {}),
    },
    "commit": {
        "applied": Key("maps", True, 10000, {
            "path": Key("path", True, 4095, {}),
            "change": Key("atom", True, 0, {}),
            "kind": Key("atom", False, 0, {}),
            "size": Key("integer", False, 9223372036854775807, {}),
            "mode": Key("integer", False, 4095, {}),
            "other": Key("path", False, 4095, {}),
            "guarded": Key("boolean", False, 0, {}),
            "reason": Key("text", False, 4096, {}),
        }),
        "left": Key("maps", True, 10000, {
            "path": Key("path", True, 4095, {}),
            "change": Key("atom", True, 0, {}),
            "kind": Key("atom", False, 0, {}),
            "size": Key("integer", False, 9223372036854775807, {}),
            "mode": Key("integer", False, 4095, {}),
            "other": Key("path", False, 4095, {}),
            "guarded": Key("boolean", False, 0, {}),
            "reason": Key("text", False, 4096, {}),
        }),
        "truncated": Key("boolean", False, 0, {}),
    },
    "snapshot": {
        "entries": Key("integer", True, 9223372036854775807, {}),
        "bytes": Key("integer", True, 9223372036854775807, {}),
        "torn": Key("integer", True, 9223372036854775807, {}),
        "torn_name": Key("bytes", True, 255, {}),
    },
    "fork": {
        "entries": Key("integer", True, 9223372036854775807, {}),
        "bytes": Key("integer", True, 9223372036854775807, {}),
        "torn": Key("integer", True, 9223372036854775807, {}),
        "torn_name": Key("bytes", True, 255, {}),
    },
    "stats": {
        "sandbox_id": Key("text", True, 255, {}),
        "tier": Key("text", True, 255, {}),
        "backend": Key("text", True, 255, {}),
        "workspace": Key("text", True, 4095, {}),
        "mode": Key("text", True, 255, {}),
        "started_ms": Key("integer", True, 9223372036854775807, {}),
        "commands": Key("integer", True, 9223372036854775807, {}),
        "idle_ms": Key("integer", True, 9223372036854775807, {}),
        "idle_limit_ms": Key("integer or null", True, 9223372036854775807, {}),
        "means": Key("text", True, 255, {}),
        "mem_bytes": Key("integer or null", True, 9223372036854775807, {}),
        "mem_limit": Key("integer or null", True, 9223372036854775807, {}),
        "processes": Key("integer or null", True, 9223372036854775807, {}),
        "processes_limit": Key("integer or null", True, 9223372036854775807, {}),
        "cpu_us": Key("integer or null", True, 9223372036854775807, {}),
        "scratch_bytes": Key("integer or null", True, 9223372036854775807, {}),
        "scratch_limit": Key("integer or null", True, 9223372036854775807, {}),
    },
    "eval": {
        "value": Key("bytes", False, 3145728, {}),
        "reason": Key("bytes", False, 16384, {}),
        "output": Key("bytes", True, 1048576, {}),
        "done": Key("boolean", True, 0, {}),
    },
}
# fmt: on
