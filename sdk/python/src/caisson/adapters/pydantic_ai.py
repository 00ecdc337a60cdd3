"""A sandbox as a toolset of Pydantic AI: `Agent(model, toolsets=[toolset(sandbox)])`."""

from __future__ import annotations

from typing import Awaitable, List, Optional, TypeVar

from pydantic_ai import ModelRetry
from pydantic_ai.toolsets import FunctionToolset

from .. import AsyncSandbox, CaissonError

T = TypeVar("T")
_READ_MAX = 256 << 10


async def _told(call: "Awaitable[T]") -> T:
    """What could not be done is told to the model, which may ask otherwise."""
    try:
        return await call
    except CaissonError as error:
        raise ModelRetry(str(error)) from error


def toolset(sandbox: AsyncSandbox, *, timeout: Optional[float] = None) -> "FunctionToolset[None]":
    """Tools named run, read, write, edit, glob and grep, behind the sandbox's wall."""

    async def run(command: str) -> str:
        """Run a bash command; returns its output, and its status if that is not 0."""
        done = await _told(sandbox.exec(command, timeout=timeout))
        notes = [violation.say for violation in done.violations if not violation.expected]
        if done.termination.text:
            notes.append(done.termination.text)
        if not done.ok:
            notes.append(f"[{done.termination.reason}, status {done.exit_code}]")
        return "\n".join(filter(None, [done.text, *notes]))

    async def read(path: str) -> str:
        """Read a text file, at most 256 KiB of it."""
        return (await _told(sandbox.read(path, length=_READ_MAX))).decode("utf-8", "replace")

    async def write(path: str, content: str) -> str:
        """Write a whole file; missing folders are made."""
        await _told(sandbox.write(path, content))
        return f"wrote {path}"

    async def edit(path: str, old: str, new: str) -> str:
        """Replace a text that occurs exactly once in a file."""
        done = await _told(sandbox.edit(path, old, new))
        if not done.ok:
            raise ModelRetry(f"the old text occurs {done.occurrences} times in {path}; it has to be there once")
        return f"changed {path}"

    async def glob(pattern: str) -> List[str]:
        """List paths that match a pattern like src/**/*.py."""
        return list((await _told(sandbox.glob(pattern))).paths)

    async def grep(pattern: str, path: str = ".") -> List[str]:
        """Find lines that match a regular expression; as path:line:text."""
        found = await _told(sandbox.grep(pattern, path, limit=200))
        return [f"{match.path}:{match.line_number}:{match.text}" for match in found.matches]

    return FunctionToolset([run, read, write, edit, glob, grep])
