from abc import ABC, abstractmethod
from typing import List, Optional, Tuple

from .protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse

class BaseSandbox(ABC):
    @property
    @abstractmethod
    def id(self) -> str: ...
    @abstractmethod
    def execute(self, command: str, *, timeout: Optional[int] = None) -> ExecuteResponse: ...
    @abstractmethod
    def upload_files(self, files: List[Tuple[str, bytes]]) -> List[FileUploadResponse]: ...
    @abstractmethod
    def download_files(self, paths: List[str]) -> List[FileDownloadResponse]: ...
