"""What the sync and the async client share beyond the protocol: options, state, tokens, streams without waiting."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Any, Callable, Deque, Generic, Iterator, List, Mapping, Optional, TypeVar

from . import _core, _ops, _process
from ._core import Call, Core, Op
from ._errors import CaissonError, Invalid, Timeout
from ._link import Link
from ._results import Chunk

T = TypeVar("T")

PIPE = _core.PULL  # stdin of a stream that is written to


class Cancel:
    """Cancels the calls that it is given to, from any thread: also one that begins later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actions: "List[Callable[[], None]]" = []
        self.is_set = False

    def cancel(self) -> None:
        with self._lock:
            self.is_set = True
            actions = list(self._actions)
        for action in actions:
            action()

    def _watch(self, action: "Callable[[], None]") -> None:
        with self._lock:
            self._actions.append(action)
            is_set = self.is_set
        if is_set:
            action()

    def _unwatch(self, action: "Callable[[], None]") -> None:
        with self._lock:
            self._actions.remove(action)


class Handle:
    """A sandbox, as far as neither client waits for anything."""

    _core: Core
    _link: Link
    _child: _process.Child

    def _begin(self, attach: Optional[str], program: Optional[str], options: Mapping[str, Any]) -> None:
        self._pid = os.getpid()
        if attach is not None:
            self._core = Core(f"the sandbox {attach}")
            self._child = _process.join(attach)
        else:
            path = _process.find_program(program)
            self._core = Core(path, _ops.open_args(options))
            self._child = _process.start(path)
        self._link = Link(self._core, self._child)

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise Invalid("this sandbox was opened by another process: open one here", "invalid", "open")

    # ---- what is known of it ------------------------------------------------------------------

    @property
    def verbs(self) -> "frozenset[str]":
        """What it can be asked for."""
        return self._core.verbs

    @property
    def enforces(self) -> "frozenset[str]":
        """What its wall enforces, by the names of result.json."""
        return self._core.enforces

    @property
    def info(self) -> "dict[str, Any]":
        """What was said when it was opened: tier, backend, mode and so on."""
        return plain_map(self._core.info)

    @property
    def result(self) -> "Optional[dict[str, Any]]":
        """After close(): its record's result.json, if it was opened here."""
        result = self._core.closed.get("result")
        return plain_map(result) if isinstance(result, dict) else None


def plain_map(term: Mapping[Any, Any]) -> "dict[str, Any]":
    return {_plain_text(key): _plain(value) for key, value in term.items()}


def _plain_text(value: "str | bytes") -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return plain_map(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return _plain_text(value) if isinstance(value, (bytes, str)) else value


def too_slow(wait_s: float) -> CaissonError:
    return Timeout(
        f"the wall did not stand within {wait_s:g} s: give start_timeout more, or see `caisson doctor`",
        "etimedout",
        "open",
    )


def pieces_of(source: object) -> "Iterator[object]":
    """A file, or anything that can be iterated, as pieces of input."""
    read = getattr(source, "read1", None) or getattr(source, "read", None)
    if read is not None:
        return iter(lambda: read(_core.PIECE) or b"", b"")
    return iter(source)  # type: ignore[call-overload, no-any-return]


def piece(value: object) -> bytes:
    return _ops._bytes(value, "stdin")


class Flow(Generic[T]):
    """A call whose pieces are taken one by one: what is there, and what has to be told to the core."""

    def __init__(self, op: "Op[T]") -> None:
        self.op = op
        self.chunks: Deque[Chunk] = deque()
        self.is_over = False
        self.has_room = False
        self.is_written = False  # its input is what write() gives it
        self.used = 0

    def check_written(self) -> None:
        if not self.is_written:
            raise Invalid(
                "this stream is not written to: its stdin is not PIPE, or the end of its input was said",
                "invalid",
                "stream",
            )

    def take(self, kind: int, first: Any, second: Any) -> None:
        """An event that is not a violation."""
        if kind == _core.DATA:
            self.chunks.append(Chunk(first, second))
        elif kind == _core.ROOM:
            self.has_room = True
        elif kind == _core.END:
            self.is_over = True

    def next(self) -> Chunk:
        """The oldest piece."""
        chunk = self.chunks.popleft()
        if self.op.sink is not None:
            self.op.sink.add(chunk.stream, chunk.data)
        self.used += len(chunk.data)
        return chunk

    def granted(self) -> int:
        """What may come again, when that is worth a frame; 0 else."""
        if self.used < _core.GRANT:
            return 0
        used, self.used = self.used, 0
        return used


__all__ = ["Cancel", "Call", "Flow", "Handle", "PIPE", "piece", "pieces_of", "plain_map", "too_slow"]
