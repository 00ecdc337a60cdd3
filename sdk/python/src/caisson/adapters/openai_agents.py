"""A sandbox behind the shell and the patch tool of the OpenAI Agents SDK.

Agent(name="coder", tools=[shell_tool(sandbox), patch_tool(sandbox)])
"""

from __future__ import annotations

from typing import Literal, Optional

from agents import ApplyPatchTool, ShellTool, apply_diff
from agents.editor import ApplyPatchOperation, ApplyPatchResult
from agents.tool import ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult

from .. import AsyncSandbox, CaissonError, ExecResult


def _output(command: str, done: ExecResult) -> ShellCommandOutput:
    notes = [violation.say for violation in done.violations if not violation.expected]
    if done.termination.text:
        notes.append(done.termination.text)
    is_late = done.termination.reason == "timeout"
    status = done.exit_code if done.exit_code is not None else 128 + (done.signal or 0)
    return ShellCommandOutput(
        command=command,
        stdout=done.stdout.decode("utf-8", "replace"),
        stderr="\n".join([done.stderr.decode("utf-8", "replace"), *notes]).strip("\n"),
        outcome=ShellCallOutcome(type="timeout") if is_late else ShellCallOutcome(type="exit", exit_code=status),
    )


def shell_tool(sandbox: AsyncSandbox, *, timeout: Optional[float] = None) -> ShellTool:
    """The shell tool: each command of a call runs in the sandbox, in order; a timeout ends the call."""

    async def execute(request: ShellCommandRequest) -> ShellResult:
        action, outputs = request.data.action, []
        limit = action.timeout_ms / 1000 if action.timeout_ms else timeout
        for command in action.commands:
            done = await sandbox.exec(command, timeout=limit)
            outputs.append(_output(command, done))
            if done.termination.reason == "timeout":
                break
        return ShellResult(output=outputs, max_output_length=action.max_output_length)

    return ShellTool(executor=execute)


class PatchEditor:
    """What the patch tool does to files, by the sandbox's own verbs: a path that leads out is refused there."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox

    async def create_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._write(operation, "", "create")

    async def update_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        try:
            old = (await self._sandbox.read(operation.path)).decode("utf-8")
        except (CaissonError, UnicodeDecodeError) as error:
            return ApplyPatchResult(status="failed", output=str(error))
        return await self._write(operation, old, "default")

    async def delete_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        try:
            await self._sandbox.remove(operation.path)
        except CaissonError as error:
            return ApplyPatchResult(status="failed", output=str(error))
        return ApplyPatchResult(status="completed", output=f"removed {operation.path}")

    async def _write(
        self, operation: ApplyPatchOperation, old: str, mode: 'Literal["default", "create"]'
    ) -> ApplyPatchResult:
        move_to = getattr(operation, "move_to", None)
        try:
            await self._sandbox.write(move_to or operation.path, apply_diff(old, operation.diff or "", mode=mode))
            if move_to and move_to != operation.path:
                await self._sandbox.remove(operation.path)
        except (CaissonError, ValueError) as error:
            return ApplyPatchResult(status="failed", output=str(error))
        return ApplyPatchResult(status="completed", output=f"wrote {move_to or operation.path}")


def patch_tool(sandbox: AsyncSandbox) -> ApplyPatchTool:
    return ApplyPatchTool(editor=PatchEditor(sandbox))
