"""The attacks behind docker, podman, runc, crun and gVisor, against the table."""
import pytest

from contained import WORLDS, at, cases, worlds  # noqa: F401
from test_escape import judge, perform
from verdicts import EVENTS, OBSERVED, verdict_of


@pytest.mark.parametrize("attack, at", [pytest.param(attack, (attack, name), id=f"{attack}-{name}") for attack, name in cases()],
                         indirect=["at"])
def test_attack(attack, at, request):  # noqa: F811
    verdict = verdict_of(attack, at.wall, at.who)
    if verdict.broken:
        request.node.add_marker(pytest.mark.xfail(reason=verdict.broken, strict=True))
    run = perform(at, attack)
    judge(run, verdict)
    result = getattr(run, "result", None) or {}
    if "not_observed" in result and run.reason != "start_failed":
        assert set(result["not_observed"]) == EVENTS - OBSERVED[at.wall], run
