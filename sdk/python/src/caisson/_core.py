"""The protocol without input and output: bytes in, bytes out, calls between.

Nothing here sleeps, reads or starts anything; the clock is an argument. The sync and the async client drive this one
class, each in one thread, so they cannot drift. What comes in is hostile: a frame that is malformed, out of turn, or
more than was asked for ends the sandbox as Lost, as it does in libcaisson.

A call's events go to its listener, in the thread that drives:

    (DATA, stream, bytes)   only if it has no sink; took() lets more come
    (FACT, Violation)       only if it listens for them
    (ROOM, None)            only if its input is pulled: feed() once
    (END, None)             result() has it
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Deque, Dict, FrozenSet, Generic, Mapping, Optional, Set, Tuple, TypeVar

from . import _results
from ._errors import CaissonError, Cancelled, Invalid, Lost, NotSupported, Timeout, VersionMismatch
from ._errors import error_of, failed, lines, plain, refused
from ._tables import CLOSED, OPENED, READY, REPLIES, VIOLATION, Key
from ._term import Atom, BadTerm, decode, frame, name_of

T = TypeVar("T")
Event = Tuple[int, Any, Any]
Listener = Callable[[Event], None]

DATA, FACT, ROOM, END = range(4)

PROTOCOL = 1
WINDOW = 262144  # of data that may be under way, each way
PIECE = 65536
GRANT = WINDOW // 4
CANCEL_S = 30.0  # within which a cancel is answered
MORE_S = 10.0  # after a clock of the other side's, for it to end and account
IN_FLIGHT = 28  # the other side takes 32 of one client
SLOW = 24  # of them, those that wait for something: the others keep a way past them
SLOW_VERBS = frozenset(("exec", "wait", "logs"))
GATE_CALLS = 16  # at once
FACTS = 1024  # of one call that are told as they come; the account has them all

_MOST = {
    "ready": 65536,
    "reply": 5242880,
    "failed": 8192,
    "data": 65600,
    "window": 64,
    "fact": 65536,
    "bye": 65536,
    "gate_call": 65855,
}
_REPLY_MAX = 5242880
_CALL_MAX = 5242880


class Pipe:
    """The type of PIPE."""


PULL = Pipe()  # input that a listener is asked for


class Op(Generic[T]):
    """What to call: a verb, its arguments, and what becomes of the answer."""

    __slots__ = ("verb", "args", "build", "input", "sink", "timeout_s", "more_s", "on_violation")

    def __init__(
        self,
        verb: str,
        args: Dict[str, Any],
        build: "Callable[[Mapping[str, Any], Call[T]], T]",
        *,
        input: Any = None,
        sink: "Optional[_results.Keeper]" = None,
        timeout_s: Optional[float] = None,
        more_s: float = 0.0,
        on_violation: "Optional[Callable[[_results.Violation], object]]" = None,
    ) -> None:
        self.verb, self.args, self.build, self.input, self.sink = verb, args, build, input, sink
        self.timeout_s, self.more_s, self.on_violation = timeout_s, more_s, on_violation


class Call(Generic[T]):
    """One call, from its place in the queue to its answer."""

    __slots__ = (
        "op",
        "listener",
        "takes_pieces",
        "ref",
        "is_over",
        "is_late",
        "is_cancelled",
        "is_gone",
        "deadline",
        "window",
        "used",
        "room",
        "input",
        "is_asked",
        "facts",
        "reply",
        "error",
    )

    def __init__(self, op: "Op[T]", listener: Listener, takes_pieces: bool = False) -> None:
        self.op, self.listener, self.takes_pieces = op, listener, takes_pieces
        self.ref: Optional[int] = None  # None: it waits in the queue
        self.is_over = self.is_late = self.is_cancelled = False
        self.is_gone = False  # nobody listens any more
        self.deadline: Optional[float] = None
        self.window = self.room = WINDOW
        self.used = 0
        self.input: Optional[memoryview] = memoryview(op.input) if isinstance(op.input, bytes) else None
        self.is_asked = False
        self.facts = 0
        self.reply: Mapping[str, Any] = {}
        self.error: Optional[CaissonError] = None

    def result(self) -> T:
        """After END: the answer, or the error raised."""
        if self.error is not None:
            raise self.error
        return self.op.build(self.reply, self)

    def tell(self, kind: int, first: Any = None, second: Any = None) -> None:
        if not self.is_gone:
            self.listener((kind, first, second))


class Core:
    """One sandbox's end of the protocol."""

    def __init__(self, about: str, options: Optional[Dict[str, Any]] = None) -> None:
        """With options it opens a sandbox (`caisson port`), without it waits for one that is up to say ready."""
        self.about = about  # the program, for sentences
        self.out = bytearray()
        self.info: Mapping[str, Any] = {}
        self.closed: Mapping[str, Any] = {}  # the answer to close
        self.error: Optional[CaissonError] = None  # why it is over
        self.is_ready = False
        self.is_stopping = False
        self.verbs: FrozenSet[str] = frozenset()
        self.enforces: FrozenSet[str] = frozenset()
        self.on_state: Callable[[], None] = lambda: None  # it is ready, or over
        self.on_gate: Optional[Callable[[int, str, bytes], None]] = None  # code inside asks; gate_result() answers
        self._gate_calls: Set[int] = set()
        self._in = bytearray()
        self._calls: "Dict[int, Call[Any]]" = {}
        self._queue: "Deque[Call[Any]]" = deque()
        self._slow_queue: "Deque[Call[Any]]" = deque()
        self._slow = 0
        self._last_ref = 0
        self._why: Optional[CaissonError] = None  # said by bye
        self._open_ref = self._close_ref = 0
        self.is_owner = options is not None
        if options is not None:
            self._open_ref = self._last_ref = 1
            self.out += frame((Atom("open"), self._open_ref, options))

    # ---- calls --------------------------------------------------------------------------------

    def begin(self, call: "Call[Any]", now: float) -> None:
        """Sends a call, or queues it."""
        problem = self._problem(call)
        if problem is not None:
            self._finish(call, problem)
            return
        self._queue_of(call).append(call)
        self._start(now)

    def _problem(self, call: "Call[Any]") -> Optional[CaissonError]:
        verb = call.op.verb
        if self.error is not None:
            return _again(self.error)
        if call.is_cancelled:
            return Cancelled("the call was cancelled before it began", "cancelled", verb)
        if self.is_stopping:
            return Lost("the sandbox was closed", "lost", verb)
        if verb not in self.verbs:
            return NotSupported(f"this sandbox does not have {verb}{_ABSENT.get(verb, '')}", "not_supported", verb)
        return None

    def _queue_of(self, call: "Call[Any]") -> "Deque[Call[Any]]":
        return self._slow_queue if call.op.verb in SLOW_VERBS else self._queue

    def _start(self, now: float) -> None:
        while self._queue and len(self._calls) < IN_FLIGHT:
            self._send_call(self._queue.popleft(), now)
        while self._slow_queue and self._slow < SLOW and len(self._calls) < IN_FLIGHT:
            self._send_call(self._slow_queue.popleft(), now)

    def _send_call(self, call: "Call[Any]", now: float) -> None:
        op = call.op
        self._last_ref += 1
        try:
            data = frame((Atom("call"), self._last_ref, Atom(op.verb), op.args))
        except BadTerm as bad:
            self._finish(call, Invalid(f"{op.verb}: {bad}", "invalid", op.verb))
            return
        if len(data) > _CALL_MAX:
            self._finish(call, error_of("e2big", op.verb, f"a call is at most {_CALL_MAX} bytes"))
            return
        call.ref = self._last_ref
        self._calls[call.ref] = call
        self._slow += op.verb in SLOW_VERBS
        if op.timeout_s is not None:
            call.deadline = now + op.timeout_s + op.more_s
        self.out += data
        self._pump_input(call)

    def cancel(self, call: "Call[Any]", now: float) -> None:
        """Asks for its end; the answer still comes."""
        if call.is_over or call.is_cancelled:
            return
        call.is_cancelled = True
        if call.ref is None:
            if call in self._queue_of(call):
                self._queue_of(call).remove(call)
                self._finish(call, Cancelled("the call was cancelled before it began", "cancelled", call.op.verb))
            return
        call.deadline = now + CANCEL_S
        self._send("cancel", call.ref)

    def abandon(self, call: "Call[Any]", now: float) -> None:
        """Cancels a call that nobody waits for any longer."""
        call.is_gone = True
        self.cancel(call, now)
        self._grant(call, call.used)  # what was given out and not taken

    def took(self, call: "Call[Any]", size: int) -> None:
        """A listener is done with so many bytes of DATA."""
        call.used += size
        if call.used >= GRANT:
            self._grant(call, call.used)

    def _grant(self, call: "Call[Any]", size: int) -> None:
        call.used = 0
        if size > 0 and call.ref is not None and not call.is_over:
            call.window += size
            self._send("window", call.ref, size)

    def feed(self, call: "Call[Any]", data: bytes) -> None:
        """Input that was asked for by ROOM; b"" is its end."""
        call.is_asked = False
        if call.is_over or call.is_cancelled:
            return
        call.input = memoryview(data)
        if not data:
            call.op.input = None
            self._send_input(call, b"")
            return
        self._pump_input(call)

    def _send_input(self, call: "Call[Any]", data: "bytes | memoryview") -> None:
        self.out += frame((Atom("data"), call.ref, Atom("stdin"), data if len(data) else Atom("eof")))

    def _pump_input(self, call: "Call[Any]") -> None:
        while call.input is not None and len(call.input) and call.room > 0:
            piece = call.input[: min(call.room, PIECE)]
            call.room -= len(piece)
            call.input = call.input[len(piece) :]
            self._send_input(call, piece)
        if call.op.input is None or (call.input is not None and len(call.input)):
            return
        if call.op.input is not PULL:
            call.op.input = None
            self._send_input(call, b"")
        elif call.room > 0 and not call.is_asked:
            call.is_asked = True
            call.tell(ROOM)

    def signal(self, call: "Call[Any]", number: int) -> None:
        if call.ref is not None and not call.is_over:
            self._send("signal", call.ref, number)

    def resize(self, call: "Call[Any]", rows: int, columns: int) -> None:
        if call.ref is not None and not call.is_over:
            self._send("resize", call.ref, rows, columns)

    def stop(self) -> None:
        """Asks for the end of a sandbox that was opened here."""
        if self.is_stopping or self.error is not None or not self.is_owner:
            return
        self.is_stopping = True
        self._last_ref += 1
        self._close_ref = self._last_ref
        self._send("close", self._close_ref)

    def _send(self, what: str, *numbers: int) -> None:
        self.out += frame((Atom(what), *numbers))

    def _finish(self, call: "Call[Any]", error: Optional[CaissonError]) -> None:
        call.is_over, call.error = True, error
        if call.ref is not None and self._calls.pop(call.ref, None) is not None:
            self._slow -= call.op.verb in SLOW_VERBS
        call.tell(END)

    # ---- time ---------------------------------------------------------------------------------

    def deadline(self) -> Optional[float]:
        """When expire() has something to do."""
        return min((call.deadline for call in self._calls.values() if call.deadline is not None), default=None)

    def expire(self, now: float) -> None:
        for call in list(self._calls.values()):
            if call.deadline is None or call.deadline > now:
                continue
            if call.is_cancelled:
                self.lose(f"the sandbox did not answer within {CANCEL_S:.0f} s that a call was cancelled")
                return
            call.is_late = True
            self.cancel(call, now)

    # ---- what comes ---------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> None:
        """Bytes as they come, in any pieces."""
        self._in += data
        at, end = 0, len(self._in)
        while self.error is None and end - at >= 4:
            size = int.from_bytes(self._in[at : at + 4], "big")
            if size > _REPLY_MAX:
                self._broke(f"a frame of {size} bytes")
                break
            if end - at - 4 < size:
                break
            payload = bytes(self._in[at + 4 : at + 4 + size])
            at += 4 + size
            try:
                self._take(payload)
            except (BadTerm, _results.BadReply) as bad:
                self._broke(str(bad))
        del self._in[:at]
        self._start(now)

    def end(self, said: str) -> None:
        """The stream has ended; `said` is what its program wrote on stderr."""
        if self._why is not None:
            self._over(self._why)
        elif self.is_stopping:
            self._over(Lost("the sandbox was closed", "lost", "close"))
        elif self.is_ready:
            self.lose(
                "the monitor of this sandbox ended without a word; it was killed, or its machine is out of memory"
            )
        elif said:
            self._over(Lost(f"{self.about} did not start: {said}", "lost", "open"))
        else:
            self._over(Lost(f"{self.about} ended before its wall stood, without a word", "lost", "open"))

    def lose(self, text: str) -> None:
        """The sandbox is no more of use, and why."""
        self._over(Lost(text, "lost", "wire"))

    def _broke(self, what: str) -> None:
        self.lose(f"the sandbox broke the protocol: {what}")

    def _over(self, error: CaissonError) -> None:
        if self.error is not None:
            return
        self.error = error
        self.out.clear()
        for call in [*self._calls.values(), *self._queue, *self._slow_queue]:
            self._finish(call, _again(error))
        self._queue.clear()
        self._slow_queue.clear()
        self.on_state()

    def _take(self, payload: bytes) -> None:
        what = name_of(payload)
        if len(payload) > _MOST.get(what, 0):
            raise BadTerm(f"a message {plain(what.encode()[:40])!r} of {len(payload)} bytes")
        term = decode(payload)
        handler, arity = _HANDLERS[what]
        if len(term) != arity:
            raise BadTerm(f"{what} has {len(term)} parts")
        if not self.is_ready and what not in ("ready", "bye", "reply", "failed"):
            raise BadTerm(f"{what} came before the sandbox was ready")
        handler(self, *term[1:])

    def _on_ready(self, info: Any) -> None:
        if self.is_ready or self.is_owner or not isinstance(info, dict):
            raise BadTerm("ready was said twice, or without a map")
        self._begun(info, info.get("version"), READY)

    def _begun(self, info: Dict[Any, Any], version: object, keys: Mapping[str, Key]) -> None:
        if version != PROTOCOL:
            self._over(mismatch(self.about, version))
            return
        _results.check(keys, info)
        self.info = info
        self.verbs, self.enforces = frozenset(map(str, info["verbs"])), frozenset(map(str, info["enforces"]))
        self.is_ready = True
        self.on_state()

    def _call(self, ref: Any) -> "Call[Any]":
        call = self._calls.get(ref) if isinstance(ref, int) and not isinstance(ref, bool) else None
        if call is None:
            raise BadTerm("an answer to what was not asked")
        return call

    def _on_reply(self, ref: Any, reply: Any) -> None:
        if not isinstance(reply, dict):
            raise BadTerm("a reply without a map")
        if self._open_ref and ref == self._open_ref:
            self._open_ref = 0
            self._begun(reply, reply.get("protocol"), OPENED)
            return
        if self._close_ref and ref == self._close_ref:
            _results.check(CLOSED, reply)
            self.closed = reply
            self._over(Lost("the sandbox was closed", "lost", "close"))
            return
        call = self._call(ref)
        try:
            _results.check(REPLIES[call.op.verb], reply)
        except _results.BadReply as bad:
            raise BadTerm(f"{call.op.verb}: {bad}") from None
        call.reply = reply
        self._finish(call, call.error)

    def _on_failed(self, ref: Any, reason: Any, detail: Any) -> None:
        if not isinstance(reason, Atom) or not isinstance(detail, bytes) or len(detail) > 4096:
            raise BadTerm("failed without a reason")
        if not self.is_ready and (ref == 0 or ref == self._open_ref):  # 0: the port could not even read
            stage, _, text = lines(detail).partition(": ")
            self._over(refused(str(reason), stage if text else "open", text or stage))
            return
        if ref == 0 and self.is_owner:  # what we said was malformed
            self.lose(f"the sandbox refused what it was sent: {plain(detail)}")
            return
        call = self._call(ref)
        error = call.error or failed(str(reason), call.op.verb, plain(detail))
        if call.is_late and error.code == "cancelled":
            error = Timeout("the call took longer than its time", "etimedout", call.op.verb)
        self._finish(call, error)

    def _on_data(self, ref: Any, stream: Any, data: Any) -> None:
        call = self._call(ref)
        if stream not in ("stdout", "stderr", "tty") or not isinstance(data, bytes) or not data:
            raise BadTerm("data that is none")
        size = len(data)
        if size > PIECE or size > call.window or (call.op.sink is None and not call.takes_pieces):
            raise BadTerm("more data than was asked for")
        call.window -= size
        if call.takes_pieces and not call.is_gone:
            call.tell(DATA, str(stream), data)
            return
        if call.op.sink is not None and not call.is_gone and call.error is None:
            try:
                call.op.sink.add(str(stream), data)
            except CaissonError as error:
                call.error = error
                call.is_cancelled = True
                self._send("cancel", ref)
        self.took(call, size)

    def _on_window(self, ref: Any, size: Any) -> None:
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= 16777216:
            raise BadTerm("a window that is none")
        call = self._calls.get(ref) if isinstance(ref, int) else None
        if call is not None:  # a grant may cross the end
            call.room = min(call.room + size, WINDOW)
            self._pump_input(call)

    def _on_fact(self, fact: Any) -> None:
        if not isinstance(fact, dict):
            raise BadTerm("a fact without a map")
        if isinstance(fact.get("event"), Atom):  # of an agent's: that a detached command ended
            return
        _results.check(VIOLATION, fact)
        call = self._calls.get(fact["ref"]) if "ref" in fact else self._first_listener()
        if call is not None and call.op.on_violation is not None and call.facts < FACTS:
            call.facts += 1
            call.tell(FACT, _results.violation(fact))

    def _first_listener(self) -> "Optional[Call[Any]]":
        return next((call for call in self._calls.values() if call.op.on_violation is not None), None)

    def _on_gate_call(self, ref: Any, name: Any, args: Any) -> None:
        if not isinstance(ref, int) or isinstance(ref, bool) or ref in self._gate_calls:
            raise BadTerm("a gate's call without a number of its own")
        if not isinstance(name, bytes) or not isinstance(args, bytes):
            raise BadTerm("a gate's call that is none")
        if self.on_gate is None:
            raise BadTerm("a gate's call, and there are no gates")
        if len(self._gate_calls) >= GATE_CALLS:
            # The monitor stops waiting when a call's time is over, and the function goes on: its place is taken.
            self.gate_result(ref, b"the gate is busy: %d calls of it still run" % GATE_CALLS, True)
            return
        self._gate_calls.add(ref)
        self.on_gate(ref, name.decode("utf-8", "replace"), args)

    def gate_result(self, ref: int, result: bytes, is_error: bool) -> None:
        """Answers a gate's call."""
        self._gate_calls.discard(ref)
        if self.error is None:
            told = {Atom("result"): result, Atom("is_error"): is_error}
            self.out += frame((Atom("gate_result"), ref, told))

    def _on_bye(self, info: Any) -> None:
        if not isinstance(info, dict):
            raise BadTerm("bye without a map")

        def text(key: str, otherwise: str, most: int) -> str:
            value = info.get(key)
            if isinstance(value, str):
                return lines(value.encode("utf-8", "replace")[:most])
            return lines(value[:most]) if isinstance(value, bytes) and value else otherwise

        sentence = text("text", text("reason", "the sandbox has ended", 475), 475)
        # What refused a start is told as it is; a sandbox that stood is lost.
        code = "lost" if self.is_ready else text("code", "lost", 31)
        self._why = refused(code, text("stage", "monitor", 31), sentence)
        if self.is_ready and not self.is_stopping:
            self._over(self._why)


_HANDLERS: "Dict[str, Tuple[Callable[..., None], int]]" = {
    "ready": (Core._on_ready, 2),
    "reply": (Core._on_reply, 3),
    "failed": (Core._on_failed, 4),
    "data": (Core._on_data, 4),
    "window": (Core._on_window, 3),
    "fact": (Core._on_fact, 2),
    "bye": (Core._on_bye, 2),
    "gate_call": (Core._on_gate_call, 4),
}

_NO_COPY = ": it works on no copy of the workspace, which workspace='PATH:cow' makes"
_ABSENT = {
    **dict.fromkeys(("diff", "commit", "snapshot", "fork"), _NO_COPY),
    "mount": ": its wall shows the host's own tree and mounts nothing: choose the process wall, "
    "or lend the folder at the start under its own path",
}


def _again(error: CaissonError) -> CaissonError:
    """The same error as an exception of its own: each is raised in its own thread."""
    return type(error)(str(error), error.code, error.stage)


def mismatch(about: str, version: object) -> CaissonError:
    from . import __version__

    return VersionMismatch(
        f"{about} speaks version {version} of the protocol, the Python package caisson {__version__} version "
        f"{PROTOCOL}: install the two together",
        "eproto",
        "open",
    )
