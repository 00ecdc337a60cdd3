#!/usr/bin/python3
"""tools/gen-verdicts.py [--check]: docs/verdicts.md from tests/escape.

The page is the table of expected verdicts beside what each attack says of itself; a test
compares (--check), and the escape suite holds the table against the walls.
"""
import pathlib
import re
import sys
import textwrap

TOP = pathlib.Path(__file__).resolve().parent.parent
ATTACKS = TOP / "tests/escape"
PAGE = TOP / "docs/verdicts.md"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ATTACKS))
from verdicts import VERDICTS, WALLS  # noqa: E402

HEAD = """# Verdicts

What each attack of the escape suite comes to, behind each wall. This page is made by
`tools/gen-verdicts.py` from the table in `tests/escape/verdicts.py`; the suite runs the attacks, behind process and landlock started by
root and by an ordinary user, behind docker (with a daemon of root's) by an ordinary user, behind podman, oci (runc and crun) and gvisor by
root, and fails where a wall answers otherwise. Of the latter, tests/escape/contained.py names those that each run makes, and how to make all.

| word | means |
| --- | --- |
| denied | refused by the kernel or by the monitor |
| not visible | there is nothing to attack: the thing does not exist inside |
| limited | a limit ended it |
| allowed | it works; the note says why that gives nothing away |
| **open** | it works and should not: a known hole |

A program is named after its file in `tests/escape`. Events are what the result records; none means that the attempt
leaves no violation, because it fails like any mistake of an innocent program.

"""


def comment_of(attack):
    """(what it does, what it would gain) from the file's first comment."""
    python, c = ATTACKS / f"{attack}.py", ATTACKS / f"{attack}.c"
    text = python.read_text() if python.exists() else c.read_text()
    pattern = r'\A"""(.*?)"""' if python.exists() else r"\A/\*(.*?)\*/"
    text = re.sub(r"^ ?\* ?", "", re.search(pattern, text, re.S).group(1).strip(), flags=re.M)
    text = textwrap.dedent(text)
    does, _, gains = text.partition("Would gain:")
    return " ".join(does.split()), " ".join(gains.split())


def cell(verdict):
    word = "**open**" if verdict.broken else verdict.word.replace("_", " ")
    if verdict.ends not in ("exited", "refused"):
        word += f", ends `{verdict.ends}`"
    if verdict.or_ends:
        word += f", may end `{verdict.or_ends}`"
    return word + "".join(f"<br>`{event}`" for event in verdict.events)


def wall_cell(row, wall):
    others = {"started by a user": row.get(f"{wall}_user"), "before Linux 6.12": row.get(f"{wall}_unscoped"),
              "before Linux 6.12, started by a user": row.get(f"{wall}_unscoped_user")}
    return cell(row[wall]) + "".join(f"<br>{when}: {cell(verdict)}" for when, verdict in others.items() if verdict)


def notes_of(row):
    seen = []
    for verdict in row.values():
        for name, word in sorted(verdict.but.items()):
            seen.append(f"*{name}*: {word.replace('_', ' ')}.")
        seen += [verdict.why] if verdict.why else []
        seen += [f"Open: {verdict.broken}"] if verdict.broken else []
    return list(dict.fromkeys(seen))


def page():
    out = [HEAD, "| attack | what it does | " + " | ".join(WALLS) + " |", "\n| --- | --- |" + " --- |" * len(WALLS), "\n"]
    for attack in sorted(VERDICTS):
        row = VERDICTS[attack]
        does, gains = comment_of(attack)
        notes = "".join(f" {note}" for note in notes_of(row))
        out.append(f"| `{attack}` | {does} *Would gain:* {gains}{notes} | " +
                   " | ".join(wall_cell(row, wall) for wall in WALLS) + " |\n")
    out.append(f"\n{len(VERDICTS)} attacks.\n")
    return "".join(out)


def main():
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
        return 0
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    print("docs/verdicts.md is not what tests/escape says: run tools/gen-verdicts.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
