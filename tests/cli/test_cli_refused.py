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


LONG = "é" * 99 + "/x/" + "é" * 99


@pytest.mark.parametrize("name", [LONG, "a" + LONG, "\udcff\udcfe", "\x1b[2J"],
                         ids=["even", "odd", "bytes", "escape"])
def test_an_error_is_in_the_result_whatever_it_names(cli, has_run, project, name):
    """A sentence may be cut inside a character, and a file's name may be no text at all."""
    answer = cli("run", "--result", "result.json", "--policy", name, "--", "true")
    assert answer.status == 125 and "\x1b" not in answer.err
    assert json.loads((project / "result.json").read_text())["error"]["text"].startswith("there is no policy file")
    assert cli("run", "--json", "--policy", name, "--", "true").json()["error"]["code"]
