"""The client for asyncio. The same calls as _sandbox.py, made from the same operations."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import warnings
from types import TracebackType
from typing import (
    IO,
    Any,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    Type,
    TypeVar,
    Union,
)

from . import _core, _ops
from . import _results as results
from ._base import Cancel, Flow, Handle, piece, pieces_of, too_slow
from ._core import Call, Event, Op, Pipe
from ._errors import Invalid
from ._gates import Gates, answer, arguments, failure, gates_of, options_of
from ._link import REAP_S, STOP_S, UNREADY_S, now
from ._ops import Command, OnViolation, Path, Text, Texts
from ._results import KEEP_DEFAULT, Chunk

T = TypeVar("T")
Stdin = Union[str, bytes, IO[bytes], IO[str], Iterable[Text], "AsyncIterator[Text]"]


class _Input:
    """The next piece of what a caller gave as input, which may be asynchronous itself."""

    def __init__(self, source: object) -> None:
        self._async = source.__aiter__() if hasattr(source, "__aiter__") else None
        self._sync = None if self._async is not None else pieces_of(source)

    async def next(self) -> bytes:
        if self._async is not None:
            try:
                return piece(await self._async.__anext__())
            except StopAsyncIteration:
                return b""
        assert self._sync is not None
        return piece(next(self._sync, b""))


class AsyncStream:
    """A command that runs, as an asynchronous iterator over its output. Leaving its `async with`, or close(),
    cancels it. After the last piece `await result()` has its account."""

    def __init__(self, sandbox: "AsyncSandbox", op: "Op[T]", stdin: object) -> None:
        self._sandbox, self._flow = sandbox, Flow(op)
        self._events: "asyncio.Queue[Event]" = asyncio.Queue()
        self._call: "Call[Any]" = Call(op, self._events.put_nowait, True)
        self._input = _Input(stdin) if op.input is _core.PULL and stdin is not _core.PULL else None
        self._flow.is_written = stdin is _core.PULL
        self._done: Any = None
        sandbox._check()
        sandbox._do(sandbox._core.begin, self._call, now())

    def __aiter__(self) -> "AsyncStream":
        return self

    async def __anext__(self) -> Chunk:
        while not self._flow.chunks:
            if self._flow.is_over:
                raise StopAsyncIteration
            await self._step()
        chunk = self._flow.next()
        self._grant()
        return chunk

    def _grant(self) -> None:
        size = self._flow.granted()
        if size:
            self._sandbox._do(self._sandbox._core.took, self._call, size)

    async def _step(self) -> None:
        kind, first, second = await self._events.get()
        if kind == _core.FACT:
            self._sandbox._tell(self._call, first)
        elif kind == _core.ROOM and self._input is not None:
            self._feed(await self._input.next())
        else:
            self._flow.take(kind, first, second)
        if kind == _core.END:
            self._done = self._call.result()

    def _feed(self, data: object) -> None:
        self._flow.has_room = False
        self._sandbox._do(self._sandbox._core.feed, self._call, piece(data))

    async def write(self, data: Text) -> None:
        """Input, for a stream with stdin=PIPE. Output that comes meanwhile is held until it is read."""
        self._flow.check_written()
        while not self._flow.has_room and not self._flow.is_over:
            await self._step()
        if data and not self._flow.is_over:
            self._feed(data)

    async def close_stdin(self) -> None:
        """The end of the input."""
        self._flow.check_written()
        self._flow.is_written = False
        while not self._flow.has_room and not self._flow.is_over:
            await self._step()
        if not self._flow.is_over:
            self._feed(b"")

    def signal(self, number: int) -> None:
        self._sandbox._do(self._sandbox._core.signal, self._call, number)

    def resize(self, rows: int, columns: int) -> None:
        self._sandbox._do(self._sandbox._core.resize, self._call, rows, columns)

    def cancel(self) -> None:
        """Ends the command; what it wrote before still comes."""
        self._sandbox._do(self._sandbox._core.cancel, self._call, now())

    async def result(self) -> results.ExecResult:
        """The account; of a command that still runs, after its end: output that was not read is kept in it."""
        async for _ in self:
            pass
        done = self._done if self._done is not None else self._call.result()
        assert isinstance(done, results.ExecResult)
        return done

    def close(self) -> None:
        if not self._flow.is_over:
            self._flow.is_over = True
            self._sandbox._do(self._sandbox._core.abandon, self._call, now())

    async def __aenter__(self) -> "AsyncStream":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class AsyncSandbox(Handle):
    """A sandbox in an event loop: `async with AsyncSandbox(…) as sandbox`, or `sandbox = await AsyncSandbox(…)` and
    `await sandbox.close()`. Options are those of Sandbox. A call whose task is cancelled is cancelled behind the
    wall as well. It belongs to the loop in which it was opened."""

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
        self._how: "Tuple[Optional[str], Optional[str], Mapping[str, Any], float]"
        self._how = (None, program, options, start_timeout)
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._is_closed = True

    @classmethod
    def attach(cls, name: str, *, on_violation: Optional[OnViolation] = None) -> "AsyncSandbox":
        """Joins a sandbox of `caisson up` when it is awaited; close() leaves it running."""
        sandbox = cls(on_violation=on_violation)
        sandbox._how = (name, None, {}, UNREADY_S * 5)
        return sandbox

    async def _open(self) -> "AsyncSandbox":
        if self._loop is not None:
            raise Invalid("this sandbox was opened already", "invalid", "open")
        self._loop = asyncio.get_running_loop()
        attach, program, options, wait_s = self._how
        self._begin(attach, program, options)
        self._is_closed = False
        self._is_writing = False
        self._answering: "Set[asyncio.Task[None]]" = set()
        self._timer: Optional[asyncio.TimerHandle] = None
        core, turned = self._core, asyncio.Event()
        core.on_state = turned.set
        if self._gates:
            core.on_gate = self._asked
        try:
            self._loop.add_reader(self._link.sock.fileno(), self._readable)
            self._flush()
            try:
                await asyncio.wait_for(turned.wait(), wait_s)
            except asyncio.TimeoutError:
                raise too_slow(wait_s) from None
            if core.error is not None:
                raise core.error
        except BaseException:
            await self.close()
            raise
        return self

    def __await__(self) -> "Generator[Any, None, AsyncSandbox]":
        return self._open().__await__()

    async def __aenter__(self) -> "AsyncSandbox":
        return self if self._loop is not None else await self._open()

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], where: Optional[TracebackType]
    ) -> None:
        await self.close()

    # ---- the loop -----------------------------------------------------------------------------

    def _readable(self) -> None:
        try:
            self._link.readable()
        except Exception as error:  # a defect of ours must not leave anybody waiting
            self._core.lose(f"the Python package failed: {error!r}")
        self._look()

    def _flush(self) -> None:
        self._link.flush()
        self._look()

    def _expire(self) -> None:
        self._timer = None
        self._link.expire()
        self._look()

    def _look(self) -> None:
        """What the loop is to wake us for from now on."""
        loop, fd = self._loop, self._link.sock.fileno()
        assert loop is not None
        if fd < 0:
            return
        if self._link.has_ended:
            loop.remove_reader(fd)
        if self._link.wants_write() != self._is_writing:
            self._is_writing = not self._is_writing
            if self._is_writing:
                loop.add_writer(fd, self._flush)
            else:
                loop.remove_writer(fd)
        left_s = self._link.left_s()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if left_s is not None:
            self._timer = loop.call_later(left_s, self._expire)

    def _check(self) -> None:
        if self._loop is None:
            raise Invalid("this sandbox is not open: `async with` it, or await it", "invalid", "open")
        super()._check()

    def _do(self, function: Callable[..., Any], *args: Any) -> None:
        self._check()
        if asyncio.get_running_loop() is not self._loop:
            raise Invalid("this sandbox belongs to another event loop: open one here", "invalid", "open")
        self._link.do(function, *args)
        self._look()

    # ---- calls --------------------------------------------------------------------------------

    def _asked(self, ref: int, name: str, args: bytes) -> None:
        assert self._loop is not None
        task = self._loop.create_task(self._answer(ref, name, args))
        self._answering.add(task)  # a loop keeps no task alive
        task.add_done_callback(self._answering.discard)

    async def _answer(self, ref: int, name: str, args: bytes) -> None:
        assert self._loop is not None
        try:
            function, given = self._gates[name].function, arguments(args)
            if inspect.iscoroutinefunction(function):
                value = await function(**given)
            else:
                value = await self._loop.run_in_executor(None, functools.partial(function, **given))
            told = answer(value)
        except Exception as error:
            told = failure(error)
        if not self._is_closed:
            self._do(self._core.gate_result, ref, *told)

    def _tell(self, call: "Call[Any]", violation: results.Violation) -> None:
        callback = call.op.on_violation
        if callback is not None:
            callback(violation)

    async def _call(self, op: "Op[T]", stdin: object = None, cancel: Optional[Cancel] = None) -> T:
        self._check()
        events: "asyncio.Queue[Event]" = asyncio.Queue()
        call: "Call[T]" = Call(op, events.put_nowait)
        call.is_cancelled = cancel is not None and cancel.is_set
        source = _Input(stdin) if op.input is _core.PULL else None

        def stop() -> None:
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._do, self._core.cancel, call, now())

        self._do(self._core.begin, call, now())
        try:
            if cancel is not None:
                cancel._watch(stop)
            while True:
                kind, first, _ = await events.get()
                if kind == _core.END:
                    return call.result()
                if kind == _core.FACT:
                    self._tell(call, first)
                elif source is not None:
                    self._do(self._core.feed, call, await source.next())
        except BaseException:
            if not call.is_over:  # its task was cancelled, or what a callback raised
                self._do(self._core.abandon, call, now())
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
    ) -> AsyncStream:
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
        return AsyncStream(self, op, stdin)

    async def follow(self, tag: Text) -> AsyncIterator[Chunk]:
        """Output of a detached command: what is remembered, then what comes, until its end."""
        stream = AsyncStream(self, _ops.logs(tag, follow=True, keep=1), None)
        try:
            async for chunk in stream:
                yield chunk
        finally:
            stream.close()

    async def read_pieces(self, path: Path, *, offset: int = 0, length: Optional[int] = None) -> AsyncIterator[bytes]:
        """A file of any size, piece by piece."""
        stream = AsyncStream(self, _ops.read_pieces(path, offset=offset, length=length), None)
        try:
            async for chunk in stream:
                yield chunk.data
            if stream._done:
                yield stream._done
        finally:
            stream.close()

    # ---- commands -----------------------------------------------------------------------------

    async def exec(
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
        return await self._call(op, stdin, cancel)

    async def start(
        self, command: Command, *, tag: Text, cwd: Optional[Path] = None, env: Optional[Mapping[str, Text]] = None
    ) -> results.ExecResult:
        """Starts a command that outlives its call, and is found by its tag: logs(), wait(), kill()."""
        return await self._call(_ops.start(command, tag=tag, cwd=cwd, env=env))

    async def ps(self) -> Tuple[results.Process, ...]:
        """Commands that run, and detached ones that ended."""
        return await self._call(_ops.ps())

    async def logs(
        self, tag: Text, *, follow: bool = False, keep: int = KEEP_DEFAULT, cancel: Optional[Cancel] = None
    ) -> results.Logs:
        """Output of a detached command, as far as it is remembered; with `follow`, until its end."""
        return await self._call(_ops.logs(tag, follow=follow, keep=keep), None, cancel)

    async def wait(
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
        return await self._call(op, None, cancel)

    async def kill(self, tag: Text, signal: Optional[int] = None) -> None:
        """Signals a command; None: TERM to its tree, and KILL after 500 ms."""
        await self._call(_ops.kill(tag, signal))

    # ---- files --------------------------------------------------------------------------------

    async def read(
        self,
        path: Path,
        *,
        offset: int = 0,
        length: Optional[int] = None,
        timeout: Optional[float] = None,
        cancel: Optional[Cancel] = None,
    ) -> bytes:
        """A file's bytes: all of them up to 64 MiB, or `length` from `offset`."""
        return await self._call(_ops.read(path, offset=offset, length=length, timeout=timeout), None, cancel)

    async def read_text(self, path: Path) -> str:
        """A file as text; what is no UTF-8 is replaced."""
        return (await self.read(path)).decode("utf-8", "replace")

    async def write(
        self,
        path: Path,
        content: Stdin,
        *,
        mode: Optional[int] = None,
        timeout: Optional[float] = None,
        cancel: Optional[Cancel] = None,
    ) -> None:
        """Replaces a file, whole or not at all. Its folders are made."""
        await self._call(_ops.write(path, content, mode=mode, timeout=timeout), content, cancel)

    async def edit(self, path: Path, old: Text, new: Text, *, timeout: Optional[float] = None) -> results.Edited:
        """Replaces a text where it occurs exactly once; else counts it and changes nothing."""
        return await self._call(_ops.edit(path, old, new, timeout=timeout))

    async def stat(self, path: Path) -> results.Stat:
        """What a path is; links are not followed."""
        return await self._call(_ops.stat(path))

    async def list(self, path: Path = ".") -> results.Listing:
        """A folder, sorted by name."""
        return await self._call(_ops.list_(path))

    async def remove(self, path: Path, *, recursive: bool = False) -> None:
        """Removes a file, a link, or a folder: with its content only if `recursive`."""
        await self._call(_ops.remove(path, recursive))

    async def move(self, path: Path, to: Path) -> None:
        """Renames; what had the new name is replaced."""
        await self._call(_ops.move(path, to))

    # ---- search -------------------------------------------------------------------------------

    async def glob(
        self,
        pattern: Text,
        *,
        cwd: Optional[Path] = None,
        limit: Optional[int] = None,
        timeout: Optional[float] = None,
        cancel: Optional[Cancel] = None,
    ) -> results.Globbed:
        """Paths that match, with `**` and braces; 1000 unless there is a limit."""
        return await self._call(_ops.glob(pattern, cwd=cwd, limit=limit, timeout=timeout), None, cancel)

    async def grep(
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
        return await self._call(op, None, cancel)

    # ---- the workspace ------------------------------------------------------------------------

    async def mount(self, host: Path, at: Path, *, writable: bool = False) -> None:
        """Lends one more path of the host, from beneath the policy's `mount_roots`."""
        await self._call(_ops.mount(host, at, writable))

    async def diff(
        self,
        paths: Optional[Iterable[Path]] = None,
        *,
        names_only: bool = False,
        keep: int = KEEP_DEFAULT,
        timeout: Optional[float] = None,
    ) -> results.Diff:
        """What a copy-on-write workspace changed: all, or these paths."""
        return await self._call(_ops.diff(paths, names_only, keep, timeout))

    async def commit(
        self,
        paths: Optional[Iterable[Path]] = None,
        *,
        force: bool = False,
        dry_run: bool = False,
        timeout: Optional[float] = None,
    ) -> results.Committed:
        """Writes that to the workspace itself, each file in one step."""
        return await self._call(_ops.commit(paths, force, dry_run, timeout))

    async def snapshot(self, tag: Text) -> results.Copied:
        """Keeps what changed so far, under a tag."""
        return await self._call(_ops.snapshot(tag))

    async def fork(self, name: Text, tag: Optional[Text] = None) -> results.Copied:
        """Starts another sandbox with those changes, or a snapshot's; attach() joins it by its name."""
        return await self._call(_ops.fork(name, tag))

    async def stats(self) -> results.Stats:
        """What the sandbox is and uses, now."""
        return await self._call(_ops.stats())

    # ---- the end ------------------------------------------------------------------------------

    async def close(self) -> None:
        """Ends it, and waits until nothing of it is left; leaves one of attach(). Again is fine."""
        loop = self._loop
        if self._is_closed or loop is None or os.getpid() != self._pid:
            return
        self._is_closed = True
        was_ready, over = self._core.is_ready, asyncio.Event()
        self._core.on_state = over.set
        try:
            if was_ready and self._core.is_owner and self._core.error is None:
                self._do(self._core.stop)
                try:
                    await asyncio.wait_for(over.wait(), STOP_S)
                except asyncio.TimeoutError:
                    pass
        finally:
            self._hang_up()
        await loop.run_in_executor(None, self._child.reap, REAP_S if was_ready else UNREADY_S)

    def _hang_up(self) -> None:
        """Without waiting: whoever has no caller ends."""
        fd, loop = self._link.sock.fileno(), self._loop
        if loop is not None and not loop.is_closed() and fd >= 0:
            loop.remove_reader(fd)
            loop.remove_writer(fd)
            if self._timer is not None:
                self._timer.cancel()
            self._core.end("")
        self._child.hang_up()

    def __del__(self) -> None:
        if getattr(self, "_is_closed", True) or os.getpid() != self._pid:
            return
        warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=2)
        self._is_closed = True
        self._hang_up()
