"""clang-format has nothing to say. Version 14 judges: others break lines differently."""
import re
import shutil
import subprocess

from . import source

VERSION = "14"
WARNING = re.compile(r"^(.+?):(\d+):\d+: (?:error|warning): ")


def formatter():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        if shutil.which(name):
            text = subprocess.run([name, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
            if re.search(rf"version {VERSION}\.", text):
                return name
    return None


def check(root, say):
    name = formatter()
    if name is None:
        say("tools/setup", 1, f"no clang-format {VERSION}: run `tools/setup check`")
        return "not run"
    paths = [file.path for file in source.files(root)]
    if not paths:
        return "no files"
    run = subprocess.run([name, "--dry-run", "-Werror", "--style=file", *paths], cwd=root,
                         stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    bad = {}
    for line in run.stderr.decode(errors="replace").split("\n"):
        match = WARNING.match(line)
        if match:
            bad.setdefault(match.group(1), int(match.group(2)))
    for path, line in bad.items():
        say(path, line, f"run {name} -i {path}")
    if run.returncode and not bad:
        say(".clang-format", 1, run.stderr.decode(errors="replace").strip()[:200])
    return f"{len(paths)} files"
