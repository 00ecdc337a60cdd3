#!/usr/bin/env python3
"""Prints src/caisson/_tables.py: what replies may be, from the tables of docs/protocol.md.

python3 sdk/python/tools/tables.py > sdk/python/src/caisson/_tables.py
"""

import pathlib
import re
import sys

DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs" / "protocol.md"
ROW = re.compile(r"^\| `([\w.]+)` \| ([\w ]+) \| (yes)? ?\| (\S+) \|")
# Maps that answer no verb, by the sentence above them.
OTHERS = {
    "READY": "The map of `ready`",
    "VIOLATION": "The map of `fact`: a violation",
    "OPENED": "The reply to `open`",
    "CLOSED": "The reply to `close`",
}
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}


def bound(text):
    number = re.fullmatch(r"(\d+)(KiB|MiB)?", text)
    return int(number[1]) * UNITS.get(number[2], 1) if number else 0


def rows(lines):
    """The rows of the next table, as a tree of keys."""
    keys = {}
    for line in lines:
        match = ROW.match(line)
        if match:
            *above, name = match[1].split(".")
            place = keys
            for part in above:
                place = place[part][3]
            place[name] = (match[2], match[3] == "yes", bound(match[4]), {})
        elif keys:
            break
    return keys


def tables(text):
    """Keys of replies by verb, a monitor's where it says more than an agent; and of other maps by name."""
    replies, others = {}, dict.fromkeys(OTHERS, {})
    lines = text.splitlines()
    verb = None
    for i, line in enumerate(lines):
        heading = re.fullmatch(r"#{2,3} (\w+)", line)
        verb = heading[1] if heading else verb
        if verb and line.startswith("Result:"):
            replies[verb] = {} if "empty" in line else rows(lines[i + 1 :])
        for name, begin in OTHERS.items():
            if line.startswith(begin):
                others[name] = rows(lines[i + 1 :])
    return replies, others


def keys_text(keys, depth):
    pad = "    " * depth
    out = []
    for name, (kind, required, most, below) in keys.items():
        head = f'{pad}"{name}": Key("{kind}", {required}, {most}'
        if below:
            out += [f"{head}, {{", keys_text(below, depth + 1), f"{pad}}}),"]
        else:
            out.append(f"{head}, {{}}),")
    return "\n".join(line for line in out if line)


def main():
    replies, others = tables(DOCUMENT.read_text(encoding="utf-8"))
    print('"""What a sandbox may answer. Printed by tools/tables.py from docs/protocol.md; a test compares."""\n')
    print("from __future__ import annotations\n\nfrom typing import Dict, NamedTuple\n\n")
    print("class Key(NamedTuple):")
    print(
        '    """Of a map: its type, whether it has to be there, its bound (0: none), the keys of the maps in it."""\n'
    )
    print('    kind: str\n    required: bool\n    most: int\n    keys: "Dict[str, Key]"\n\n')
    print("# fmt: off")
    for name, keys in others.items():
        print(f"{name}: Dict[str, Key] = {{", keys_text(keys, 1), "}\n", sep="\n")
    print("REPLIES: Dict[str, Dict[str, Key]] = {")
    for verb, keys in replies.items():
        print(f'    "{verb}": {{', *([keys_text(keys, 2)] if keys else []), "    },", sep="\n")
    print("}\n# fmt: on")


if __name__ == "__main__":
    sys.exit(main())
