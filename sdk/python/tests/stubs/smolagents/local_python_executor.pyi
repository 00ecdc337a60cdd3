from typing import Any

class CodeOutput:
    def __init__(self, output: Any, logs: str, is_final_answer: bool) -> None: ...
