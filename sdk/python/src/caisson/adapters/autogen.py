"""A sandbox as a code executor of AutoGen: `CodeExecutorAgent("runner", code_executor=CaissonExecutor(…))`."""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List, Optional

from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult

from .. import AsyncSandbox

_LANGUAGES = {
    "python": ["python3", "-"],
    "py": ["python3", "-"],
    "bash": ["bash", "-s"],
    "sh": ["sh", "-s"],
    "shell": ["bash", "-s"],
}


class CaissonExecutor(CodeExecutor):
    """Runs blocks of Python and shell in a sandbox of its own; options are AsyncSandbox's. Files stay until restart()
    only as far as the workspace is the host's; variables do not carry over."""

    def __init__(self, *, timeout: float = 60, **options: Any) -> None:
        self._timeout, self._options = timeout, options
        self._sandbox: Optional[AsyncSandbox] = None

    async def start(self) -> None:
        if self._sandbox is None:
            self._sandbox = await AsyncSandbox(**self._options)

    async def stop(self) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            await sandbox.close()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def execute_code_blocks(
        self, code_blocks: List[CodeBlock], cancellation_token: CancellationToken
    ) -> CodeResult:
        await self.start()
        output: List[str] = []
        status = 0
        for block in code_blocks:
            task = asyncio.ensure_future(self._run(block, output))
            cancellation_token.link_future(task)
            status = await task
            if status != 0:
                break
        return CodeResult(exit_code=status, output="\n".join(filter(None, output)))

    async def _run(self, block: CodeBlock, output: List[str]) -> int:
        argv = _LANGUAGES.get(block.language.lower())
        if argv is None:
            raise ValueError(f"language {block.language!r} is none of {', '.join(sorted(_LANGUAGES))}")
        assert self._sandbox is not None
        done = await self._sandbox.exec(argv, stdin=block.code, timeout=self._timeout)
        output.append(done.text)
        output.extend(violation.say for violation in done.violations if not violation.expected)
        if done.termination.reason == "timeout":
            raise asyncio.TimeoutError(f"the code took longer than {self._timeout:g} s")
        if done.termination.text:
            output.append(done.termination.text)
        return done.exit_code if done.exit_code is not None else 128 + (done.signal or 0)

    def _to_config(self) -> Any:
        raise NotImplementedError("a sandbox's options are not written to a component's configuration")

    @classmethod
    def _from_config(cls, config: Dict[str, Any]) -> "CaissonExecutor":
        raise NotImplementedError("a sandbox's options are not read from a component's configuration")
