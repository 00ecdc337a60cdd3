"""Calls that are never right here, arrays of run-time length, and globals that change."""
from . import source

CALLS = {
    "system": "a shell on the host: build an argv",
    "popen": "a shell on the host: build an argv",
    "strcpy": "no bound: snprintf or memcpy",
    "stpcpy": "no bound: snprintf or memcpy",
    "strcat": "no bound: buf_printf",
    "sprintf": "no bound: snprintf",
    "vsprintf": "no bound: vsnprintf",
    "strtok": "hidden state: strchr or strcspn",
    "atoi": "no range: str_parse_u64",
    "atol": "no range: str_parse_u64",
    "atoll": "no range: str_parse_u64",
    "gets": "no bound",
    "alloca": "no bound: an arena",
    "access": "checked now, used later: open it and handle the error",
    "euidaccess": "checked now, used later: open it and handle the error",
    "eaccess": "checked now, used later: open it and handle the error",
}
# Text becomes a number in one file, with a range.
NUMBERS = {name: "text becomes a number in base/str.c only" for name in
           "strtol strtoul strtoll strtoull strtoimax strtoumax sscanf vsscanf".split()}
NUMBERS_AT_HOME = "src/base/str.c"
# A test that asks whether a file is there asks just that.
IN_TESTS = {"access"}
MUTABLE_ALLOWED = ("src/cli/", "tests/", "fuzz/", "bench/", "tools/", "examples/")
NOT_OBJECTS = frozenset(("typedef", "extern", "_Static_assert", "static_assert", "TAP_MAIN"))


def check(root, say):
    count = 0
    for file in source.files(root):
        count += 1
        calls(file, say)
        arrays(file, say)
        if not file.path.startswith(MUTABLE_ALLOWED):
            mutable(file, say)
    return f"{count} files"


def calls(file, say):
    banned = dict(CALLS)
    if file.path.startswith("src/") and file.path != NUMBERS_AT_HOME:
        banned.update(NUMBERS)
    if file.path.startswith("tests/"):
        banned = {name: why for name, why in banned.items() if name not in IN_TESTS}
    tokens = source.without_attributes(file.tokens)
    for before, token, after in zip([None] + tokens, tokens, tokens[1:]):
        if token.kind != "name" or token.text not in banned or after.text != "(":
            continue
        if before is not None and before.text in (".", "->"):
            continue
        say(file.path, token.line, f"{token.text}(): {banned[token.text]}")


def arrays(file, say):
    """`char name[n]` where n is a parameter or a local: its size comes from whoever calls."""
    for function in file.functions:
        known = {t.text for t in function.params if t.kind == "name" and not t.text.isupper()}
        for statement in statements(function.body):
            for name, size in array_declarations(statement):
                if any(t.kind == "name" and t.text in known for t in without_sizeof(size)):
                    say(file.path, name.line, f"{function.name}: {name.text}[] has a run-time length: an arena, or a constant")
            known.update(t.text for t in statement if t.kind == "name" and not t.text.isupper())


def statements(body):
    piece = []
    for token in body:
        if token.text in (";", "{", "}"):
            yield piece
            piece = []
        else:
            piece.append(token)


def array_declarations(statement):
    """(name, size tokens) of each array if the statement starts like `type name[size]`."""
    words = i = 0
    while i < len(statement):
        token = statement[i]
        if token.text == "[" and words >= 2 and statement[i - 1].kind == "name":
            end = source.close_of(statement, i)
            yield statement[i - 1], statement[i + 1:end]
            i = end
        elif token.kind == "name" and token.text not in source.KEYWORDS:
            words += 1
        elif token.text == "=" and words >= 2:
            i = value_end(statement, i)
        elif token.text != "*" and (token.text != "," or words < 2):
            return
        i += 1


def value_end(statement, i):
    """Index of the last token of the initializer whose `=` is at `i`."""
    while i + 1 < len(statement) and statement[i + 1].text != ",":
        i += 1
        if statement[i].text in ("(", "[", "{"):
            i = source.close_of(statement, i)
    return i


def without_sizeof(tokens):
    """The tokens without `sizeof (...)` and `sizeof a->b.c`, which are constants."""
    kept, i = [], 0
    while i < len(tokens):
        if tokens[i].text not in ("sizeof", "ARRAY_SIZE"):
            kept.append(tokens[i])
            i += 1
        elif i + 1 < len(tokens) and tokens[i + 1].text == "(":
            i = source.close_of(tokens, i + 1) + 1
        else:
            i += 1
            while i < len(tokens) and (tokens[i].kind == "name" or tokens[i].text in (".", "->", "*")):
                i += 1
    return kept


def before_value(words):
    """The words before the initializer's `=`; one within braces is an enum's."""
    depth = 0
    for i, word in enumerate(words):
        depth += (word == "{") - (word == "}")
        if word == "=" and depth == 0:
            return words[:i]
    return words


def mutable(file, say):
    for declaration in file.declarations:
        tokens = source.without_attributes(declaration)
        words = [t.text for t in tokens]
        head = before_value(words)
        if NOT_OBJECTS & set(head) or "(" in head or "const" in head or "constexpr" in head:
            continue
        if head[0] in ("struct", "enum", "union") and (len(head) == 2 or head[-1] == "}"):
            continue
        if len(head) < 2:
            continue
        say(file.path, declaration[0].line, "a global that changes: pass it in "
            f"({' '.join(words[:6])}{' ...' if len(words) > 6 else ''})")


