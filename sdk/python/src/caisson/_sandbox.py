"""The client that waits."""

from __future__ import annotations

import atexit
import os
import threading
import warnings
import weakref
from queue import SimpleQueue
from types import TracebackType
from typing import IO, Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import _core, _ops
from . import _results as results
from ._base import Cancel, Flow, Handle, piece, pieces_of, too_slow
from ._core import Call, Event, Op, Pipe
from ._gates import Gates, answer, arguments, failure, gates_of, options_of
from ._link import REAP_S, STOP_S, UNREADY_S, now
from ._loop import loop
from ._ops import Command, OnViolation, Path, Text, Texts
from ._results import KEEP_DEFAULT, Chunk

T = TypeVar("T")
Stdin = Union[str, bytes, IO[bytes], IO[str], Iterable[Text]]


class Stream:
    """A command that runs, as an iterator over its output. Leaving its `with`, or close(), cancels it.

    After the last piece `result` has its account. Only signal(), resize() and cancel() are for other threads."""

    def __init__(self, sandbox: "Sandbox", op: "Op[T]", stdin: object) -> None:
        self._sandbox, self._flow = sandbox, Flow(op)
        self._events: "SimpleQueue[Event]" = SimpleQueue()
        self._call: "Call[Any]" = Call(op, self._events.put, True)
        self._input = pieces_of(stdin) if op.input is _core.PULL and stdin is not _core.PULL else None
        self._flow.is_written = stdin is _core.PULL
        self._done: Any = None
        sandbox._post(sandbox._core.begin, self._call, now())

    def __iter__(self) -> "Iterator[Chunk]":
        return self

    def __next__(self) -> Chunk:
        while not self._flow.chunks:
            if self._flow.is_over:
                raise StopIteration
            self._step()
        chunk = self._flow.next()
        self._grant()
        return chunk

    def _grant(self) -> None:
        size = self._flow.granted()
        if size:
            self._sandbox._post(self._sandbox._core.took, self._call, size)

    def _step(self) -> None:
        kind, first, second = self._events.get()
        if kind == _core.FACT:
            self._sandbox._tell(self._call, first)
        elif kind == _core.ROOM and self._input is not None:
            self._feed(next(self._input, b""))
        else:
            self._flow.take(kind, first, second)
        if kind == _core.END:
            self._done = self._call.result()

    def _feed(self, data: object) -> None:
        self._flow.has_room = False
        self._sandbox._post(self._sandbox._core.feed, self._call, piece(data))

    def write(self, data: Text) -> None:
        """Input, for a stream with stdin=PIPE. Output that comes meanwhile is held until it is read."""
        self._flow.check_written()
        while not self._flow.has_room and not self._flow.is_over:
            self._step()
        if data and not self._flow.is_over:
            self._feed(data)

    def close_stdin(self) -> None:
        """The end of the input."""
        self._flow.check_written()
        self._flow.is_written = False
        while not self._flow.has_room and not self._flow.is_over:
            self._step()
        if not self._flow.is_over:
            self._feed(b"")

    def signal(self, number: int) -> None:
        self._sandbox._post(self._sandbox._core.signal, self._call, number)

    def resize(self, rows: int, columns: int) -> None:
        self._sandbox._post(self._sandbox._core.resize, self._call, rows, columns)

    def cancel(self) -> None:
        """Ends the command; what it wrote before still comes."""
        self._sandbox._post(self._sandbox._core.cancel, self._call, now())

    @property
    def result(self) -> results.ExecResult:
        """The account; of a command that still runs, after its end: output that was not read is kept in it."""
        for _ in self:
            pass
        done = self._done if self._done is not None else self._call.result()
        assert isinstance(done, results.ExecResult)
        return done

    def close(self) -> None:
        if not self._flow.is_over:
            self._sandbox._post(self._sandbox._core.abandon, self._call, now())
            self._flow.is_over = True

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_call"):
            self.close()


class Sandbox(Handle):
    """A sandbox: opened by its constructor, ended by close() or `with`, or when this process ends.

    Options are the flags of `caisson run`, in the same form: workspace="src:rw", limits={"memory": "1GiB"},
    mounts=["/data:/data:ro"], env={"NAME": "value", "PASSED_ON": None}. What cannot be had is refused; nothing
    weaker is taken. Any number of threads may use one; callbacks run in the thread of their call."""

    def __init__(
        self,
        *,
        policy: Optional[Path] = None,
        tier: Optional[str] = None,
        backend: Optional[str] = None,
        workspace: Optional[Path] = None,
        at: Optional[Path] = None,
        network: Optional[str] = None,
        allow: Optional[Sequence[str]] = None,
        mounts: Optional[Sequence[Text]] = None,
        limits: Optional[Texts] = None,
        env: Optional[Texts] = None,
        tags: Optional[Sequence[str]] = None,
        run_dir: Optional[Path] = None,
        pool: Optional[str] = None,
        no_record: bool = False,
        gates: Optional[Gates] = None,
        start_timeout: float = 60.0,
        program: Optional[str] = None,
        on_violation: Optional[OnViolation] = None,
    ) -> None:
        self._gates = gates_of(gates)
        options = dict(
            policy=policy,
            tier=tier,
            backend=backend,
            workspace=workspace,
            at=at,
            network=network,
            allow=allow,
            mounts=mounts,
            limits=limits,
            env=env,
            tags=tags,
            run_dir=run_dir,
            pool=pool,
            no_record=no_record,
            gates=options_of(self._gates),
        )
        self._on_violation = on_violation
        self._open(None, program, options, start_timeout)

    @classmethod
    def attach(cls, name: str, *, on_violation: Optional[OnViolation] = None) -> "Sandbox":
        """Joins a sandbox of `caisson up`, by its name or its socket's path; close() leaves it running."""
        sandbox = cls.__new__(cls)
        sandbox._on_violation = on_violation
        sandbox._gates = {}
        sandbox._open(name, None, {}, UNREADY_S * 5)
        return sandbox

    def _open(self, attach: Optional[str], program: Optional[str], options: Mapping[str, Any], wait_s: float) -> None:
        self._is_closed = True
        self._loop = loop()
        self._begin(attach, program, options)
        self._is_closed = False
        core, self._turned = self._core, threading.Event()
        core.on_state = self._turned.set
        if self._gates:
            core.on_gate = self._asked
        try:
            self._loop.post(self._loop.add, self._link)
            if not self._turned.wait(wait_s):
                raise too_slow(wait_s)
            if core.error is not None:
                raise core.error
        except BaseException:
            self.close()
            raise
        _open.add(self)

    # ---- calls --------------------------------------------------------------------------------

    def _post(self, function: Callable[..., Any], *args: Any) -> None:
        self._check()
        self._loop.post(self._link.do, function, *args)

    def _asked(self, ref: int, name: str, args: bytes) -> None:
        """A thread a call: others go on, whatever a gate waits for. Never more than the core lets through."""
        threading.Thread(
            target=self._answer, args=(ref, name, args), name=f"caisson-gate-{name}", daemon=True
        ).start()

    def _answer(self, ref: int, name: str, args: bytes) -> None:
        try:
            told = answer(self._gates[name].function(**arguments(args)))
        except Exception as error:
            told = failure(error)
        self._loop.post(self._link.do, self._core.gate_result, ref, *told)

    def _tell(self, call: "Call[Any]", violation: results.Violation) -> None:
        callback = call.op.on_violation
        if callback is not None:
            callback(violation)

    def _call(self, op: "Op[T]", stdin: object = None, cancel: Optional[Cancel] = None) -> T:
        events: "SimpleQueue[Event]" = SimpleQueue()
        call: "Call[T]" = Call(op, events.put)
        call.is_cancelled = cancel is not None and cancel.is_set
        source = pieces_of(stdin) if op.input is _core.PULL else None

        def stop() -> None:
            self._post(self._core.cancel, call, now())

        try:
            self._post(self._core.begin, call, now())
            if cancel is not None:
                cancel._watch(stop)
            while True:
                kind, first, _ = events.get()
                if kind == _core.END:
                    return call.result()
                if kind == _core.FACT:
                    self._tell(call, first)
                elif source is not None:
                    self._post(self._core.feed, call, piece(next(source, b"")))
        except BaseException:
            if not call.is_over:  # a Ctrl-C, or what a callback raised: nobody waits for it any more
                self._post(self._core.abandon, call, now())
            raise
        finally:
            if cancel is not None:
                cancel._unwatch(stop)

    # ---- output as it comes -------------------------------------------------------------------

    def stream(
        self,
        command: Command,
        *,
        cwd: Optional[Path] = None,
        env: Optional[Mapping[str, Text]] = None,
        stdin: "Union[Stdin, Pipe, None]" = None,
        timeout: Optional[float] = None,
        tty: Optional[Tuple[int, int]] = None,
        keep: int = KEEP_DEFAULT,
        on_violation: Optional[OnViolation] = None,
    ) -> Stream:
        """As exec(), but its output comes piece by piece; stdin may be PIPE."""
        op = _ops.exec(
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            tty=tty,
            keep=keep,
            on_violation=on_violation or self._on_violation,
        )
        return Stream(self, op, stdin)

    def follow(self, tag: Text) -> Iterator[Chunk]:
        """Output of a detached command: what is remembered, then what comes, until its end."""
        stream = Stream(self, _ops.logs(tag, follow=True, keep=1), None)
        try:
            yield from stream
        finally:
            stream.close()

    def read_pieces(self, path: Path, *, offset: int = 0, length: Optional[int] = None) -> Iterator[bytes]:
        """A file of any size, piece by piece."""
        stream = Stream(self, _ops.read_pieces(path, offset=offset, length=length), None)
        try:
            for chunk in stream:
                yield chunk.data
            if stream._done:
                yield stream._done
        finally:
            stream.close()

    # ---- commands -----------------------------------------------------------------------------

    def exec(
        self,
        command: Command,
        *,
        cwd: Optional[Path] = None,
        env: Optional[Mapping[str, Text]] = None,
        stdin: Optional[Stdin] = None,
        timeout: Optional[float] = None,
        tty: Optional[Tuple[int, int]] = None,
        keep: int = KEEP_DEFAULT,
        on_violation: Optional[OnViolation] = None,
        cancel: Optional[Cancel] = None,
    ) -> results.ExecResult:
        """Runs a command, text for bash or a list of words, and waits for its end.

        `stdin` is text, bytes, a file, or anything to iterate over; `tty` is (rows, columns) of a terminal for it;
        `keep` bytes of each stream are kept. A status other than 0, a timeout, a kill are results."""
        op = _ops.exec(
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout=timeout,
            tty=tty,
            keep=keep,
            on_violation=on_violation or self._on_violation,
        )
        return self._call(op, stdin, cancel)

    def start(
        self, command: Command, *, tag: Text, cwd: Optional[Path] = None, env: Optional[Mapping[str, Text]] = None
    ) -> results.ExecResult:
        """Starts a command that outlives its call, and is found by its tag: logs(), wait(), kill()."""
        return self._call(_ops.start(command, tag=tag, cwd=cwd, env=env))

    def ps(self) -> Tuple[results.Process, ...]:
        """Commands that run, and detached ones that ended."""
        return self._call(_ops.ps())

    def logs(
        self, tag: Text, *, follow: bool = False, keep: int = KEEP_DEFAULT, cancel: Optional[Cancel] = None
    ) -> results.Logs:
        """Output of a detached command, as far as it is remembered; with `follow`, until its end."""
        return self._call(_ops.logs(tag, follow=follow, keep=keep), None, cancel)

    def wait(
        self,
        tag: Text,
        *,
        port: Optional[int] = None,
        line: Optional[Text] = None,
        text: Optional[Text] = None,
        timeout: Optional[float] = None,
        forget: bool = False,
        cancel: Optional[Cancel] = None,
    ) -> results.Waited:
        """Waits for a detached command: until somebody listens on `port`, it writes a line that the POSIX extended
        expression `line` matches or that contains `text`, or its end. The time's end is a result."""
        op = _ops.wait(tag, port=port, line=line, text=text, timeout=timeout, forget=forget)
        return self._call(op, None, cancel)

    def kill(self, tag: Text, signal: Optional[int] = None) -> None:
        """Signals a command; None: TERM to its tree, and KILL after 500 ms."""
        self._call(_ops.kill(tag, signal))

    # ---- files --------------------------------------------------------------------------------

    def read(
        self,
        path: Path,
        *,
        offset: int = 0,
        length: Optional[int] = None,
        timeout: Optional[float] = None,
        cancel: Optional[Cancel] = None,
    ) -> bytes:
        """A file's bytes: all of them up to 64 MiB, or `length` from `offset`."""
        return self._call(_ops.read(path, offset=offset, length=length, timeout=timeout), None, cancel)

    def read_text(self, path: Path) -> str:
        """A file as text; what is no UTF-8 is replaced."""
        return self.read(path).decode("utf-8", "replace")

    def write(
        self,
        path: Path,
        content: Stdin,
        *,
        mode: Optional[int] = None,
        timeout: Optional[float] = None,
        cancel: Optional[Cancel] = None,
    ) -> None:
        """Replaces a file, whole or not at all. Its folders are made."""
        self._call(_ops.write(path, content, mode=mode, timeout=timeout), content, cancel)

    def edit(self, path: Path, old: Text, new: Text, *, timeout: Optional[float] = None) -> results.Edited:
        """Replaces a text where it occurs exactly once; else counts it and changes nothing."""
        return self._call(_ops.edit(path, old, new, timeout=timeout))

    def stat(self, path: Path) -> results.Stat:
        """What a path is; links are not followed."""
        return self._call(_ops.stat(path))

    def list(self, path: Path = ".") -> results.Listing:
        """A folder, sorted by name."""
        return self._call(_ops.list_(path))

    def remove(self, path: Path, *, recursive: bool = False) -> None:
        """Removes a file, a link, or a folder: with its content only if `recursive`."""
        self._call(_ops.remove(path, recursive))

    def move(self, path: Path, to: Path) -> None:
        """Renames; what had the new name is replaced."""
        self._call(_ops.move(path, to))

    # ---- search -------------------------------------------------------------------------------

    def glob(
        self,
        pattern: Text,
        *,
        cwd: Optional[Path] = None,
        limit: Optional[int] = None,
        timeout: Optional[float] = None,
        cancel: Optional[Cancel] = None,
    ) -> results.Globbed:
        """Paths that match, with `**` and braces; 1000 unless there is a limit."""
        return self._call(_ops.glob(pattern, cwd=cwd, limit=limit, timeout=timeout), None, cancel)

    def grep(
        self,
        pattern: Text,
        path: Optional[Path] = None,
        *,
        glob: Optional[Text] = None,
        ignore_case: bool = False,
        limit: Optional[int] = None,
        context: Optional[int] = None,
        timeout: Optional[float] = None,
        cancel: Optional[Cancel] = None,
    ) -> results.Grepped:
        """Lines that a regular expression matches, in a file or a folder."""
        op = _ops.grep(
            pattern, path, glob=glob, ignore_case=ignore_case, limit=limit, context=context, timeout=timeout
        )
        return self._call(op, None, cancel)

    # ---- the workspace ------------------------------------------------------------------------

    def mount(self, host: Path, at: Path, *, writable: bool = False) -> None:
        """Lends one more path of the host, from beneath the policy's `mount_roots`."""
        self._call(_ops.mount(host, at, writable))

    def diff(
        self,
        paths: Optional[Iterable[Path]] = None,
        *,
        names_only: bool = False,
        keep: int = KEEP_DEFAULT,
        timeout: Optional[float] = None,
    ) -> results.Diff:
        """What a copy-on-write workspace changed: all, or these paths."""
        return self._call(_ops.diff(paths, names_only, keep, timeout))

    def commit(
        self,
        paths: Optional[Iterable[Path]] = None,
        *,
        force: bool = False,
        dry_run: bool = False,
        timeout: Optional[float] = None,
    ) -> results.Committed:
        """Writes that to the workspace itself, each file in one step."""
        return self._call(_ops.commit(paths, force, dry_run, timeout))

    def snapshot(self, tag: Text) -> results.Copied:
        """Keeps what changed so far, under a tag."""
        return self._call(_ops.snapshot(tag))

    def fork(self, name: Text, tag: Optional[Text] = None) -> results.Copied:
        """Starts another sandbox with those changes, or a snapshot's; attach() joins it by its name."""
        return self._call(_ops.fork(name, tag))

    def stats(self) -> results.Stats:
        """What the sandbox is and uses, now."""
        return self._call(_ops.stats())

    # ---- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends it, and waits until nothing of it is left; leaves one of attach(). Again is fine."""
        if self._is_closed or os.getpid() != self._pid:
            return
        self._is_closed = True
        _open.discard(self)
        was_ready, over = self._core.is_ready, threading.Event()
        self._core.on_state = over.set
        if was_ready and self._core.is_owner:
            self._loop.post(self._link.do, self._core.stop)
            if self._core.error is None:
                over.wait(STOP_S)
        self._hang_up()
        self._child.reap(REAP_S if was_ready else UNREADY_S)

    def _hang_up(self) -> None:
        gone = threading.Event()
        self._loop.post(self._loop.drop, self._link)
        self._loop.post(self._link.do, self._core.end, "")
        self._loop.post(gone.set)
        gone.wait(STOP_S)
        self._child.hang_up()

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], where: Optional[TracebackType]
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_is_closed", True) or os.getpid() != self._pid:
            return
        warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=2)
        # Nothing waits here; the end of its stream ends the sandbox.
        self._is_closed = True
        link, child, its_loop = self._link, self._child, self._loop
        its_loop.post(its_loop.drop, link)
        its_loop.post(child.hang_up)


_open: "weakref.WeakSet[Sandbox]" = weakref.WeakSet()


def _at_exit() -> None:
    for sandbox in list(_open):
        sandbox.close()


atexit.register(_at_exit)
