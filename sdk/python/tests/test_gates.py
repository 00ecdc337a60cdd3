"""Gates as functions: what code inside asks for is answered here, and nothing else of this program is in reach."""

from __future__ import annotations

import asyncio
import pathlib
import threading
import time
from typing import Any, Callable, List

import pytest

import caisson
from caisson import _core
from caisson._term import Atom, frame

Open = Callable[..., caisson.Sandbox]
TICKET = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


def raises(**_: Any) -> None:
    raise ValueError("no such ticket")


def test_what_a_function_returns_is_the_answer(open_: Open) -> None:
    gates = {
        "ticket": caisson.Gate(lambda id: {"id": id, "title": "é"}, TICKET),
        "text": lambda: "as it is\n",
        "data": lambda: b"\x00\xff",
        "nothing": lambda **_: None,
        "raises": raises,
        "wrong": lambda: object(),
        "much": lambda: "x" * 300000,
    }
    sandbox = open_(gates=gates)
    asked = sandbox.exec(
        'ticket \'{"id": 7}\'; echo; ticket \'{"id": "7"}\'; text; data | od -An -tx1; nothing \'{"a": 1}\'; '
        "raises '{\"a\": 1}'; echo $?; text '{\"b\": 2}'; wrong; much; caisson-gate other"
    )
    assert asked.stdout.decode() == '{"id": 7, "title": "\\u00e9"}\nas it is\n 00 ff\n1\n'
    said = asked.stderr.decode().splitlines()
    assert said[0] == "caisson-gate: ticket: id is not of type integer"
    assert said[1] == "caisson-gate: raises: no such ticket"
    assert "unexpected keyword argument" in said[2] and "not JSON serializable" in said[3]
    assert said[4:] == [
        "caisson-gate: much: the answer is longer than 262144 bytes",
        "caisson-gate: other: unknown gate: other",
    ]


def test_one_that_takes_its_time_holds_nobody_up(open_: Open) -> None:
    go, begun = threading.Event(), threading.Barrier(3)

    def slow() -> str:
        begun.wait(60)
        go.wait(60)
        return "done"

    sandbox = open_(gates={"slow": slow, "quick": lambda: "quick"})
    asks = [threading.Thread(target=lambda: said.append(sandbox.exec("slow").text)) for _ in range(2)]
    said: "list[str]" = []
    for ask in asks:
        ask.start()
    begun.wait(60)  # two at once
    assert sandbox.exec("quick").text == "quick"
    sandbox.write("a", b"b")
    go.set()
    for ask in asks:
        ask.join(60)
    assert said == ["done", "done"]


def test_a_function_may_use_the_sandbox(open_: Open) -> None:
    sandbox = open_(gates={"fetch_note": lambda path: sandbox.read_text(path)})
    sandbox.write("note", b"inside")
    assert sandbox.exec('fetch_note \'{"path": "note"}\'').text == "inside"


def test_one_that_never_answers_has_its_time(open_: Open, tmp_path: pathlib.Path, workspace: pathlib.Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"version: 1\nworkspace: {{path: {workspace}}}\ngates:\n  - {{name: hangs, timeout: 300ms}}\n")
    sandbox = open_(mode="ro", policy=policy, gates={"hangs": lambda: time.sleep(5)})
    assert sandbox.exec("hangs").stderr == b"caisson-gate: hangs: the gate took too long\n"
    time.sleep(5)  # its late answer is passed over
    assert sandbox.exec("echo on").text == "on\n"


def test_a_policy_names_the_functions_that_may_be(
    open_: Open, tmp_path: pathlib.Path, workspace: pathlib.Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        f"version: 1\nworkspace: {{path: {workspace}}}\ngates: [mine, {{name: its, command: [/bin/cat]}}]\n"
    )
    assert open_(mode="ro", policy=policy, gates={"mine": lambda: "ours"}).exec("mine; its").text == "ours{}"
    with pytest.raises(caisson.PolicyRefused, match="does not name other"):
        open_(mode="ro", policy=policy, gates={"other": lambda: ""})
    with pytest.raises(caisson.PolicyRefused, match="answers its with a program of its own"):
        open_(mode="ro", policy=policy, gates={"its": lambda: ""})


def test_what_is_no_gate_is_refused(open_: Open) -> None:
    with pytest.raises(caisson.CaissonError, match="not a gate's name"):
        open_(gates={"a b": lambda: ""})
    with pytest.raises(caisson.CaissonError, match="pattern, which is not checked here"):
        open_(gates={"a": caisson.Gate(lambda: "", {"pattern": "x"})})
    with pytest.raises(caisson.Invalid, match="a schema is no JSON"):
        open_(gates={"a": caisson.Gate(lambda: "", {"enum": [object()]})})


def test_the_end_of_the_sandbox_waits_for_no_function(open_: Open) -> None:
    sandbox = open_(gates={"hangs": lambda: time.sleep(60)})
    with sandbox.stream("hangs") as stream:
        time.sleep(0.5)
        began = time.monotonic()
        sandbox.close()
        assert time.monotonic() - began < 20
        del stream


def test_more_calls_than_run_at_once_are_refused() -> None:
    """A function whose time is over goes on, and the monitor waits for it no more: its next call is no fault of his."""
    core = _core.Core("it", {})
    asked: List[int] = []
    core.on_gate = lambda ref, *_: asked.append(ref)
    core.is_ready = True
    for ref in range(_core.GATE_CALLS + 1):
        core.receive(frame((Atom("gate_call"), ref, b"a", b"{}")), 0.0)
    assert core.error is None and asked == list(range(_core.GATE_CALLS)) and b"the gate is busy" in bytes(core.out)
    core.gate_result(0, b"", False)
    core.receive(frame((Atom("gate_call"), 99, b"a", b"{}")), 0.0)
    assert asked[-1] == 99


def test_functions_that_hang_do_not_end_the_sandbox(
    open_: Open, workspace: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    policy, go_on = tmp_path / "policy.yaml", threading.Event()
    policy.write_text(f"version: 1\nworkspace: {{path: {workspace}}}\ngates:\n  - {{name: hangs, timeout: 300ms}}\n")
    sandbox = open_(mode="ro", policy=policy, gates={"hangs": lambda: str(go_on.wait(60))})
    try:
        for _ in range(_core.GATE_CALLS // 8):
            sandbox.exec("for i in 1 2 3 4 5 6 7 8; do hangs & done; wait")
        assert sandbox.exec("hangs").stderr == b"caisson-gate: hangs: the gate is busy: 16 calls of it still run\n"
    finally:
        go_on.set()
    assert sandbox.exec("until hangs; do sleep 0.1; done 2>/dev/null").text == "True"


def test_functions_of_the_async_client(workspace: pathlib.Path) -> None:
    async def later(n: int) -> int:
        await asyncio.sleep(0.01)
        return n + 1

    async def main() -> str:
        gates = {"later": later, "plain": lambda: "plain "}
        async with caisson.AsyncSandbox(workspace=f"{workspace}:ro", no_record=True, gates=gates) as sandbox:
            one, two = await asyncio.gather(
                sandbox.exec("plain; later '{\"n\": 1}'"), sandbox.exec("later '{\"n\": 2}'")
            )
            return one.text + two.text

    assert asyncio.run(main()) == "plain 23"
