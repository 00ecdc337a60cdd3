"""What calls answer, as frozen values, and how they are made from the maps that came.

Bytes are bytes; paths, lines' paths and names are str with `surrogateescape`, so that any name goes back as it
came. Texts come from inside a sandbox and may hold anything: escape them before a terminal shows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Tuple

from ._errors import TooLarge
from ._tables import Key

KEEP_DEFAULT = 1 << 20
KEEP_MAX = 64 << 20
SPARE = 64 << 10  # of a tail, so that it is not cut at each piece


@dataclass(frozen=True)
class Violation:
    """Something the sandbox tried that its policy does not permit."""

    event: str
    rule: str
    say: str
    certain: bool = True
    count: int = 1
    source: Optional[str] = None
    expected: bool = False
    others: bool = False
    time_ms: Optional[int] = None
    last_ms: Optional[int] = None
    pid: Optional[int] = None
    comm: Optional[str] = None
    syscall: Optional[str] = None
    path: Optional[str] = None
    to: Optional[str] = None
    address: Optional[str] = None
    port: Optional[int] = None
    host: Optional[str] = None
    text: Optional[str] = None


@dataclass(frozen=True)
class Termination:
    """Why a command ended: `reason` is exited, signaled, timeout, memory, output, processes, scratch, violation,
    cancelled, lost, start_failed, or detached: it goes on."""

    reason: str
    clock: Optional[str] = None
    error: Optional[str] = None
    stage: Optional[str] = None
    text: Optional[str] = None


@dataclass(frozen=True)
class Usage:
    """What a command used. `scope` says of what: command, or sandbox."""

    wall_us: int
    cpu_us: int
    mem_peak_bytes: int
    stdout_bytes: int
    stderr_bytes: int
    scope: str = "command"


@dataclass(frozen=True)
class ExecResult:
    """How a command went. A status other than 0, a timeout, a kill are results.

    `output` is both streams in the order in which they came. Of each, `keep` bytes are kept: all of it, or the
    first and the last half; `stdout_cut`, `stderr_cut`, `merged_cut` say how many bytes are missing between, and
    `output_cut` how many the sandbox's output limit cut before they came."""

    stdout: bytes
    stderr: bytes
    output: bytes
    exit_code: Optional[int]
    signal: Optional[int]
    termination: Termination
    usage: Usage
    violations: Tuple[Violation, ...] = ()
    stdout_cut: int = 0
    stderr_cut: int = 0
    merged_cut: int = 0
    output_cut: int = 0
    pid: Optional[int] = None

    @property
    def ok(self) -> bool:
        """It exited by itself with status 0."""
        return self.exit_code == 0 and self.termination.reason == "exited"

    @property
    def text(self) -> str:
        """`output` as text; what is no UTF-8 is replaced."""
        return self.output.decode("utf-8", "replace")


@dataclass(frozen=True)
class Chunk:
    """A piece of output: `stream` is stdout, stderr or tty."""

    stream: str
    data: bytes

    @property
    def text(self) -> str:
        """As text; a character that is cut in two is replaced."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Process:
    """A command that runs, or a detached one that ended."""

    tag: Optional[str]
    state: str
    detached: bool
    pid: Optional[int]
    exit_code: Optional[int]
    signal: Optional[int]
    started_ms: int
    bytes: int
    cut: int


@dataclass(frozen=True)
class Logs:
    """Output of a detached command. `cut` bytes of it are no longer remembered."""

    stdout: bytes
    stderr: bytes
    output: bytes
    bytes: int
    cut: int
    running: bool


@dataclass(frozen=True)
class Waited:
    """What waiting came to; `line` is the one that matched."""

    reached: bool
    timed_out: bool
    running: bool
    exit_code: Optional[int]
    signal: Optional[int]
    line: Optional[bytes]


@dataclass(frozen=True)
class Edited:
    """How often the old text is there; the file was written if once. `content` is absent above 1 MiB."""

    occurrences: int
    content: Optional[bytes]

    @property
    def ok(self) -> bool:
        return self.occurrences == 1


@dataclass(frozen=True)
class Stat:
    type: str
    size: int
    mode: int
    mtime_ms: int
    target: Optional[str]


@dataclass(frozen=True)
class Entry:
    name: str
    type: str
    size: int


@dataclass(frozen=True)
class Listing:
    entries: Tuple[Entry, ...]
    truncated: bool


@dataclass(frozen=True)
class Globbed:
    """Paths, sorted. `skipped` folders could not be read."""

    paths: Tuple[str, ...]
    truncated: bool
    skipped: int


@dataclass(frozen=True)
class Match:
    path: str
    line_number: int
    line: bytes
    is_context: bool

    @property
    def text(self) -> str:
        return self.line.decode("utf-8", "replace")


@dataclass(frozen=True)
class Grepped:
    """Lines in order of path and line; `binary` are files that match and are no text."""

    matches: Tuple[Match, ...]
    binary: Tuple[str, ...]
    truncated: bool
    skipped: int


@dataclass(frozen=True)
class Change:
    """A difference to the workspace: `change` is added, modified or deleted."""

    path: str
    change: str
    kind: Optional[str]
    size: Optional[int]
    mode: Optional[int]
    other: Optional[str]
    guarded: bool
    reason: Optional[str]


@dataclass(frozen=True)
class Diff:
    """`text` is what patch(1) reads; `text_cut` bytes of it were not kept."""

    changes: Tuple[Change, ...]
    text: bytes
    text_cut: int
    truncated: bool
    foreign: int
    foreign_names: Tuple[str, ...]


@dataclass(frozen=True)
class Committed:
    """What was written to the workspace, and what was left, each with its reason."""

    applied: Tuple[Change, ...]
    left: Tuple[Change, ...]
    truncated: bool


@dataclass(frozen=True)
class Copied:
    """Of a snapshot or a fork. `torn` files changed all the time."""

    entries: int
    bytes: int
    torn: int
    torn_name: Optional[str]


@dataclass(frozen=True)
class Stats:
    """What a sandbox is and uses. None: nobody knows, or there is no limit."""

    sandbox_id: str
    tier: str
    backend: str
    workspace: Optional[str]
    mode: str
    started_ms: int
    commands: int
    idle_ms: int
    idle_limit_ms: Optional[int]
    means: str
    mem_bytes: Optional[int]
    mem_limit: Optional[int]
    processes: Optional[int]
    processes_limit: Optional[int]
    cpu_us: Optional[int]
    scratch_bytes: Optional[int]
    scratch_limit: Optional[int]


# ---- checking what came -------------------------------------------------------------------------


class BadReply(ValueError):
    """A map is not what the table of its verb says."""


def _is_int(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _is_bytes(value: Any, most: int) -> bool:
    return isinstance(value, bytes) and len(value) <= most


def _is_text(value: Any, most: int) -> bool:
    return _is_bytes(value, most) and b"\0" not in value


def _is_atom(value: Any, _: int) -> bool:
    return isinstance(value, str)


def _is_texts(value: Any, most: int) -> bool:
    return isinstance(value, list) and all(_is_text(item, most) for item in value) and sum(map(len, value)) <= most


_KINDS: Dict[str, Callable[[Any, int], bool]] = {
    "integer": _is_int,
    "integer or null": lambda value, most: value is None or _is_int(value, most),
    "atom": _is_atom,
    "bytes": _is_bytes,
    "text": _is_text,
    "path": lambda value, most: _is_text(value, most) and value != b"",
    "boolean": lambda value, _: isinstance(value, bool),
    "atoms": lambda value, most: (
        isinstance(value, list) and len(value) <= most and all(isinstance(item, str) for item in value)
    ),
    "texts": _is_texts,
    "map": lambda value, _: isinstance(value, dict),
    "maps": lambda value, most: (
        isinstance(value, list) and len(value) <= most and all(isinstance(item, dict) for item in value)
    ),
}


def check(keys: Mapping[str, Key], reply: Mapping[Any, Any]) -> None:
    """Every key that is known is what its table says. One that is not known is a later version's, and unused."""
    for name, key in keys.items():
        if name not in reply:
            if key.required:
                raise BadReply(f"there is no {name}")
            continue
        value = reply[name]
        if not _KINDS[key.kind](value, key.most):
            raise BadReply(f"{name} is not what it has to be: {key.kind}")
        if key.keys:
            for item in value:
                check(key.keys, item)


# ---- output that is kept ------------------------------------------------------------------------


class Kept:
    """All of a stream, or its first and its last half. Pieces are not kept as they came: a command that writes byte by
    byte would make an object of each."""

    __slots__ = ("half", "head", "tail", "total")

    def __init__(self, size: int) -> None:
        self.half = (min(size or KEEP_DEFAULT, KEEP_MAX) + 1) // 2
        self.head, self.tail, self.total = bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self.half - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > self.half + SPARE:
            del self.tail[: -self.half]

    def bytes(self) -> bytes:
        return bytes(self.head + self.tail[-self.half :])

    def cut(self) -> int:
        return self.total - len(self.head) - min(len(self.tail), self.half)


class Keeper:
    """Takes a call's output and keeps it: of stdout (or the terminal), of stderr, and of both as they came."""

    __slots__ = ("stdout", "stderr", "both")

    def __init__(self, size: int) -> None:
        self.stdout, self.stderr, self.both = Kept(size), Kept(size), Kept(size)

    def add(self, stream: str, data: bytes) -> None:
        (self.stderr if stream == "stderr" else self.stdout).add(data)
        self.both.add(data)


class Whole(Keeper):
    """Keeps all of it, up to a bound that is an error."""

    __slots__ = ("most", "pieces", "size", "what")

    def __init__(self, most: int, what: str) -> None:
        super().__init__(1)
        self.most, self.what, self.size = most, what, 0
        self.pieces: List[bytes] = []

    def add(self, stream: str, data: bytes) -> None:
        self.size += len(data)
        if self.size > self.most:
            raise TooLarge(
                f"{self.what} is longer than {self.most} bytes: read a part of it, or with read_pieces()",
                "efbig",
                "read",
            )
        self.pieces.append(data)


# ---- from maps to values ------------------------------------------------------------------------

Reply = Mapping[str, Any]


def name(value: Optional[bytes]) -> Optional[str]:
    """A path or name from inside; goes back as it came."""
    return None if value is None else value.decode("utf-8", "surrogateescape")


def _texts(values: Optional[List[bytes]]) -> Tuple[str, ...]:
    return tuple(value.decode("utf-8", "surrogateescape") for value in values or ())


def _known(reply: Reply, keys: FrozenSet[str]) -> Dict[str, Any]:
    return {
        key: name(value) if isinstance(value, bytes) else str(value) if isinstance(value, str) else value
        for key, value in reply.items()
        if key in keys
    }


_VIOLATION_KEYS = frozenset(Violation.__dataclass_fields__)


def violation(reply: Reply) -> Violation:
    return Violation(**_known(reply, _VIOLATION_KEYS))


def _atom(value: Optional[str]) -> Optional[str]:
    return None if value is None else str(value)


def exec_result(reply: Reply, output: Keeper, late: bool) -> ExecResult:
    reason, clock = str(reply["reason"]), _atom(reply.get("clock"))
    if late and reason == "cancelled":  # by our clock: the other side's did not come
        reason, clock = "timeout", "command"
    is_detached = bool(reply.get("detached"))
    return ExecResult(
        stdout=output.stdout.bytes(),
        stderr=output.stderr.bytes(),
        output=output.both.bytes(),
        exit_code=reply["exit_code"],
        signal=reply["signal"],
        termination=Termination(
            reason, clock, _atom(reply.get("error")), name(reply.get("stage")), name(reply.get("text"))
        ),
        usage=Usage(
            reply["wall_us"],
            reply["cpu_us"],
            reply["mem_peak_bytes"],
            reply["stdout_bytes"],
            reply["stderr_bytes"],
            str(reply.get("scope", "command")),
        ),
        violations=tuple(violation(item) for item in reply["violations"]),
        stdout_cut=output.stdout.cut(),
        stderr_cut=output.stderr.cut(),
        merged_cut=output.both.cut(),
        output_cut=reply["output_cut_bytes"],
        pid=reply.get("pid") if is_detached else None,
    )


def ps_result(reply: Reply) -> Tuple[Process, ...]:
    return tuple(
        Process(
            name(item.get("tag")),
            str(item["state"]),
            item["detached"],
            item["pid"],
            item["exit_code"],
            item["signal"],
            item["started_ms"],
            item["bytes"],
            item["cut"],
        )
        for item in reply["commands"]
    )


def logs_result(reply: Reply, output: Keeper) -> Logs:
    return Logs(
        output.stdout.bytes(),
        output.stderr.bytes(),
        output.both.bytes(),
        reply["bytes"],
        reply["cut"],
        reply["running"],
    )


def wait_result(reply: Reply) -> Waited:
    return Waited(
        reply["reached"],
        reply["timed_out"],
        reply["running"],
        reply["exit_code"],
        reply["signal"],
        reply.get("line"),
    )


def stat_result(reply: Reply) -> Stat:
    return Stat(str(reply["type"]), reply["size"], reply["mode"], reply["mtime_ms"], name(reply.get("target")))


def list_result(reply: Reply) -> Listing:
    entries = (Entry(name(item["name"]) or "", str(item["type"]), item["size"]) for item in reply["entries"])
    return Listing(tuple(entries), reply["truncated"])


def glob_result(reply: Reply) -> Globbed:
    return Globbed(_texts(reply["paths"]), reply["truncated"], reply["skipped"])


def grep_result(reply: Reply) -> Grepped:
    matches = (
        Match(name(item["path"]) or "", item["line_number"], item["line"], bool(item.get("is_context")))
        for item in reply["matches"]
    )
    return Grepped(tuple(matches), _texts(reply["binary"]), reply["truncated"], reply["skipped"])


def _changes(items: List[Dict[str, Any]]) -> Tuple[Change, ...]:
    return tuple(
        Change(
            name(item["path"]) or "",
            str(item["change"]),
            _atom(item.get("kind")),
            item.get("size"),
            item.get("mode"),
            name(item.get("other")),
            bool(item.get("guarded")),
            name(item.get("reason")),
        )
        for item in items
    )


def diff_result(reply: Reply, output: Keeper) -> Diff:
    return Diff(
        _changes(reply["changes"]),
        output.stdout.bytes(),
        output.stdout.cut(),
        reply["truncated"],
        reply.get("foreign", 0),
        _texts(reply.get("foreign_names")),
    )


def commit_result(reply: Reply) -> Committed:
    return Committed(_changes(reply["applied"]), _changes(reply["left"]), bool(reply.get("truncated")))


def copied(reply: Reply) -> Copied:
    return Copied(reply["entries"], reply["bytes"], reply["torn"], name(reply["torn_name"]) or None)


_STATS_KEYS = frozenset(Stats.__dataclass_fields__)


def stats_result(reply: Reply) -> Stats:
    known = _known(reply, _STATS_KEYS)
    known["workspace"] = known["workspace"] or None
    return Stats(**known)
