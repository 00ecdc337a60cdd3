"""A sandbox as a backend of deepagents (LangChain): `create_deep_agent(backend=CaissonBackend(sandbox))`."""

from __future__ import annotations

from typing import List, Optional, Tuple

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

from .. import AccessDenied, CaissonError, IsADirectory, NotFound, Sandbox

# By deepagents' names; another failure is told by its sentence.
_NAMES = ((NotFound, "file_not_found"), (AccessDenied, "permission_denied"), (IsADirectory, "is_directory"))


def _name(error: CaissonError) -> str:
    return next((name for kind, name in _NAMES if isinstance(error, kind)), str(error))


class CaissonBackend(BaseSandbox):
    """Commands and files of one sandbox; closing it stays with who opened it. `timeout` is in seconds."""

    def __init__(self, sandbox: Sandbox, *, timeout: Optional[float] = None) -> None:
        self._sandbox, self._timeout = sandbox, timeout
        self._id = sandbox.stats().sandbox_id

    @property
    def id(self) -> str:
        return self._id

    def execute(self, command: str, *, timeout: Optional[int] = None) -> ExecuteResponse:
        done = self._sandbox.exec(command, timeout=timeout or self._timeout)
        said = [done.text, *(violation.say for violation in done.violations if not violation.expected)]
        if done.termination.text:
            said.append(done.termination.text)
        status = done.exit_code
        if status is None:
            said.append(f"[{done.termination.reason}]")
            status = 124 if done.termination.reason == "timeout" else 128 + (done.signal or 0)
        cut = done.merged_cut + done.output_cut > 0
        return ExecuteResponse(output="\n".join(filter(None, said)), exit_code=status, truncated=cut)

    def upload_files(self, files: List[Tuple[str, bytes]]) -> List[FileUploadResponse]:
        return [self._upload(path, content) for path, content in files]

    def _upload(self, path: str, content: bytes) -> FileUploadResponse:
        try:
            self._sandbox.write(path, content)
        except CaissonError as error:
            return FileUploadResponse(path=path, error=_name(error))
        return FileUploadResponse(path=path)

    def download_files(self, paths: List[str]) -> List[FileDownloadResponse]:
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path=path, content=self._sandbox.read(path))
        except CaissonError as error:
            return FileDownloadResponse(path=path, error=_name(error))
