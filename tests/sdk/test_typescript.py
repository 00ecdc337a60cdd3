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
import sys

import nodejs
import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "tests/docs")]
from snippets import blocks, snippets  # noqa: E402

SOURCE = TOP / "sdk" / "typescript"
BUILD = pathlib.Path(os.environ.get("CAISSON_BUILD") or TOP / "build").resolve()
CAISSON = os.environ.get("CAISSON") or str(BUILD / "caisson")
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
    nodejs.ready()
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
    argv = ["node", "--test", "--test-reporter=tap", f"dist-test/{name}.test.js"]
    done = subprocess.run(argv, cwd=package, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
    out = done.stdout
    failed = re.findall(r"^ *not ok .*\n *---\n(?:.*\n)*? *\.\.\.$", out, re.M)
    assert done.returncode == 0 and not failed, "\n".join(failed) or out[-3000:] + done.stderr[-3000:]
    count = {word: int(number) for word, number in re.findall(r"^# (tests|pass|fail|skipped|todo) (\d+)$", out, re.M)}
    assert count["tests"] > 0 and count["pass"] == count["tests"], count


def compiled(package, folder, name, text):
    """A program that imports the package as users do, compiled: Node 20 strips no types."""
    (folder / "node_modules").mkdir(exist_ok=True)
    (folder / "node_modules" / "caisson").symlink_to(package)
    (folder / "node_modules" / "@types").symlink_to(package / "node_modules" / "@types")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / f"{name}.ts").write_text(text)
    tsc = package / "node_modules" / ".bin" / "tsc"
    run(tsc, "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022", f"{name}.ts", cwd=folder)
    return folder / f"{name}.js"


def node(script, *words, cwd, tmp_path):
    env = os.environ | {"CAISSON": CAISSON, "HOME": str(tmp_path)}
    return subprocess.run(["node", script, *words], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60)


@pytest.mark.parametrize("page", ["docs/typescript.md", "sdk/typescript/README.md"])
def test_snippets_of_a_page(package, page, tmp_path):
    """They are one program, and print what the page says."""
    script = compiled(package, tmp_path, "page", "".join(snippets(page, "ts")))
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\ntwo\n")
    (work / "Makefile").write_text("test:\n\techo made\n")
    done = node(script, cwd=work, tmp_path=tmp_path)
    assert done.returncode == 0, done.stderr
    at = 0
    for expected in (text for kind, text in blocks(page) if kind == "text"):
        for line in expected.splitlines():
            found = done.stdout.find(line, at)
            assert found >= 0, f"{line!r} is not in {done.stdout[at:]!r}"
            at = found + len(line)


def test_example_streams(package, tmp_path):
    source = (TOP / "examples" / "stream.ts").read_text()
    assert len(source.splitlines()) < 60
    script = compiled(package, tmp_path, "stream", source)
    work = tmp_path / "work"
    work.mkdir()
    text = "echo one; echo two >&2; echo x >new; printf grüße; : <>/dev/tcp/192.0.2.1/80; exit 4"
    done = node(script, str(work), text, cwd=tmp_path, tmp_path=tmp_path)
    assert done.returncode == 4, done.stderr
    assert {"stdout | one", "stderr | two", "stdout | grüße", "added new"} <= set(done.stdout.splitlines())
    assert "exited, status 4" in done.stdout and "! NetworkAccessViolation: " in done.stderr
    refused = node(script, str(tmp_path / "none"), "true", cwd=tmp_path, tmp_path=tmp_path)
    assert refused.returncode == 125 and "none" in refused.stderr and "    at " not in refused.stderr


def test_the_page_says_how_to_install_it(package, tmp_path):
    """Its first lines as they stand there, in a tree of their own, and then the example by its own line."""
    [steps] = snippets("docs/typescript.md", "sh")
    shutil.copytree(SOURCE, tmp_path / "sdk/typescript", ignore=shutil.ignore_patterns("node_modules", "dist*"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "package.json").write_text("{}")
    source = shutil.copy(TOP / "examples/stream.ts", project)
    [compiling] = re.findall(r"^// +(npx tsc .*?\.ts)\b", pathlib.Path(source).read_text(), re.M)
    cache = run("npm", "config", "get", "cache", cwd=TOP).strip()
    env = os.environ | {"HOME": str(tmp_path), "CAISSON": CAISSON, "npm_config_cache": cache}
    run("sh", "-euc", f"{steps}{compiling}", cwd=tmp_path, env=env)
    assert "stdout | hi\n" in run("node", "stream.js", ".", "echo hi", cwd=project, env=env)


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
