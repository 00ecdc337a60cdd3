"""The adapter for CrewAI, which asks for another pydantic than the rest: in an environment of its own, CSN_SDK_HEAVY=1."""

from __future__ import annotations

import os
from typing import Any

import caisson

os.environ.update(OTEL_SDK_DISABLED="true", CREWAI_DISABLE_TELEMETRY="true", CREWAI_DISABLE_TRACKING="true")


def test_the_tools_of_crewai(sandbox: caisson.Sandbox) -> None:
    from crewai import Agent, Crew, Task
    from crewai.llms.base_llm import BaseLLM

    from caisson.adapters.crewai import tools

    steps = [
        ("write", '{"path": "a.py", "content": "print(6 * 7)"}'),
        ("run", '{"command": "python3 a.py; exit 3"}'),
        ("run", '{"command": "touch /usr/x"}'),
        ("edit", '{"path": "a.py", "old": "nothing", "new": "x"}'),
        ("read", '{"path": "a.py"}'),
        ("edit", '{"path": "a.py", "old": "7", "new": "8"}'),
        ("read", '{"path": "a.py"}'),
        ("read", '{"path": "../x"}'),
        ("glob", '{"pattern": "*.py"}'),
        ("grep", '{"pattern": "print"}'),
    ]
    heard = []

    class Scripted(BaseLLM):
        def call(self, messages: Any, *_: Any, **__: Any) -> str:
            heard.append("\n".join(str(message["content"]) for message in messages[-3:]))
            if len(heard) > len(steps):
                return "Thought: done\nFinal Answer: done"
            name, args = steps[len(heard) - 1]
            return f"Thought: so\nAction: {name}\nAction Input: {args}"

        def supports_function_calling(self) -> bool:
            return False

    agent = Agent(
        role="coder", goal="code", backstory="none", llm=Scripted(model="scripted"), tools=tools(sandbox, timeout=20)
    )
    task = Task(description="code", expected_output="code", agent=agent)
    assert str(Crew(agents=[agent], tasks=[task]).kickoff()) == "done"
    expected = [
        "wrote a.py",
        "42\n\n[exited, status 3]",
        "/usr/x is not permitted",
        "occurs 0 times",
        "print(6 * 7)",
        "changed a.py",
        "print(6 * 8)",
        "leads out",
        "a.py",
        "a.py:1:print(6 * 8)",
    ]
    for text, answer in zip(expected, heard[1:]):
        assert text in answer, (text, answer)
