from typing import Any, Callable

class BaseTool:
    name: str
    cache_function: Callable[..., bool]
    def run(self, *args: Any, **kwargs: Any) -> Any: ...

def tool(name: str) -> Callable[[Callable[..., Any]], BaseTool]: ...
