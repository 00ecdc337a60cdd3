"""A command that starts a sandbox: every failure of ours is 125 and leaves an error in the result."""
import json

import pytest

REFUSED = [["--bogus", "--", "true"], ["--tier"], ["--tier", "best", "--", "true"], [], ["-c", "true", "true"],
           ["--policy", "none.yaml", "--", "true"], ["-w", "/", "--", "true"], ["-l", "command=0", "--", "true"]]


@pytest.fixture
def has_run(cli):
    if "caisson run" not in cli("help", "--markdown").out:
        pytest.skip("run: not in this build")


@pytest.mark.parametrize("argv", REFUSED, ids=lambda argv: " ".join(argv) or "nothing")
def test_status_and_result(cli, has_run, project, argv):
    answer = cli("run", "--result", "result.json", *argv)
    assert answer.status == 125 and answer.err.startswith("caisson: ") and answer.out == "", answer
    result = json.loads((project / "result.json").read_text())
    assert result["schema"] == "caisson.result/1" and result["termination"]["reason"] == "start_failed"
    assert result["error"]["text"] in answer.err.replace("\n", " ") or result["error"]["text"].splitlines()[0] in answer.err
    assert cli("run", "--json", *argv).json()["error"]["code"]


def test_flags_of_the_command_are_its_own(cli, has_run, project):
    (project / "result.json").write_text("mine\n")
    cli("run", "--bogus", "true", "--result", "result.json")
    assert (project / "result.json").read_text() == "mine\n", "--result after the command is not ours"
