"""C as the checks see it: tokens without comments and strings, and the functions among them.

Not a compiler: macros are not expanded and both branches of an #if are read. Directives are
tokens with `in_directive` set, so that a rule can look into macros while the function parser
passes over them.
"""
import os
import re

FOLDERS = ("src", "include", "fuzz", "tests", "bench", "tools", "profiles", "examples")
KEYWORDS = frozenset("if for while switch do else return sizeof case default goto break continue "
                     "typeof __typeof__ _Alignof _Static_assert __attribute__ asm __asm__".split())

TOKEN = re.compile(r"""
    (?P<comment> /\*.*?\*/ | //[^\n]* )
  | (?P<string>  (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" )
  | (?P<char>    [uUL]?'(?:\\.|[^'\\\n])*' )
  | (?P<name>    [A-Za-z_]\w* )
  | (?P<number>  \.?\d(?:[eEpP][+-]|[\w.])* )
  | (?P<op>      \.\.\. | -> | \+\+ | -- | && | \|\| | <<= | >>= | << | >> | [-+*/%&|^<>=!]= | \#\# | . )
""", re.X | re.S)
SPACE = re.compile(r"(?:[ \t\r\f\v]|\\\n)+")


class Token:
    __slots__ = ("kind", "text", "line", "in_directive")

    def __init__(self, kind, text, line, in_directive):
        self.kind, self.text, self.line, self.in_directive = kind, text, line, in_directive

    def __repr__(self):
        return f"{self.text}@{self.line}"


class Comment:
    __slots__ = ("text", "first", "last", "is_alone")

    def __init__(self, text, first, last, is_alone):
        self.text, self.first, self.last, self.is_alone = text, first, last, is_alone


class Function:
    """A definition. `first` and `last` are lines; `body` are the tokens within its braces."""

    def __init__(self, name, first, last, params, body, head):
        self.name, self.first, self.last = name, first, last
        self.params, self.body, self.head = params, body, head

    @property
    def lines(self):
        return self.last - self.first + 1


class File:
    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            self.text = file.read()
        self.line_count = self.text.count("\n") + (not self.text.endswith("\n"))
        self.tokens, self.comments = lex(self.text)
        self.code = [t for t in self.tokens if not t.in_directive]
        self.declarations, self.functions = split(self.code)

    @property
    def is_header(self):
        return self.path.endswith(".h")


def files(root, folders=FOLDERS):
    """Every C file of the tree, in order, without build folders."""
    for folder in folders:
        for where, dirs, names in os.walk(os.path.join(root, folder)):
            dirs.sort()
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield File(root, os.path.relpath(os.path.join(where, name), root))


def lex(text):
    tokens, comments = [], []
    at, line, in_directive, line_is_empty = 0, 1, False, True
    while at < len(text):
        if text[at] == "\n":
            at, line, in_directive, line_is_empty = at + 1, line + 1, False, True
            continue
        space = SPACE.match(text, at)
        if space:
            line += space.group().count("\n")
            at = space.end()
            continue
        match = TOKEN.match(text, at)
        kind, piece = match.lastgroup, match.group()
        if kind == "comment":
            comments.append(Comment(piece, line, line + piece.count("\n"), line_is_empty))
        else:
            if piece == "#" and line_is_empty:
                in_directive = True
            tokens.append(Token(kind, piece, line, in_directive))
            line_is_empty = False
        line += piece.count("\n")
        at = match.end()
    return tokens, comments


def close_of(tokens, start):
    """Index of the bracket that closes the one at `start`, or the last index."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    depth = 0
    for i in range(start, len(tokens)):
        if tokens[i].text in pairs:
            depth += 1
        elif tokens[i].text in (")", "]", "}"):
            depth -= 1
            if depth == 0:
                return i
    return len(tokens) - 1


def without_attributes(tokens):
    """The tokens without `__attribute__((...))`."""
    kept, i = [], 0
    while i < len(tokens):
        if tokens[i].text == "__attribute__" and i + 1 < len(tokens):
            i = close_of(tokens, i + 1) + 1
            continue
        kept.append(tokens[i])
        i += 1
    return kept


def parameter_list(tokens):
    """(name, its index, parameter tokens) of a function declarator, or None."""
    for i in range(1, len(tokens)):
        if tokens[i].text != "(":
            continue
        name = tokens[i - 1]
        if name.kind != "name" or name.text in KEYWORDS:
            return None
        return name.text, i - 1, tokens[i + 1:close_of(tokens, i)]
    return None


def count_parameters(tokens):
    """`...` is not one: a format's arguments are the format's business."""
    if not tokens or [t.text for t in tokens] == ["void"]:
        return 0
    depth, count = 0, 1
    for i, token in enumerate(tokens):
        depth += token.text in ("(", "[", "{")
        depth -= token.text in (")", "]", "}")
        if token.text == "," and depth == 0:
            count += tokens[i + 1].text != "..."
    return count


def split(code):
    """Cuts a file's top level into declarations (lists of tokens) and functions."""
    declarations, functions = [], []
    start = i = 0
    while i < len(code):
        text = code[i].text
        if text == "{":
            head = without_attributes(code[start:i])
            words = [t.text for t in head]
            if words[:1] == ["extern"] and len(head) == 2:  # extern "C" {
                start = i = i + 1
                continue
            end = close_of(code, i)
            if words and words[-1] == ")" and "=" not in words:
                found = parameter_list(head)
                if found:
                    functions.append(Function(found[0], code[start].line, code[end].line, found[2],
                                              code[i + 1:end], head))
                    start = i = end + 1
                    continue
            i = end + 1
        elif text in ("(", "["):
            i = close_of(code, i) + 1
        elif text == ";":
            if i > start:
                declarations.append(code[start:i])
            start = i = i + 1
        elif text == "}":  # of an extern "C"
            start = i = i + 1
        else:
            i += 1
    return declarations, functions
