from abc import ABC, abstractmethod
from typing import Callable, Dict, Generic, List, Literal, Optional, Type, TypeVar, Union, overload

T = TypeVar("T")
ST = TypeVar("ST", bound=SandboxEnvironment)
SandboxEnvironmentConfigType = Union[object, str]

class ExecResult(Generic[T]):
    success: bool
    returncode: int
    stdout: T
    stderr: T
    def __init__(self, success: bool, returncode: int, stdout: T, stderr: T) -> None: ...

class OutputLimitExceededError(Exception):
    def __init__(self, limit_str: str, truncated_output: Optional[str]) -> None: ...

class SandboxUnavailableError(RuntimeError): ...
class SandboxUserUnsupportedError(RuntimeError): ...

class SandboxEnvironment(ABC):
    @abstractmethod
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
    ) -> ExecResult[str]: ...
    @abstractmethod
    async def write_file(self, file: str, contents: Union[str, bytes]) -> None: ...
    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...
    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...
    @classmethod
    async def sample_init(
        cls, task_name: str, config: Optional[SandboxEnvironmentConfigType], metadata: Dict[str, str]
    ) -> Dict[str, SandboxEnvironment]: ...
    @classmethod
    @abstractmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: Optional[SandboxEnvironmentConfigType],
        environments: Dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None: ...
    @classmethod
    def config_files(cls) -> List[str]: ...

def sandboxenv(name: str) -> Callable[[Type[ST]], Type[ST]]: ...
