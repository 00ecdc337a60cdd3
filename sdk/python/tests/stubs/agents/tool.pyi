from typing import List, Literal, Optional

class _Action:
    commands: List[str]
    timeout_ms: Optional[int]
    max_output_length: Optional[int]

class _Data:
    action: _Action

class ShellCommandRequest:
    data: _Data

class ShellCallOutcome:
    def __init__(self, type: Literal["exit", "timeout"], exit_code: Optional[int] = None) -> None: ...

class ShellCommandOutput:
    def __init__(self, command: str, stdout: str, stderr: str, outcome: ShellCallOutcome) -> None: ...

class ShellResult:
    def __init__(self, output: List[ShellCommandOutput], max_output_length: Optional[int] = None) -> None: ...
