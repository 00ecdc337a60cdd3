"""Documents tell the truth where a script can see it: links lead somewhere, the tree of
ARCHITECTURE.md is the tree, targets of the Makefile and files that a text or a comment names exist."""
import os
import re

from . import source

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
# The same in HTML, and where [text][name] leads.
ELSE = re.compile(r"""<(?:img|a|source)\s[^>]*?(?:src|href)=["']([^"'\s]+)["']|^\[[^\]\n]+\]:\s+(\S+)""", re.M)
HEADING = re.compile(r"^#+\s+(.+?)\s*#*$", re.M)
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
PLACE = re.compile(r"^([\w.][\w./-]*/?)  ")
# A file of this tree, named in running text. NAME stands for any name.
NAMED = re.compile(r"(?<![\w./-])((?:docs|tests|tools|profiles|src|fuzz|bench|examples)/[\w./-]*\.(?:md|py|c|h|profile|sh|build))\b")
SKIPPED = ("build", ".git", "node_modules")


def documents(root):
    for where, dirs, names in os.walk(root):
        dirs[:] = sorted(d for d in dirs if not d.startswith(SKIPPED) and d != "corpus")
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(where, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def anchors(text):
    """GitHub's: lower case, without punctuation, blanks as hyphens."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            for title in HEADING.findall(FENCE.sub("", text))}


def without_code(text):
    """Fences and code spans blanked, line numbers kept."""
    text = FENCE.sub(lambda m: "\n" * m.group().count("\n"), text)
    return re.sub(r"`[^`\n]*`", "", text)


def check(root, say):
    count = 0
    for path in documents(root):
        text = read(root, path)
        prose = without_code(text)
        for match in [*LINK.finditer(prose), *ELSE.finditer(prose)]:
            count += 1
            target = next(filter(None, match.groups()))
            link(root, path, prose.count("\n", 0, match.start()) + 1, target, text, say)
        targets(root, path, text, say)
        named(root, path, 1, FENCE.sub(lambda m: "\n" * m.group().count("\n"), text), say)
    for file in source.files(root):
        for comment in file.comments:
            named(root, file.path, comment.first, comment.text, say)
    tree(root, say)
    walls(root, say)
    return f"{count} links"


def link(root, path, line, target, text, say):
    if re.match(r"[a-z]+:", target):
        if not target.startswith(("https://", "mailto:")):
            say(path, line, f"{target}: links are https")
        return
    name, _, anchor = target.partition("#")
    file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
    if not os.path.exists(os.path.join(root, file)):
        say(path, line, f"{target}: no such file")
        return
    if anchor and file.endswith(".md"):
        if anchor not in anchors(text if not name else read(root, file)):
            say(path, line, f"{target}: no such heading")


def named(root, path, first, text, say):
    """A defence names its test: the test must be there."""
    for match in NAMED.finditer(text):
        if "NAME" not in match.group(1) and not os.path.exists(os.path.join(root, match.group(1))):
            say(path, first + text.count("\n", 0, match.start()), f"{match.group(1)}: no such file")


def targets(root, path, text, say):
    makefile = os.path.join(root, "Makefile")
    if not os.path.exists(makefile):
        return
    known = set(re.findall(r"^([a-z]+):", read(root, "Makefile"), re.M))
    for match in re.finditer(r"(?:^|`)(?:\$ )?make ([a-z]+)", text, re.M):
        if match.group(1) not in known:
            say(path, text.count("\n", 0, match.start()) + 1, f"make {match.group(1)}: no such target")


def tree(root, say):
    """Each line `name  what it is` of ARCHITECTURE.md's fence that begins with `tree`."""
    if not os.path.exists(os.path.join(root, "ARCHITECTURE.md")):
        return
    text = read(root, "ARCHITECTURE.md")
    match = re.search(r"^```tree\n(.*?)^```", text, re.M | re.S)
    if not match:
        say("ARCHITECTURE.md", 1, "no ```tree block")
        return
    first = text.count("\n", 0, match.start(1)) + 1
    named = set()
    for offset, line in enumerate(match.group(1).split("\n")):
        place = PLACE.match(line)
        if place:
            named.add(place.group(1).rstrip("/"))
            if not os.path.exists(os.path.join(root, place.group(1))):
                say("ARCHITECTURE.md", first + offset, f"{place.group(1)} is in the tree and not on the disk")
    for room in rooms(root):
        if room not in named:
            say("ARCHITECTURE.md", first, f"{room} is on the disk and not in the tree")


def rooms(root):
    """Folders of code: rooms with a file in them, and top-level folders with any."""
    top = os.path.join(root, "src")
    if os.path.isdir(top):
        for name in sorted(os.listdir(top)):
            folder = os.path.join(top, name)
            if os.path.isdir(folder) and any(n.endswith((".c", ".h")) for n in os.listdir(folder)):
                yield f"src/{name}"
    for name in sorted(os.listdir(root)):
        folder = os.path.join(root, name)
        if name.startswith((".", "build")) or name == "src" or not os.path.isdir(folder):
            continue
        if any(files for _, _, files in os.walk(folder)):
            yield name


def walls(root, say):
    """The README's table of walls says `here` of what src/backend has, and `planned` of the rest."""
    if not os.path.exists(os.path.join(root, "README.md")):
        return
    built = set()
    for folder, _, files in os.walk(os.path.join(root, "src/backend")):
        for name in files:
            built.update(re.findall(r'^\t\.name = "(\w+)"', read(root, os.path.join(folder, name)), re.M))
    for number, line in enumerate(read(root, "README.md").split("\n"), 1):
        match = re.match(r"\| (`\w+`(?:, `\w+`)*) \|.*\| (here|planned) \|$", line)
        if not match:
            continue
        names = re.findall(r"\w+", match.group(1))
        here = any(name in built for name in names)
        if here != (match.group(2) == "here"):
            say("README.md", number, f"{names[0]} is {'here' if here else 'not here'}, and the table says {match.group(2)}")
