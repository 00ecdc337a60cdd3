"""A sandbox environment of Inspect: `Task(…, sandbox="caisson")`, or `sandbox=("caisson", "policy.yaml")`.

Each sample has a fresh folder as its workspace, which may be written, and no network; with a policy file what that
grants, and its workspace has to hold the folder for temporary files ($TMPDIR). Needs Inspect's default backend, asyncio.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from typing import Any, Dict, List, Optional, Union

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
    sandboxenv,
)

from .. import AccessDenied, AsyncSandbox, CaissonError, IsADirectory, Lost, NotFound, Timeout, TooLarge

_KEEP = 10 << 20  # of each stream, as Inspect has it


def _meant(error: CaissonError) -> Exception:
    """The exception that Inspect's tools expect for it."""
    text = str(error)
    if isinstance(error, Lost):
        return SandboxUnavailableError(text)
    if isinstance(error, NotFound):
        return FileNotFoundError(text)
    if isinstance(error, AccessDenied):
        return PermissionError(text)
    if isinstance(error, IsADirectory):
        return IsADirectoryError(text)
    if isinstance(error, Timeout):
        return TimeoutError(text)
    return OutputLimitExceededError("64 MiB", None) if isinstance(error, TooLarge) else error


class CaissonSandbox(SandboxEnvironment):
    """One sample's sandbox."""

    def __init__(self, sandbox: AsyncSandbox, folder: str) -> None:
        super().__init__()
        self._sandbox, self._folder = sandbox, folder

    @classmethod
    async def sample_init(
        cls, task_name: str, config: Any, metadata: Dict[str, str]
    ) -> "Dict[str, SandboxEnvironment]":
        if config is not None and not isinstance(config, str):
            raise ValueError("the configuration of a sandbox of type caisson is the path of a policy file")
        folder = tempfile.mkdtemp(prefix="caisson-inspect-")
        grants: Dict[str, Any] = {"policy": os.path.abspath(config)} if config else {"network": "none"}
        try:
            return {"default": cls(await AsyncSandbox(workspace=f"{folder}:rw", **grants), folder)}
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    @classmethod
    async def sample_cleanup(
        cls, task_name: str, config: Any, environments: "Dict[str, SandboxEnvironment]", interrupted: bool
    ) -> None:
        for environment in environments.values():
            if isinstance(environment, CaissonSandbox):
                await environment._close()

    async def _close(self) -> None:
        try:
            await self._sandbox.close()
        finally:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def exec(
        self,
        cmd: List[str],
        input: Union[str, bytes, None] = None,
        cwd: Optional[str] = None,
        env: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        timeout: Optional[int] = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        if user is not None:
            raise SandboxUserUnsupportedError(f"every command has the sandbox's own user; there is no {user!r} in it")
        try:
            done = await self._sandbox.exec(cmd, stdin=input, cwd=cwd, env=env, timeout=timeout, keep=_KEEP)
        except CaissonError as error:
            raise _meant(error) from error
        stdout, stderr = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        reason = done.termination.reason
        if reason == "timeout":
            raise TimeoutError(done.termination.text or "the command took longer than its time")
        if reason == "output" or done.stdout_cut or done.stderr_cut:
            raise OutputLimitExceededError("10 MiB", stdout)
        if reason == "start_failed" and done.termination.error == "eacces":
            raise PermissionError(done.termination.text)
        notes = [violation.say for violation in done.violations if not violation.expected]
        said = "\n".join(filter(None, [stderr.rstrip("\n"), *notes, done.termination.text])) if notes else stderr
        status = done.exit_code if done.exit_code is not None else 128 + (done.signal or 0)
        status = 127 if reason == "start_failed" else status
        return ExecResult(done.ok, status, stdout, said or (done.termination.text or ""))

    async def write_file(self, file: str, contents: Union[str, bytes]) -> None:
        try:
            await self._sandbox.write(file, contents)
        except CaissonError as error:
            raise _meant(error) from error

    async def read_file(self, file: str, text: bool = True) -> Any:
        try:
            data = await self._sandbox.read(file)
        except CaissonError as error:
            raise _meant(error) from error
        return data.decode("utf-8") if text else data


sandboxenv(name="caisson")(CaissonSandbox)
