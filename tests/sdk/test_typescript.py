"""The package for TypeScript: built and packed as npm does it, its tests run by Node's own runner.

The package is copied into the build folder, where npm installs the compiler by the lock file: nothing of that is
ever in the tree.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
SOURCE = TOP / "sdk" / "typescript"
BUILD = pathlib.Path(os.environ.get("CAISSON_BUILD") or TOP / "build").resolve()
CAISSON = os.environ.get("CAISSON") or str(BUILD / "caisson")
NODE_MIN = 20
TESTS = sorted(path.name.removesuffix(".test.ts") for path in (SOURCE / "test").glob("*.test.ts"))


def run(*argv, cwd, timeout=240, **more):
    done = subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, **more)
    assert done.returncode == 0, f"{argv}: status {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def install(folder):
    """What the lock file names, once for each state of it."""
    lock = (folder / "package-lock.json").read_bytes()
    stamp = folder / "node_modules" / ".installed"
    if not stamp.exists() or stamp.read_bytes() != lock:
        run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
        stamp.write_bytes(lock)


@pytest.fixture(scope="module")
def package():
    """The package beside the table of calls, built, with its tests."""
    assert shutil.which("node") and shutil.which("npm"), "node and npm are missing: install Node.js 20 or later"
    version = run("node", "--version", cwd=TOP)
    assert int(version.lstrip("v").split(".")[0]) >= NODE_MIN, f"Node.js is {version}: install {NODE_MIN} or later"
    place = BUILD / "sdk"
    folder = place / "typescript"
    for name in ("src", "test", "dist", "dist-test"):
        shutil.rmtree(folder / name, ignore_errors=True)
    shutil.copytree(SOURCE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules", "dist", "dist-test"))
    shutil.copytree(TOP / "sdk" / "conformance", place / "conformance", dirs_exist_ok=True)
    install(folder)
    run("npm", "run", "--silent", "build", cwd=folder)
    run("npm", "run", "--silent", "build:test", cwd=folder)
    return folder


@pytest.mark.parametrize("name", TESTS)
def test_of_the_package(package, name, tmp_path):
    env = os.environ | {"CAISSON": CAISSON, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    out = run("node", "--test", "--test-reporter=tap", f"dist-test/{name}.test.js", cwd=package, env=env)
    count = {word: int(number) for word, number in re.findall(r"^# (tests|pass|fail|skipped|todo) (\d+)$", out, re.M)}
    assert count["tests"] > 0 and count["pass"] == count["tests"], count


def test_what_is_packed(package):
    """What users download: the compiled files, their types, nothing of the tests; and no dependency."""
    told = json.loads(run("npm", "pack", "--dry-run", "--json", "--ignore-scripts", cwd=package))
    names = {file["path"] for file in told[0]["files"]}
    modules = {path.stem for path in (package / "src").glob("*.ts")}
    assert names == {f"dist/{name}.{kind}" for name in modules for kind in ("js", "d.ts")} | {"package.json", "README.md", "LICENSE"}
    about = json.loads((package / "package.json").read_text())
    assert "dependencies" not in about and about["type"] == "module"


def test_lock_file_names_no_place():
    lock = json.loads((SOURCE / "package-lock.json").read_text())
    assert not [name for name, entry in lock["packages"].items() if "resolved" in entry]
    about = json.loads((SOURCE / "package.json").read_text())
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in about["devDependencies"].values())


def test_version_is_the_programs():
    about = json.loads((SOURCE / "package.json").read_text())
    said = run(CAISSON, "version", cwd=TOP)
    assert about["version"] in said
