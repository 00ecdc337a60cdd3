"""A header reads as a manual page: every prototype has its sentence, every .c says what it is.

A prototype is documented by a comment right above it or above the group it stands in (no blank
line between), by one on its own line, or by a comment of the same header that names it.
"""
import re

from . import source

INLINE_LINES = 6  # a shorter inline function is its own documentation


def check(root, say):
    count = 0
    for file in source.files(root, ("src", "include")):
        opening(file, say)
        if not file.is_header:
            continue
        if "#pragma once" not in file.text and not re.search(r"#ifndef \w+\n#define \w+", file.text):
            say(file.path, 1, "no #pragma once")
        lines = file.text.split("\n")
        named = set(re.findall(r"\b(\w+)\(", " ".join(c.text for c in file.comments)))
        for name, first, last in prototypes(file):
            count += 1
            if name not in named and not is_documented(file, lines, first, last):
                say(file.path, first, f"{name}: a prototype without a sentence (what, ownership, units, errors)")
    return f"{count} prototypes"


def opening(file, say):
    """A file starts with what it is and why it exists."""
    comment = file.comments[0] if file.comments else None
    if comment is None or comment.first != 1:
        say(file.path, 1, "no opening comment: what this file is and why")


def prototypes(file):
    """(name, first line, last line) of each function declared, or defined at length, in a header."""
    for declaration in file.declarations:
        tokens = source.without_attributes(declaration)
        words = [t.text for t in tokens]
        if words[0] in ("typedef", "_Static_assert", "static_assert") or "=" in words or "{" in words:
            continue
        found = source.parameter_list(tokens)
        if found and found[1] > 0:
            yield found[0], declaration[0].line, declaration[-1].line
    for function in file.functions:
        if function.lines > INLINE_LINES:
            yield function.name, function.first, function.last


def is_documented(file, lines, first, last):
    if any(c.first <= last and c.last >= first for c in file.comments):
        return True
    top = first
    while top > 1 and lines[top - 2].strip():
        top -= 1  # to the first line after the blank one
    return any(top <= c.first and c.last < first and c.is_alone for c in file.comments)
