"""The client for asyncio, against the built program."""

from __future__ import annotations

import asyncio
import gc
import pathlib
from typing import Any, AsyncIterator, Callable, Coroutine, List

import pytest

import caisson


@pytest.fixture
def told(workspace: pathlib.Path) -> Callable[[Callable[[caisson.AsyncSandbox], Coroutine[Any, Any, None]]], None]:
    """Runs a coroutine with a sandbox."""

    def tell(story: Callable[[caisson.AsyncSandbox], Coroutine[Any, Any, None]]) -> None:
        async def main() -> None:
            async with caisson.AsyncSandbox(workspace=f"{workspace}:rw", network="none", no_record=True) as sandbox:
                await story(sandbox)

        asyncio.run(asyncio.wait_for(main(), 50))

    return tell


def test_calls(told: Any) -> None:
    async def story(sandbox: caisson.AsyncSandbox) -> None:
        assert (await sandbox.exec("cat; exit 3", stdin="in")).stdout == b"in"
        await sandbox.write("a", b"x" * 300000)
        assert len(await sandbox.read("a")) == 300000
        assert b"".join([piece async for piece in sandbox.read_pieces("a")]) == b"x" * 300000
        with pytest.raises(caisson.NotFound):
            await sandbox.stat("none")

    told(story)


def test_streams(told: Any) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for i in range(3):
            await asyncio.sleep(0)
            yield b"%d\n" % i

    async def story(sandbox: caisson.AsyncSandbox) -> None:
        assert (await sandbox.exec("cat", stdin=pieces())).stdout == b"0\n1\n2\n"
        async with sandbox.stream("read line; echo $line; yes", stdin=caisson.PIPE) as stream:
            await stream.write("hello\n")
            async for chunk in stream:
                assert chunk.data.startswith(b"hello\n")
                break
        while await sandbox.ps():
            await asyncio.sleep(0.02)
        await sandbox.start("echo a; sleep 0.1; echo b", tag="t")
        assert [chunk.text async for chunk in sandbox.follow("t")] == ["a\n", "b\n"]
        stream = sandbox.stream("echo x; exit 4")
        assert (await stream.result()).exit_code == 4

    told(story)


def test_ten_thousand_calls_at_once(told: Any) -> None:
    async def story(sandbox: caisson.AsyncSandbox) -> None:
        await sandbox.write("a", "content")
        execs = [sandbox.exec(["echo", str(i)]) for i in range(200)]
        done = await asyncio.gather(*(sandbox.stat("a") for _ in range(10000)), *execs)
        assert all(item.size == 7 for item in done[:10000])
        assert [item.stdout for item in done[10000:]] == [b"%d\n" % i for i in range(200)]

    told(story)


def test_a_cancelled_task_cancels_its_command(told: Any) -> None:
    async def story(sandbox: caisson.AsyncSandbox) -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(sandbox.exec("sleep 30"), 0.2)
        while await sandbox.ps():
            await asyncio.sleep(0.02)
        token = caisson.Cancel()
        asyncio.get_running_loop().call_later(0.1, token.cancel)
        assert (await sandbox.exec("sleep 30", cancel=token)).termination.reason == "cancelled"

    told(story)


def test_violations(told: Any) -> None:
    heard: List[caisson.Violation] = []

    async def story(sandbox: caisson.AsyncSandbox) -> None:
        await sandbox.exec("touch /usr/x", on_violation=heard.append)

    told(story)
    assert [item.event for item in heard] == ["FilesystemWriteViolation"]


def test_it_is_lost(told: Any) -> None:
    async def story(sandbox: caisson.AsyncSandbox) -> None:
        assert sandbox._child.process is not None
        asyncio.get_running_loop().call_later(0.1, sandbox._child.process.kill)
        with pytest.raises(caisson.Lost, match="killed"):
            await sandbox.exec("sleep 30")

    told(story)


def test_a_loop_that_is_closed(workspace: pathlib.Path) -> None:
    async def main() -> caisson.AsyncSandbox:
        return await caisson.AsyncSandbox(workspace=f"{workspace}:rw", no_record=True)

    sandbox = asyncio.run(main())
    process = sandbox._child.process
    with pytest.raises(caisson.Invalid, match="event loop"):
        asyncio.run(sandbox.exec("true"))
    with pytest.warns(ResourceWarning):
        del sandbox
        gc.collect()
    assert process is not None and process.wait(10) == 0


def test_it_has_to_be_open(workspace: pathlib.Path) -> None:
    async def main() -> None:
        sandbox = caisson.AsyncSandbox(workspace=f"{workspace}:rw", no_record=True)
        with pytest.raises(caisson.Invalid, match="not open"):
            await sandbox.exec("true")
        await sandbox.close()

    asyncio.run(main())
