#!/usr/bin/python3
"""tools/gen-tiers.py [--check] CAISSON: docs/tiers.md from the table of walls and the escape suite.

Which walls there are and which tier each reaches is what the built program says; what a wall stops
and shows is what its rows in tests/escape/verdicts.py say. A test compares what the page says of the
walls that it names (--check); whoever adds a wall makes the page anew.
"""
import json
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
PAGE = TOP / "docs/tiers.md"
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tests/escape"))
import verdicts  # noqa: E402

TIERS = ("local", "virtual", "auto", "balanced", "assisted", "strict")
ALIASES = {"assisted": "`HumanApprove`, `human-approve`: with a person's yes", "strict": "`ManualOnly`, `manual-only`: with a person's yes"}
NOTES = {"command": " (a program of yours, on your word)"}
WORDS = ("denied", "not_visible", "limited", "allowed")

HEAD = """# Tiers

A tier is the weakest wall that will do; `any` takes the first usable one of at least that tier, never a weaker one. The default is
`balanced`. `caisson doctor` says which tiers this machine has and how to get the others.
This page is made by `tools/gen-tiers.py` from the program's table of walls and from the escape suite.

"""

KINDS = """
Not in the table, because they are not yet: microVMs (Firecracker, QEMU) for `strict`, and Kubernetes. A tier that no wall reaches is refused:
`TierUnavailable`, and for `strict` `StrictModeUnavailable` where the request asked for it, `StrictModeRequired` where the policy
did, by `tier` or by [`strict_when`](policy.md#strict_when). A person's yes is bound to one start: [approvals](decisions/approvals.md).

## What the tests find, wall by wall

The escape suite runs every attack behind each wall; [verdicts.md](verdicts.md) has each, and says who starts them. An event is
*observed* where an attack of the suite leaves it in the result, whose `not_observed` lists the others. A wall without a row here has not been
through the suite.

"""


def told_by(caisson):
    """What does not depend on the machine: names, tiers, and what holds each."""
    done = subprocess.run([caisson, "doctor", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=60)
    told = json.loads(done.stdout)
    technology = {tier["tier"]: tier["technology"].split("; with")[0] for tier in told["tiers"]}
    return {wall["name"]: wall["tier"] for wall in told["walls"]}, technology


def tier_row(tier, tiers, technology):
    names = ", ".join(f"`{wall}`{NOTES.get(wall, '')}" for wall in tiers if tiers[wall] == tier) or "not yet"
    return f"| `{tier}` | {ALIASES.get(tier, '')} | {technology[tier]} | {names} |\n"


def wall_row(wall, tiers):
    rows = [row[wall] for row in verdicts.VERDICTS.values()]
    counts = [sum(row.word == word and not row.broken for row in rows) for word in WORDS]
    holes = [f"`{attack}`" for attack, row in sorted(verdicts.VERDICTS.items()) if row[wall].broken]
    seen = {event for row in rows for event in (*row.events, *row.may)}
    events = {event for row in verdicts.VERDICTS.values() for one in row.values() for event in (*one.events, *one.may)}
    return (f"| `{wall}` | {tiers.get(wall, '')} | " + " | ".join(map(str, counts)) + f" | {', '.join(holes) or 'none'} | "
            f"{' '.join(sorted(seen))} | {' '.join(sorted(events - seen)) or 'none'} |\n")


def kind_cell(event, wall):
    """What becomes of the attacks that leave this event behind the process wall."""
    rows = [row for row in verdicts.VERDICTS.values() if event in (*row["process"].events, *row["process"].may)]
    here = [row[wall] for row in rows]
    if any(event in (*one.events, *one.may) for one in here):
        return "enforced, observed"
    return "enforced, not observed" if any(one.word != "allowed" and not one.broken for one in here) else "not enforced"


def kinds(walls):
    events = sorted(verdicts.EVENTS)
    out = ["\nBy kind of violation, where the attacks that leave it behind `process` are stopped or limited too:\n\n",
           "| violation | " + " | ".join(f"`{wall}`" for wall in walls) + " |\n" + "| --- " * (len(walls) + 1) + "|\n"]
    return out + [f"| {event} | " + " | ".join(kind_cell(event, wall) for wall in walls) + " |\n" for event in events]


def page(caisson, known=None):
    """`known`: the walls of an older page, which is to be compared; without, all."""
    tiers, technology = told_by(caisson)
    tiers = {wall: tiers[wall] for wall in tiers if known is None or f"`{wall}`" in known}
    out = [HEAD, "| tier | other names | what holds it | walls that reach it, and none higher |\n| --- | --- | --- | --- |\n", *(tier_row(tier, tiers, technology) for tier in TIERS), KINDS,
           "| wall | tier | denied | not visible | limited | allowed | open holes | events observed | not observed |\n" + "| --- " * 9 + "|\n"]
    walls = [wall for wall in verdicts.WALLS if known is None or f"| `{wall}` |" in known]
    out += [wall_row(wall, tiers) for wall in walls]
    out += kinds(walls)
    out.append(f"\n{len(verdicts.VERDICTS)} attacks. `allowed` is what gives nothing away; verdicts.md says why, one by one.\n")
    return "".join(out)


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    if len(words) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(words[0]))
        return 0
    text = PAGE.read_text()
    if text == page(words[0], text):
        return 0
    print("docs/tiers.md is not what the program and tests/escape say: run tools/gen-tiers.py build/caisson")
    return 1


if __name__ == "__main__":
    sys.exit(main())
