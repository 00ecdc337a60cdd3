"""A sandbox as tools of CrewAI: `Agent(role="coder", …, tools=tools(sandbox))`."""

# CrewAI reads the annotations of functions as types: they are no texts here.
import functools
from typing import Callable, List, Optional

from crewai.tools import BaseTool, tool

from .. import CaissonError, Sandbox

_READ_MAX = 256 << 10


def _told(function: "Callable[..., str]") -> "Callable[..., str]":
    """What could not be done is told to the model, which may ask otherwise."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> str:
        try:
            return function(*args, **kwargs)
        except CaissonError as error:
            return f"error: {error}"

    return call


def tools(sandbox: Sandbox, *, timeout: Optional[float] = None) -> "List[BaseTool]":
    """Tools named run, read, write, edit, glob and grep, behind the sandbox's wall. Closing it stays with who opened it."""

    def run(command: str) -> str:
        """Run a bash command; returns its output, and its status if that is not 0."""
        done = sandbox.exec(command, timeout=timeout)
        notes = [violation.say for violation in done.violations if not violation.expected]
        if done.termination.text:
            notes.append(done.termination.text)
        if not done.ok:
            notes.append(f"[{done.termination.reason}, status {done.exit_code}]")
        return "\n".join(filter(None, [done.text, *notes]))

    def read(path: str) -> str:
        """Read a text file, at most 256 KiB of it."""
        return sandbox.read(path, length=_READ_MAX).decode("utf-8", "replace")

    def write(path: str, content: str) -> str:
        """Write a whole file; missing folders are made."""
        sandbox.write(path, content)
        return f"wrote {path}"

    def edit(path: str, old: str, new: str) -> str:
        """Replace a text that occurs exactly once in a file."""
        done = sandbox.edit(path, old, new)
        if not done.ok:
            return f"error: the old text occurs {done.occurrences} times in {path}; it has to be there once"
        return f"changed {path}"

    def glob(pattern: str) -> str:
        """List paths that match a pattern like src/**/*.py, one a line."""
        return "\n".join(sandbox.glob(pattern).paths)

    def grep(pattern: str, path: str = ".") -> str:
        """Find lines that match a regular expression; as path:line:text."""
        found = sandbox.grep(pattern, path, limit=200)
        return "\n".join(f"{match.path}:{match.line_number}:{match.text}" for match in found.matches)

    made: "List[BaseTool]" = [tool(each.__name__)(_told(each)) for each in (run, read, write, edit, glob, grep)]
    for each in made:
        each.cache_function = _never
    return made


def _never(_args: object = None, _result: object = None) -> bool:
    """The same call has another answer after a file was changed."""
    return False
