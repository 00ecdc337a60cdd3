"""Words that must not be in the tree: paths of one person's machine, and work left for later."""
import os
import re

SKIPPED = ("build", ".git", "node_modules", "__pycache__", ".pytest_cache")
# Written in pieces, so that this file passes its own check.
WORDS = (
    (re.compile(r"(?<![\w.%}/*-])/" + r"work/"), "a path of one machine"),
    (re.compile(r"/home/(?!(?:\w|me|user|you|alice|bob)\b)\w+/"), "a path of one machine"),
    (re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?!XX)"), "do it, or write an entry where the plan is kept"),
    (re.compile(r"<{7} |>{7} "), "an unresolved merge"),
)


def check(root, say):
    count = 0
    for where, dirs, names in os.walk(root):
        dirs[:] = sorted(d for d in dirs if not d.startswith(SKIPPED) and d not in ("corpus", ".cache"))
        for name in sorted(names):
            path = os.path.join(where, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                data = file.read(1 << 20)
            if b"\0" in data:
                continue
            count += 1
            text(os.path.relpath(path, root), data.decode("utf-8", errors="replace"), say)
    return f"{count} files"


def text(path, content, say):
    for pattern, why in WORDS:
        for match in pattern.finditer(content):
            say(path, content.count("\n", 0, match.start()) + 1, f"'{match.group().strip()}': {why}")
