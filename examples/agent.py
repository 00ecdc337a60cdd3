#!/usr/bin/env python3
"""An agent's loop: a model asks for tools, a sandbox answers, the changes are kept if the tests pass.

The model here is a script, so that it runs without one: put your client's call where `Scripted` is. The workspace is a
copy: nothing of the project changes before commit().

    python3 -m venv v && v/bin/pip install sdk/python && v/bin/python3 examples/agent.py FOLDER
"""

import sys

import caisson

TOOLS = {
    "run": lambda sandbox, command: sandbox.exec(command, timeout=60),
    "read": lambda sandbox, path: sandbox.read_text(path),
    "edit": lambda sandbox, path, old, new: sandbox.edit(path, old, new),
}


class Scripted:
    """What a model would say, one tool call after another; None is its end."""

    steps = [
        ("run", {"command": "python3 -B test_sum.py"}),
        ("read", {"path": "sum.py"}),
        ("edit", {"path": "sum.py", "old": "a - b", "new": "a + b"}),
        ("run", {"command": "python3 -B test_sum.py"}),
    ]

    def next(self, observations):
        return self.steps[len(observations)] if len(observations) < len(self.steps) else None


def observe(sandbox, tool, arguments):
    """What the model is told: a failure is an observation, too."""
    try:
        answer = TOOLS[tool](sandbox, **arguments)
    except caisson.CaissonError as error:
        return f"{error.code}: {error}"
    if isinstance(answer, caisson.ExecResult):
        notes = [violation.say for violation in answer.violations]
        return "\n".join([answer.text.strip(), *notes, f"[{answer.termination.reason}, status {answer.exit_code}]"])
    return str(answer)


def main(folder):
    model, observations = Scripted(), []
    with caisson.Sandbox(workspace=f"{folder}:cow", network="none", limits={"memory": "512MiB"}) as sandbox:
        while step := model.next(observations):
            observations.append(observe(sandbox, *step))
            print(f"--- {step[0]} {step[1]}\n{observations[-1]}")
        print(sandbox.diff().text.decode())
        if sandbox.exec("python3 -B test_sum.py").ok:
            print("kept:", ", ".join(change.path for change in sandbox.commit().applied))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
