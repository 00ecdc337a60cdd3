"""The evaluator of Elixir code: its own tests, which speak its frames from a port of a BEAM's."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDER = TOP / "evaluators" / "elixir"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    if not shutil.which("elixir"):
        pytest.skip("elixir: it is not installed (apt-get install elixir)")
    place = pathlib.Path(os.environ.get("CAISSON_BUILD") or TOP / "build") / "evaluators" / "elixir"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path_factory.mktemp("home")), "LANG": "C.UTF-8",
           "CAISSON_EVALUATOR": str(place.resolve()), "ERL_CRASH_DUMP_BYTES": "0"}

    def run(*words):
        done = subprocess.run(words, cwd=FOLDER, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=400, encoding="utf-8", errors="replace")
        assert done.returncode == 0, done.stdout[-12000:]
        return done.stdout

    run.place = place
    return run


def test_it_is_formatted(run):
    run("mix", "format", "--check-formatted", *map(str, sorted(FOLDER.glob("**/*.ex*"))))


def test_its_own_tests(run):
    told = run("elixir", "-pa", str(run.place), "test/evaluator_test.exs")
    found = re.search(r"(\d+) tests, 0 failures\n", told)
    assert found and int(found[1]) >= 17, told
