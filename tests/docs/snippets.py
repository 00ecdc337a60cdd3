"""Snippets of documentation, for every test that runs them: the fenced blocks of a page, in its order.

A block without a language is a picture, a table or what a program prints, and is not run."""
import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parents[2]


def blocks(page):
    """[(language, text)] of a page, by its path in the tree; of an unmarked block the language is ""."""
    text = (TOP / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)


def snippets(page, language):
    """Texts of the blocks in one language."""
    return [text for kind, text in blocks(page) if kind == language]


def promised(text):
    """What a snippet's comments `# → …` say that it prints."""
    return re.findall(r"# → (.*)$", text, re.M)
