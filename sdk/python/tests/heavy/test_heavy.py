"""Adapters whose frameworks take long to install: CSN_SDK_HEAVY=1."""

from __future__ import annotations

import asyncio
import pathlib
import tempfile
from typing import Any

import pytest

import caisson


def test_the_backend_of_deepagents(sandbox: caisson.Sandbox) -> None:
    from caisson.adapters.deepagents import CaissonBackend

    backend = CaissonBackend(sandbox, timeout=20)
    assert backend.id == sandbox.stats().sandbox_id
    done = backend.execute("echo hi; exit 3")
    assert (done.output, done.exit_code, done.truncated) == ("hi\n", 3, False)
    assert backend.execute("sleep 30", timeout=1).exit_code == 124
    assert backend.upload_files([("a.txt", b"one\n"), ("/usr/x", b"")])[1].error == "permission_denied"
    down = backend.download_files(["a.txt", "none"])
    assert down[0].content == b"one\n" and down[1].error == "file_not_found"
    here = "/workspace/a.txt"
    assert backend.edit(here, "one", "two").error is None and "two" in str(backend.read(here).file_data)
    assert backend.grep("two", "/workspace").matches[0]["line"] == 1
    assert backend.write("/workspace/b.txt", "b").error is None


def test_the_executor_of_autogen(workspace: pathlib.Path) -> None:
    from autogen_core import CancellationToken
    from autogen_core.code_executor import CodeBlock

    from caisson.adapters.autogen import CaissonExecutor

    async def story() -> None:
        options = {"workspace": f"{workspace}:rw", "no_record": True}
        async with CaissonExecutor(timeout=1, **options) as executor:
            blocks = [CodeBlock("print(6 * 7)", "python"), CodeBlock("exit 3", "bash"), CodeBlock("echo no", "sh")]
            done = await executor.execute_code_blocks(blocks, CancellationToken())
            assert (done.exit_code, done.output) == (3, "42\n")
            with pytest.raises(asyncio.TimeoutError):
                await executor.execute_code_blocks([CodeBlock("sleep 30", "sh")], CancellationToken())
            token = CancellationToken()
            asyncio.get_running_loop().call_later(0.1, token.cancel)
            with pytest.raises(asyncio.CancelledError):
                await executor.execute_code_blocks([CodeBlock("sleep 30", "sh")], token)
            with pytest.raises(ValueError, match="cobol"):
                await executor.execute_code_blocks([CodeBlock("", "cobol")], CancellationToken())

    asyncio.run(story())


def test_the_executor_of_smolagents(sandbox: caisson.Sandbox) -> None:
    from smolagents import CodeAgent, tool
    from smolagents.models import ChatMessage, MessageRole, Model

    from caisson.adapters.smolagents import CaissonExecutor

    @tool
    def double(number: int) -> int:
        """Doubles.

        Args:
            number: what
        """
        return 2 * number

    steps = ["x = double(21)\nprint('said', x)", "open('/usr/x', 'w')", "final_answer({'x': x})"]

    class Scripted(Model):
        def generate(self, messages: Any, **_: Any) -> ChatMessage:
            code = steps.pop(0)
            return ChatMessage(role=MessageRole.ASSISTANT, content=f"Thought: so\n<code>\n{code}\n</code>")

    executor = CaissonExecutor(sandbox)
    agent = CodeAgent(tools=[double], model=Scripted(), executor=executor, verbosity_level=0)
    assert agent.run("go") == {"x": 42}
    observed = [step for step in agent.memory.steps if getattr(step, "code_action", None)]
    assert "said 42" in observed[0].observations and "Errno" in str(observed[1].error)
    with pytest.raises(caisson.CaissonError, match="variables are gone"):
        executor("import os; os._exit(1)")
    assert executor("1 + 1").output == 2
    executor.cleanup()


def test_the_sandbox_of_inspect(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.solver import solver
    from inspect_ai.util import OutputLimitExceededError, SandboxUserUnsupportedError
    from inspect_ai.util import sandbox as current

    folder = tmp_path / "samples"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    @solver
    def story() -> Any:
        async def solve(state: Any, _: Any) -> Any:
            box = current()
            done = await box.exec(
                ["sh", "-c", "cat a/b.txt - && echo $X >&2 && pwd; exit 3"], input="in", env={"X": "y"}
            )
            assert (done.success, done.returncode, done.stdout, done.stderr) == (
                False,
                3,
                "filein/workspace\n",
                "y\n",
            )
            assert (await box.exec(["pwd"], cwd="a")).stdout == "/workspace/a\n"
            assert "/usr/x" in (await box.exec(["touch", "/usr/x"])).stderr
            missing = await box.exec(["no-such-program"])
            assert (missing.success, missing.returncode) == (False, 127) and missing.stderr
            with pytest.raises(TimeoutError):
                await box.exec(["sleep", "30"], timeout=1)
            with pytest.raises(SandboxUserUnsupportedError):
                await box.exec(["true"], user="root")
            with pytest.raises(OutputLimitExceededError):
                await box.exec(["yes"])
            await box.write_file("new/c.bin", b"\0\xff\r\n")
            assert await box.read_file("new/c.bin", text=False) == b"\0\xff\r\n"
            assert await box.read_file("/workspace/a/b.txt") == "file"
            for path, kind in (
                ("none", FileNotFoundError),
                ("a", IsADirectoryError),
                ("new/c.bin", UnicodeDecodeError),
            ):
                with pytest.raises(kind):
                    await box.read_file(path)
            with pytest.raises(PermissionError):
                await box.write_file("/usr/x", "x")
            return state

        return solve

    policy = tmp_path / "policy.yaml"
    # Relative to the current folder, as with --policy.
    monkeypatch.chdir(tmp_path)
    policy.write_text("version: 1\nworkspace: {path: samples, mode: rw}\nenv: {pass: [X]}\n")
    samples = [Sample(input="go", files={"a/b.txt": "file"}) for _ in range(2)]
    for where in ("caisson", ("caisson", str(policy))):
        task = Task(dataset=samples, solver=story(), sandbox=where)
        [log] = eval(task, model="mockllm/model", log_dir=str(tmp_path / "logs"), display="none")
        assert log.status == "success", log.error
        assert not list(folder.glob("caisson-inspect-*"))
