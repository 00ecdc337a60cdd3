"""The table of verbs: what is listed, refused, and out of turn."""
import pytest
from speaker import fails


def test_verbs_are_listed(agent):
    assert {"exec", "read", "write", "edit", "stat", "list", "remove", "move"} <= set(agent.ready["verbs"])


@pytest.mark.parametrize("verb", ["mount", "snapshot", "no_such_verb", ""])
def test_unknown_verbs(agent, verb):
    fails(agent, "not_supported", verb, path="f")


def test_too_long_for_its_verb(agent):
    assert "too long" in fails(agent, "invalid", "read", path="f", more=bytes(100_000))


def test_call_before_init_ends_it(start):
    speaker = start(init=False)
    speaker.begin("read", path="/etc/passwd")
    with pytest.raises(EOFError):
        speaker.frame()
    assert speaker.process.wait(10) == 1
