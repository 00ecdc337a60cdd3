from typing import Any, Callable, Generic, Sequence, TypeVar

T = TypeVar("T", contravariant=True)

class FunctionToolset(Generic[T]):
    def __init__(self, tools: Sequence[Callable[..., Any]] = ...) -> None: ...
