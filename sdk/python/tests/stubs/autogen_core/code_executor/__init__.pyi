from abc import ABC, abstractmethod
from typing import Any, List

from autogen_core import CancellationToken

class CodeBlock:
    code: str
    language: str

class CodeResult:
    def __init__(self, exit_code: int, output: str) -> None: ...

class CodeExecutor(ABC):
    @abstractmethod
    async def execute_code_blocks(
        self, code_blocks: List[CodeBlock], cancellation_token: CancellationToken
    ) -> CodeResult: ...
    @abstractmethod
    async def start(self) -> None: ...
    @abstractmethod
    async def stop(self) -> None: ...
    @abstractmethod
    async def restart(self) -> None: ...
    def _to_config(self) -> Any: ...
    @classmethod
    def _from_config(cls, config: Any) -> Any: ...
