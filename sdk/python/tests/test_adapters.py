"""The adapters, each with its real framework and no model: what a model would say is written down."""

from __future__ import annotations

import asyncio
import json
import pathlib
import subprocess
import sys
from typing import Any, Callable

import pytest

import caisson


def test_the_package_imports_no_framework() -> None:
    text = "import sys, caisson; print([m for m in ('agents', 'pydantic_ai', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, encoding="utf-8", check=True)
    assert done.stdout == "[]\n"


@pytest.fixture
def told(workspace: pathlib.Path) -> Callable[[Any], Any]:
    def tell(story: Any) -> Any:
        async def main() -> Any:
            async with caisson.AsyncSandbox(workspace=f"{workspace}:rw", network="none", no_record=True) as sandbox:
                return await story(sandbox)

        return asyncio.run(asyncio.wait_for(main(), 50))

    return tell


# ---- OpenAI Agents SDK --------------------------------------------------------------------------


def test_the_shell_tool_of_openai_agents(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from agents import Agent, ModelResponse, Runner, Usage, set_tracing_disabled
    from agents.models.interface import Model
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    from caisson.adapters.openai_agents import shell_tool

    set_tracing_disabled(True)
    heard = []

    class Scripted(Model):
        """Calls the shell once, then ends."""

        async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
            heard.append(input)
            if len(heard) == 1:
                action = {"type": "exec", "commands": ["echo hi > f; cat f; exit 3", "touch /usr/x", "sleep 30"]}
                action["timeout_ms"] = 500
                call = {"type": "shell_call", "id": "s1", "call_id": "c1", "status": "completed", "action": action}
                return ModelResponse(output=[call], usage=Usage(), response_id=None)
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            said = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
            return ModelResponse(output=[said], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    async def story(sandbox: caisson.AsyncSandbox) -> None:
        agent = Agent(name="coder", model=Scripted(), tools=[shell_tool(sandbox)])
        assert (await Runner.run(agent, "go")).final_output == "done"

    told(story)
    said = json.dumps(heard[1], default=str)
    assert "hi" in said and '"exit_code": 3' in said and '"timeout"' in said and "/usr/x" in said


def test_the_patch_tool_of_openai_agents(told: Any, workspace: pathlib.Path) -> None:
    from agents.editor import ApplyPatchOperation

    from caisson.adapters.openai_agents import patch_tool

    async def story(sandbox: caisson.AsyncSandbox) -> None:
        editor = patch_tool(sandbox).editor
        made = await editor.create_file(ApplyPatchOperation("create_file", "new/a.txt", "+one\n+two"))
        assert made.status == "completed" and (workspace / "new/a.txt").read_text() == "one\ntwo"
        diff = "@@\n one\n-two\n+2"
        assert (await editor.update_file(ApplyPatchOperation("update_file", "new/a.txt", diff))).status == "completed"
        assert (workspace / "new/a.txt").read_text() == "one\n2"
        out = await editor.update_file(ApplyPatchOperation("update_file", "../a.txt", diff))
        assert out.status == "failed" and "leads out" in out.output
        assert (await editor.delete_file(ApplyPatchOperation("delete_file", "new/a.txt"))).status == "completed"
        assert not (workspace / "new/a.txt").exists()

    told(story)


# ---- Pydantic AI --------------------------------------------------------------------------------


def test_the_toolset_of_pydantic_ai(told: Any, workspace: pathlib.Path) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from caisson.adapters.pydantic_ai import toolset

    script = [
        ("write", {"path": "a.py", "content": "print(6 * 7)\n"}),
        ("run", {"command": "python3 a.py; exit 3"}),
        ("edit", {"path": "a.py", "old": "nothing", "new": "x"}),
        ("edit", {"path": "a.py", "old": "7", "new": "8"}),
        ("read", {"path": "a.py"}),
        ("glob", {"pattern": "*.py"}),
        ("grep", {"pattern": "print"}),
    ]
    answers = []

    def model(messages: Any, _: Any) -> ModelResponse:
        answers.append(messages[-1].parts[-1].content)
        if len(answers) > len(script):
            return ModelResponse(parts=[TextPart("done")])
        name, args = script[len(answers) - 1]
        return ModelResponse(parts=[ToolCallPart(name, args)])

    async def story(sandbox: caisson.AsyncSandbox) -> None:
        agent = Agent(FunctionModel(model), toolsets=[toolset(sandbox)])
        assert (await agent.run("go")).output == "done"

    told(story)
    assert answers[2] == "42\n\n[exited, status 3]" and "occurs 0 times" in str(answers[3])
    assert answers[5] == "print(6 * 8)\n" and answers[6] == ["a.py"] and answers[7] == ["a.py:1:print(6 * 8)"]
