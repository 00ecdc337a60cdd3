from typing import Any

class SafeSerializer:
    @staticmethod
    def loads(data: str, allow_pickle: bool = False) -> Any: ...
