"""The package for Elixir: formatted, without warnings, and its own tests against the built program."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDER = TOP / "sdk" / "elixir"
EXAMPLE = TOP / "examples" / "session.exs"


@pytest.fixture(scope="module")
def mix():
    """mix("test") in a build folder of its own, without a home and without a network."""
    program = shutil.which("mix")
    if not program:
        pytest.skip("elixir: it is not installed (apt-get install elixir)")
    built = os.environ.get("CAISSON") or TOP / "build" / "caisson"
    with tempfile.TemporaryDirectory(prefix="caisson-elixir-") as home:
        env = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8", "CAISSON": str(pathlib.Path(built).resolve()),
               "MIX_ENV": "test", "MIX_BUILD_PATH": f"{home}/build", "HEX_OFFLINE": "1", "ERL_CRASH_DUMP_BYTES": "0"}

        def run(*words, program=program, cwd=FOLDER):
            done = subprocess.run([program, *words], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=120, encoding="utf-8", errors="replace")
            assert done.returncode == 0, done.stdout[-8000:]
            return done.stdout

        yield run


def test_it_is_formatted(mix):
    mix("format", "--check-formatted")
    mix("format", "--check-formatted", str(EXAMPLE))


def test_it_compiles_without_warnings(mix):
    mix("compile", "--warnings-as-errors", "--force")


def test_its_own_tests(mix):
    found = re.search(r"(\d+) tests, 0 failures\n", mix("test", "--warnings-as-errors"))
    assert found and int(found[1]) >= 40


@pytest.mark.parametrize("wall, kept", [("process", "kept: sum.py"), ("local", "written in place")])
def test_the_example(mix, tmp_path, wall, kept):
    assert len(EXAMPLE.read_text().splitlines()) < 60
    (tmp_path / "sum.py").write_text("def add(a, b):\n    return a - b\n")
    (tmp_path / "test_sum.py").write_text("import sum\nassert sum.add(2, 2) == 4, sum.add(2, 2)\nprint('passed')\n")
    told = mix(str(EXAMPLE), str(tmp_path), wall, program="elixir", cwd=tmp_path)
    assert "AssertionError: 0" in told and told.endswith(f"{kept}\n"), told
    assert "a + b" in (tmp_path / "sum.py").read_text()
