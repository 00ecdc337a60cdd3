from typing import Literal, Optional

class ApplyPatchOperation:
    path: str
    diff: Optional[str]

class ApplyPatchResult:
    def __init__(
        self, status: Optional[Literal["completed", "failed"]] = None, output: Optional[str] = None
    ) -> None: ...
