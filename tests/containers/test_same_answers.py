"""The same call gives the same answer in a container: the table of tests/cli/calls.py."""
import pytest
from calls import CALLS
from run_fixtures import make_box, remove_box
from test_differential import WALLS, differences, tell


@pytest.fixture
def answers(one_engine, shared, program):
    """name -> each call's answer, behind the process wall and behind this one."""
    engine = one_engine
    other = make_box(shared, program, engine.box.uid)
    yield {"process": tell(other, WALLS["process"], CALLS),
           engine.name: tell(engine.box, f"tier: balanced\nbackend: {engine.name}\nworkspace: {{mode: rw}}\n", CALLS)}
    remove_box(other)


def test_the_table(answers):
    found = differences(answers)
    assert not found, "\n".join(found)
