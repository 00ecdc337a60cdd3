"""What the tests of OCI runtimes share: boxes of the command line's tests, and each runtime as a wall."""
import os
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from run_fixtures import PYTHON, Box, make_box, program, remove_box, shared, wait_for  # noqa: E402, F401

RUNTIMES = {"runc": "oci", "crun": "oci", "gvisor": "gvisor"}


class RuntimeBox(Box):
    """A box of root's whose runs go behind one runtime."""

    runtime = wall = ""

    def behind(self, runtime):
        self.runtime, self.wall = runtime, RUNTIMES[runtime]
        if self.wall == "oci":
            self.env["CAISSON_OCI_RUNTIME"] = runtime
        return self

    def start(self, *argv, flags=(), **more):
        return super().start(*argv, flags=["--backend", self.wall, *flags], **more)

    def bundles(self):
        """Folders of bundles that are there."""
        return sorted((self.runs / ".oci").glob("*"))


def skip_without(runtime):
    name = {"gvisor": "runsc"}.get(runtime, runtime)
    if os.geteuid() != 0:
        pytest.skip("root: the tests were started by an ordinary user")
    if not shutil.which(name, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"):
        pytest.skip(f"{name}: not installed; tools/setup ci")


@pytest.fixture
def boxes(shared, program):  # noqa: F811
    """boxes(runtime) -> a new box."""
    made = []

    def make(runtime):
        skip_without(runtime)
        one = make_box(shared, program, 0)
        one.__class__ = RuntimeBox
        made.append(one.behind(runtime))
        return one

    yield make
    for one in made:
        remove_box(one)


@pytest.fixture(params=RUNTIMES)
def box(request, boxes):
    return boxes(request.param)
