"""A sandbox as the Python executor of smolagents: `CodeAgent(tools=[], model=model, executor=CaissonExecutor(sandbox))`.

One Python process behind the wall keeps its variables from step to step. What it says is hostile: pieces are bounded and
read as JSON, never unpickled.
"""

from __future__ import annotations

import ast
import json
from typing import Any, Dict, List, Optional

from smolagents.local_python_executor import CodeOutput
from smolagents.remote_executors import RemotePythonExecutor

from .. import PIPE, CaissonError, Sandbox, Stream

_ANSWER_MAX = 16 << 20

# Answers go to a descriptor of their own; print() goes into the answer. Both are in the command's own process.
_DRIVER = r"""
import ast, contextlib, io, json, os, sys, traceback
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
names = {"__name__": "__main__"}
for line in sys.stdin:
    answer = {"value": None, "error": None, "detail": ""}
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            tree = ast.parse(json.loads(line))
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, "<step>", "exec"), names)
            if last is not None:
                answer["value"] = eval(compile(ast.Expression(last.value), "<step>", "eval"), names)
    except BaseException as error:
        answer.update(error=type(error).__name__, detail=traceback.format_exc(), value=str(error))
    answer["said"] = said.getvalue()[-(4 << 20):]
    answers.write(json.dumps(answer, default=repr) + "\n")
    answers.flush()
"""


def _forgiving(code: str) -> str:
    """Our own definitions of tools, whose imports at the top may fail."""
    tree = ast.parse(code)
    for i, node in enumerate(tree.body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            missing = ast.ExceptHandler(type=ast.Name("ImportError", ast.Load()), name=None, body=[ast.Pass()])
            tree.body[i] = ast.Try(body=[node], handlers=[missing], orelse=[], finalbody=[])
    return ast.unparse(ast.fix_missing_locations(tree))


class CaissonExecutor(RemotePythonExecutor):
    """Runs an agent's code in a sandbox, which stays the caller's. `timeout` is that of all steps together."""

    def __init__(self, sandbox: Sandbox, logger: Optional[Any] = None, *, timeout: Optional[float] = None) -> None:
        from smolagents.monitoring import AgentLogger, LogLevel

        super().__init__([], logger or AgentLogger(level=LogLevel.ERROR))
        self._sandbox, self._timeout = sandbox, timeout
        self._stream: Optional[Stream] = None
        self._is_defining = False

    def send_tools(self, tools: Dict[str, Any]) -> None:
        """As it is, but what a tool imports and the sandbox lacks is missed only where it is used: the tool for the
        final answer imports what it may have to encode."""
        self._is_defining = True
        try:
            super().send_tools(tools)
        finally:
            self._is_defining = False

    def install_packages(self, additional_imports: List[str]) -> List[str]:
        """Nothing is installed behind a wall without a network: a tool whose import is missing there says so when
        it is used. Lend it what it needs (`mounts`)."""
        return additional_imports

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        from smolagents.utils import AgentError

        answer = self._ask(_forgiving(code) if self._is_defining else code)
        logs = str(answer["said"])
        if answer["error"] is None:
            return CodeOutput(output=answer["value"], logs=logs, is_final_answer=False)
        if answer["error"] == self.FINAL_ANSWER_EXCEPTION:
            value = self._final(str(answer["value"]))
            return CodeOutput(output=value, logs=logs, is_final_answer=True)
        raise AgentError(f"{logs}\nExecuting code yielded an error:\n{answer['detail']}", self.logger)

    def _final(self, value: str) -> Any:
        from smolagents.serialization import SafeSerializer

        return SafeSerializer.loads(value, allow_pickle=False)

    def _ask(self, code: str) -> Dict[str, Any]:
        if self._stream is None:
            argv = ["python3", "-u", "-c", _DRIVER]
            self._stream = self._sandbox.stream(argv, stdin=PIPE, timeout=self._timeout, keep=1)
        self._stream.write(json.dumps(code) + "\n")
        said = bytearray()
        for chunk in self._stream:
            if chunk.stream == "stdout":
                said += chunk.data
                if said.endswith(b"\n") or len(said) > _ANSWER_MAX:
                    break
        try:
            answer = json.loads(said)
            return {key: answer[key] for key in ("value", "error", "detail", "said")}
        except (ValueError, KeyError, TypeError):
            raise self._ended() from None

    def _ended(self) -> CaissonError:
        stream, self._stream = self._stream, None
        assert stream is not None
        stream.cancel()
        reason = stream.result.termination.reason
        return CaissonError(f"the code's process ended: {reason}; its variables are gone", "command_lost", "exec")

    def cleanup(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
