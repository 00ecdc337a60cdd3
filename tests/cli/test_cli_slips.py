"""What newcomers type: a refusal names the spelling that works, and the lines that would permit it."""
import json

import pytest

VALUES = [
    (["--memory", "512Mib"], "did you mean 512MiB?"),
    (["--memory", "512MB"], "did you mean 512MiB?"),
    (["--memory", "1.5 GiB"], "did you mean 1536MiB?"),
    (["--memory", "2g"], "did you mean 2GiB?"),
    (["--timeout", "5"], "did you mean 5s?"),
    (["--timeout", "1h30m"], "did you mean 90m?"),
    (["--timeout", "90 Seconds"], "did you mean 90s?"),
    (["--timeout", "0.5m"], "did you mean 30s?"),
    (["-l", "mem=1GiB"], "did you mean memory?"),
    (["-l", "timeout=5s"], "did you mean command?"),
    (["-l", "scratch=5G"], "did you mean 5GiB?"),
]
NO_GUESS = [["--memory", "much"], ["--memory", "5 parsecs"], ["--timeout", "-5"], ["--timeout", "1.2345s"], ["--cpus", "two"],
            ["--memory", "99999999999999GB"], ["--memory", "0MB"], ["-l", "colour=1"]]


@pytest.mark.parametrize("flags, meant", VALUES, ids=lambda value: " ".join(value) if isinstance(value, list) else value)
def test_a_foreign_spelling_is_refused_with_ours(cli, flags, meant):
    answer = cli("run", *flags, "--", "true")
    assert answer.status == 125 and meant in answer.err, answer


@pytest.mark.parametrize("flags", NO_GUESS, ids=" ".join)
def test_nothing_is_guessed_from_nonsense(cli, flags):
    answer = cli("run", *flags, "--", "true")
    assert answer.status == 125 and "expected" in answer.err and "did you mean" not in answer.err, answer


def test_the_same_in_a_file(cli, project):
    (project / "caisson.yaml").write_text("version: 1\nlimits: {memory: 512MB, command: 30}\n")
    answer = cli("policy", "check")
    assert "caisson.yaml:2:18: limits.memory" in answer.err and "did you mean 512MiB?" in answer.err, answer


def lines_of(answer):
    """Where a refusal says to write, and what."""
    head, *lines = answer.err.splitlines()
    return head, "\n".join(lines) + "\n"


@pytest.mark.parametrize("flags", [["--tier", "auto"], ["--timeout", "10m"], ["--memory", "2GiB"]], ids=" ".join)
def test_a_refusal_without_a_policy_names_file_and_lines(cli, project, flags):
    answer = cli("run", "--result", "r.json", *flags, "--", "true")
    head, lines = lines_of(answer)
    assert answer.status == 125 and json.loads((project / "r.json").read_text())["error"]["code"] == "eperm", answer
    assert f"write into {project}/caisson.yaml, then run `caisson policy trust`" in head and lines.startswith("version: 1\n"), answer
    (project / "caisson.yaml").write_text(lines)
    assert cli("policy", "trust", "--yes").status == 0
    assert cli("policy", "explain", "--json", "--", "true").status == 0
    assert "refused" not in cli("policy", "explain", *flags, "--", "true").out


def test_a_refusal_with_a_policy_names_that_file(cli, project):
    policy = project / "caisson.yaml"
    policy.write_text("version: 1\n")
    head, lines = lines_of(cli("run", "--tier", "auto", "--", "true"))
    assert f"write into {policy}, then run `caisson policy trust`:" in head and lines == "tier: auto\n"
    head, lines = lines_of(cli("run", "--policy", policy, "--rw", "--", "true"))
    assert f"write into {policy}:" in head and "trust`" not in head and lines == "workspace: {mode: rw}\n"


@pytest.mark.parametrize("flags", [["-n", "allow"], ["-n", "engine"], ["--allow", "pypi.org"]], ids=" ".join)
def test_what_no_build_does_is_not_offered_as_lines(cli, flags):
    answer = cli("run", *flags, "--", "true")
    assert answer.status == 125 and "not available in this build" in answer.err and "\nversion" not in answer.err, answer
