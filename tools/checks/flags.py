"""One table of commands is told in several places; they name the same flags.

`caisson help --markdown` is docs/cli.md, byte for byte; the manual page and the help of each
command name what it names. Needs build/caisson; without it the report says so, and CI fails.
"""
import os
import re
import subprocess

PROGRAM, PAGE = "build/caisson", "docs/cli.md"
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-zA-Z0-9])(?![\w-])")
COMMAND = re.compile(r"^#+ `?caisson ([a-z ]+?)`?$", re.M)


def options(text):
    return set(OPTION.findall(text))


def from_roff(text):
    """Roff writes a hyphen as \\- and a font as \\fB."""
    return re.sub(r"\\f[BIRP]", "", text).replace("\\-", "-")


def output(root, *argv):
    run = subprocess.run([os.path.join(root, PROGRAM), "help", *argv], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
    return run.stdout.decode(errors="replace")


def check(root, say):
    if not os.access(os.path.join(root, PROGRAM), os.X_OK):
        if os.environ.get("CSN_CI") == "1":
            say(PROGRAM, 1, "is not built, so nothing was compared")
        return f"not run: no {PROGRAM}"
    markdown = output(root, "--markdown")
    page = os.path.join(root, PAGE)
    if os.path.exists(page):
        with open(page, encoding="utf-8") as file:
            if file.read() != markdown:
                say(PAGE, 1, "is not what `caisson help --markdown` prints")
    else:
        say(PAGE, 1, "is missing: `caisson help --markdown` prints it")
    compare("the manual page", options(from_roff(output(root, "--man"))), options(markdown), say)
    commands = COMMAND.findall(markdown)
    helped = set().union(*(options(output(root, *name.split())) for name in commands))
    if commands:
        compare("the help of the commands", helped, options(markdown), say)
    return f"{len(options(markdown))} flags, {len(commands)} commands"


def compare(where, found, wanted, say):
    for option in sorted(found ^ wanted):
        say(PROGRAM, 1, f"{option} is in {where} only" if option in found else f"{option} is not in {where}")
