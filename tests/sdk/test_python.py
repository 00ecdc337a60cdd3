"""sdk/python: installed as a user would, then its own tests by the built program, its types and its form.

The virtual environment is kept in the build folder, until what it is made from changes."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "tests/docs")]
from snippets import snippets  # noqa: E402

PACKAGE = TOP / "sdk/python"
BUILD = pathlib.Path(os.environ.get("CAISSON_BUILD") or TOP / "build").resolve()
HEAVY = os.environ.get("CSN_SDK_HEAVY") == "1"  # frameworks whose installation takes long, too


def run(*argv, timeout=300, **more):
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=timeout, encoding="utf-8", **more)
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def environment(*names):
    """The interpreter of a virtual environment with what these lists of requirements name."""
    files = [PACKAGE / "tests" / name for name in names]
    made_from = "".join(file.read_text(encoding="utf-8") for file in files) + sys.version
    folder = BUILD / f"sdk-python-{hashlib.sha256(made_from.encode()).hexdigest()[:12]}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, "-m", "venv", folder)
        flags = [word for file in files for word in ("-r", file)]
        run(folder / "bin/pip", "install", "-q", "--no-compile", "--only-binary", ":all:",
            "--disable-pip-version-check", *flags, timeout=900)
        (folder / "complete").touch()
    return folder / "bin/python"


@pytest.fixture(scope="module")
def python():
    """An interpreter that has what the tests need, and not the package."""
    return environment("requirements.txt", *(["requirements-heavy.txt"] if HEAVY else []))


@pytest.fixture(scope="module")
def installed(python, tmp_path_factory):
    """The package in a folder of its own, from a copy: an installation writes beside its sources."""
    copy = tmp_path_factory.mktemp("copy") / "python"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__", ".*_cache"))
    target = tmp_path_factory.mktemp("installed")
    run(python, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--no-index",
        "--disable-pip-version-check", "--target", target, copy)
    assert (target / "caisson/py.typed").exists()
    return target


def pytest_of(python, installed, *words):
    env = os.environ | {"PYTHONPATH": str(installed), "PYTHONPYCACHEPREFIX": str(BUILD / "sdk-python-cache")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # frameworks are large: each is compiled once, where it is imported
    told = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=40", *words, env=env)
    assert "passed" in told and "skipped" not in told, told


def test_its_own_tests(python, installed):
    pytest_of(python, installed, "-W", "error::ResourceWarning", PACKAGE / "tests")


@pytest.mark.skipif(not HEAVY, reason="CSN_SDK_HEAVY: takes long to install")
def test_frameworks_that_stand_apart(installed):
    """They ask for other versions of what the rest needs."""
    pytest_of(environment("requirements-apart.txt"), installed, PACKAGE / "tests/apart")


def test_the_page_says_how_to_install_it(tmp_path):
    """Its first lines as they stand there, in a tree of their own."""
    steps = snippets("docs/python.md", "sh")[0]
    shutil.copytree(PACKAGE, tmp_path / "sdk/python", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    env = os.environ | {"HOME": str(tmp_path), "CAISSON": os.environ.get("CAISSON") or str(BUILD / "caisson")}
    run("sh", "-euc", steps, cwd=tmp_path, env=env)
    (tmp_path / "project").mkdir()
    said = run(tmp_path / ".venvs/caisson/bin/python3", TOP / "examples/dev_server.py", "project", env=env, cwd=tmp_path)
    assert "status 200" in said


def test_types(python):
    """Its own, and of the adapters against tests/stubs."""
    run(python, "-m", "mypy", "--config-file", PACKAGE / "pyproject.toml", "--cache-dir", BUILD / "sdk-python-mypy",
        cwd=PACKAGE)


@pytest.mark.skipif(not HEAVY, reason="CSN_SDK_HEAVY: takes long to install")
def test_adapters_against_the_frameworks_own_types(python, tmp_path):
    """The stubs promise what is there. Two of the frameworks have no types, one stands apart."""
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\nmypy_path = " + str(PACKAGE / "src") + "\n")
    names = [f"caisson.adapters.{name}" for name in ("openai_agents", "pydantic_ai", "inspect_ai", "autogen", "deepagents")]
    run(python, "-m", "mypy", "--config-file", tmp_path / "mypy.ini", "--cache-dir", BUILD / "sdk-python-mypy-real",
        *[word for name in names for word in ("-m", name)], timeout=600)


def test_form(python):
    ruff = python.parent / "ruff"
    run(ruff, "format", "--no-cache", "--check", PACKAGE)
    run(ruff, "check", "--no-cache", PACKAGE)
