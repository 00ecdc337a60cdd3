"""`help` and the man pages name the same options. Needs a built program; without one or without
man pages there is nothing to compare, and the report says so.

`caisson help` lists the commands (two blanks, a name); `caisson help NAME` prints one command's
options. The man page of a command is docs/man/caisson-NAME.1, that of the program caisson.1.
"""
import os
import re
import subprocess

PROGRAM = "build/caisson"
MANUAL = "docs/man"
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-zA-Z0-9])(?![\w-])")


def options(text):
    return set(OPTION.findall(text))


def from_roff(text):
    """Roff writes a hyphen as \\- and a font as \\fB."""
    return re.sub(r"\\f[BIRP]", "", text).replace("\\-", "-")


def check(root, say):
    program, manual = os.path.join(root, PROGRAM), os.path.join(root, MANUAL)
    if not os.access(program, os.X_OK):
        return "not run: no build/caisson"
    if not os.path.isdir(manual):
        return "not run: no man pages"
    count = 0
    for name in sorted(os.listdir(manual)):
        match = re.match(r"caisson(?:-(\w+))?\.1$", name)
        if not match:
            continue
        count += 1
        argv = [program, "help"] + ([match.group(1)] if match.group(1) else [])
        run = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=20)
        helped = options(run.stdout.decode(errors="replace"))
        with open(os.path.join(manual, name), encoding="utf-8") as file:
            printed = options(from_roff(file.read()))
        for option in sorted(helped ^ printed):
            where = "help only" if option in helped else "the man page only"
            say(f"{MANUAL}/{name}", 1, f"{option} is in {where}")
    return f"{count} pages"
