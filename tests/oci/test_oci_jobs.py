"""Jobs behind runc: what a kill leaves is gone on with."""
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "jobs"))
from job_root import Jobs  # noqa: E402


@pytest.mark.parametrize("runtime", ["runc"])
def test_killed_and_resumed(boxes, runtime):
    box = boxes(runtime)
    base = box.base / "jobs"
    base.mkdir()
    jobs = Jobs(base, box.caisson, box.env)
    jobs.kill_and_resume(backend=box.wall)
    launches = [event["payload"] for event in jobs.events("one", "RunStarted")]
    assert [launch["runtime"] for launch in launches] == [box.wall] * 2, launches
    assert not list((jobs.root / ".oci").glob("*")), "no bundle is left"
