from typing import Any, Awaitable, Callable, Literal

from .tool import ShellCommandRequest, ShellResult

def apply_diff(input: str, diff: str, mode: Literal["default", "create"] = "default") -> str: ...

class ShellTool:
    def __init__(self, executor: Callable[[ShellCommandRequest], Awaitable[ShellResult]]) -> None: ...

class ApplyPatchTool:
    editor: Any
    def __init__(self, editor: Any) -> None: ...
