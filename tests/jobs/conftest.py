"""What the tests of jobs share."""
import os
import pathlib

import pytest

from job_root import Jobs

TOP = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def caisson():
    path = pathlib.Path(os.environ.get("CAISSON") or TOP / "build" / "caisson").resolve()
    if not os.access(path, os.X_OK):
        pytest.fail(f"{path} is not built")
    return str(path)


@pytest.fixture
def jobs(tmp_path, caisson):
    tmp_path.chmod(0o755)
    return Jobs(tmp_path, caisson)
