from typing import Optional

class ExecuteResponse:
    def __init__(self, output: str, exit_code: Optional[int] = None, truncated: bool = False) -> None: ...

class FileUploadResponse:
    def __init__(self, path: str, error: Optional[str] = None) -> None: ...

class FileDownloadResponse:
    def __init__(self, path: str, content: Optional[bytes] = None, error: Optional[str] = None) -> None: ...
