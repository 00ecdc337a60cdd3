"""Functions and files stay small enough to be read: limits are enforced, medians reported."""
import re
import statistics

from . import source

FUNCTION_LINES, FILE_LINES, COMPLEXITY, NESTING, PARAMETERS = 80, 800, 15, 3, 5
# Names that others call: their parameters are the choice of glibc, and of libmicrohttpd.
GIVEN_PARAMETERS = frozenset(("__vsnprintf_chk", "http_handle"))
BRANCHES = frozenset(("if", "for", "while", "case", "&&", "||", "?"))


def complexity(body):
    """McCabe's number: one, plus one for each place where the path can fork."""
    return 1 + sum(token.text in BRANCHES or is_each(token) for token in body)


def is_each(token):
    """json_array_foreach, list_for_each: loops under another name."""
    return token.kind == "name" and re.search("for_?each", token.text) is not None


class Nesting:
    """How deep control structures lie in each other; an else-if is as deep as its if."""

    def __init__(self, body):
        self.tokens, self.deepest = body, 0
        i = 0
        while i < len(body):
            i = self.statement(i, 0)

    def text(self, i):
        return self.tokens[i].text if i < len(self.tokens) else ""

    def past(self, i):
        return source.close_of(self.tokens, i) + 1

    def statement(self, i, depth):
        """Reads one statement at `i`; returns the index after it."""
        word = self.text(i)
        if word == "{":
            return self.block(i, depth)
        if word == "if":
            return self.choice(i, depth)
        if word in ("for", "while", "switch") or self.is_loop_macro(i):
            return self.inner(self.past(i + 1), depth)
        if word == "do":
            i = self.inner(i + 1, depth)
            return self.past(i + 1) + 1  # while ( ... ) ;
        if word in ("case", "default") or (self.text(i + 1) == ":" and self.tokens[i].kind == "name"):
            return self.label(i, depth)
        return self.expression(i)

    def inner(self, i, depth):
        self.deepest = max(self.deepest, depth + 1)
        return self.statement(i, depth + 1)

    def block(self, i, depth):
        i += 1
        while i < len(self.tokens) and self.text(i) != "}":
            i = self.statement(i, depth)
        return i + 1

    def choice(self, i, depth):
        i = self.inner(self.past(i + 1), depth)
        if self.text(i) != "else":
            return i
        if self.text(i + 1) == "if":
            return self.choice(i + 1, depth)
        return self.inner(i + 1, depth)

    def label(self, i, depth):
        questions = 0
        while i < len(self.tokens):
            questions += self.text(i) == "?"
            if self.text(i) == ":":
                if questions == 0:
                    break
                questions -= 1
            i += 1
        i += 1
        return i if self.text(i) in ("}", "") else self.statement(i, depth)

    def is_loop_macro(self, i):
        """`json_array_foreach(a, b, c) ...` or any other `name(...) {`"""
        if self.text(i + 1) != "(" or self.tokens[i].kind != "name" or self.text(i) in source.KEYWORDS:
            return False
        return is_each(self.tokens[i]) or self.text(self.past(i + 1)) == "{"

    def expression(self, i):
        while i < len(self.tokens) and self.text(i) != ";":
            i = self.past(i) if self.text(i) in ("(", "[", "{") else i + 1
        return i + 1


def measure(function):
    """(what, value, limit) of one function."""
    return (("lines", function.lines, FUNCTION_LINES),
            ("complexity", complexity(function.body), COMPLEXITY),
            ("nesting", Nesting(function.body).deepest, NESTING),
            ("parameters", source.count_parameters(function.params), PARAMETERS))


def check(root, say):
    values = {}
    for file in source.files(root):
        if file.line_count > FILE_LINES:
            say(file.path, 1, f"{file.line_count} lines, at most {FILE_LINES}: two nouns in one file?")
        for function in file.functions:
            for what, value, limit in measure(function):
                if what == "parameters" and function.name in GIVEN_PARAMETERS:
                    continue
                values.setdefault(what, []).append(value)
                if value > limit:
                    say(file.path, function.first, f"{function.name}: {what} {value}, at most {limit}")
            if file.path.startswith("src/"):
                conditional(file, function, say)
    return report(values)


def conditional(file, function, say):
    for token in file.tokens:
        if (token.in_directive and token.text in ("if", "ifdef", "ifndef") and
                function.first < token.line < function.last):
            say(file.path, token.line, f"{function.name}: #{token.text} inside a function is another file")
            return


def report(values):
    if not values:
        return "no functions"
    ordered = sorted(values["lines"])
    p90 = ordered[min(len(ordered) - 1, len(ordered) * 9 // 10)]
    return (f"{len(ordered)} functions; median lines {statistics.median(ordered):g}, p90 {p90}; " +
            ", ".join(f"median {what} {statistics.median(found):g}"
                      for what, found in values.items() if what != "lines"))
