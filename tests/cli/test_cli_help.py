"""One table, told three times: help, manual page and docs/cli.md agree with it (completion: test_completion.py)."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]


def parse_markdown(text):
    """{command: {flag synopsis}}"""
    commands, name = {}, None
    for line in text.splitlines():
        if line.startswith("## caisson "):
            name = line[len("## caisson "):]
            commands[name] = set()
        row = re.match(r"\| `(-.*?)` \| ", line)
        if row:
            commands[name].add(row[1].replace("\\|", "|"))
    return commands


@pytest.fixture
def table(cli):
    return parse_markdown(cli("help", "--markdown").out)


def test_the_table_is_not_empty(table):
    assert {"doctor", "policy init", "runs ls", "why", "version"} <= set(table)
    assert all("-h, --help" in flags for flags in table.values())


def test_docs_page_is_the_table(cli):
    assert (TOP / "docs" / "cli.md").read_text() == cli("help", "--markdown").out


def test_help_of_each_command_lists_its_flags(cli, table):
    for name, flags in table.items():
        answer = cli("help", *name.split())
        assert answer.status == 0 and answer.out == cli(*name.split(), "--help").out
        listed = set(re.findall(r"^  (-\S.*?)(?:  +\S.*)?$", answer.out, re.M))
        assert listed == flags, name


def test_manual_page_lists_the_same(cli, table):
    text = cli("help", "--man").out
    for section in re.split(r"^\.SS caisson ", text, flags=re.M)[1:]:
        name = section.splitlines()[0]
        flags = {flag.replace("\\-", "-") for flag in re.findall(r"^\.TP\n\.B (.*)$", section, re.M)}
        assert flags == table.pop(name), name
    assert table == {}


def test_manual_page_is_good_roff(cli):
    if not shutil.which("groff"):
        pytest.skip("groff: not installed")
    done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z"], input=cli("help", "--man").out, encoding="utf-8",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
    assert done.returncode == 0 and done.stderr == ""


def test_manual_page_is_good_for_other_readers(cli, tmp_path):
    page = tmp_path / "caisson.1"
    page.write_text(cli("help", "--man").out)
    if not shutil.which("man") or not shutil.which("mandoc"):
        pytest.skip("man, mandoc: not installed")
    done = subprocess.run(["man", "--warnings", "-l", page], env=os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "96"}, encoding="utf-8",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
    assert done.returncode == 0 and done.stderr == "" and "ENVIRONMENT\n" in done.stdout
    done = subprocess.run(["mandoc", "-T", "lint", page], encoding="utf-8", stdout=subprocess.PIPE, timeout=30)
    # A date would change the page with every build; long lines are nothing to a reader.
    found = [line for line in done.stdout.splitlines() if "missing date" not in line and "longer than 80 bytes" not in line]
    assert found == []


def test_first_page_names_every_command(cli, table):
    out = cli("help").out
    assert all(re.search(rf"^  {name} ", out, re.M) for name in table)
    bare = cli()
    assert bare.status == 2 and bare.out == "" and bare.err == out


def test_version(cli):
    assert re.fullmatch(r"caisson \d+\.\d+\.\d+\n", cli("version").out)
    assert cli("--version").out == cli("version").out
    assert cli("version", "--json").json()["result_schema"] == "caisson.result/1"


def not_yet(cli, flag):
    """The values that the table of flags marks as not available yet, and the line."""
    [line] = [line for line in cli("help", "--markdown").out.split("\n## ")[1].splitlines() if re.match(rf"\| `(-., )?--{flag} ", line)]
    return [word.strip(" |`") for word in line.split("not available yet: ")[1].split(",")], line


def test_values_that_do_not_work_yet_are_marked(cli):
    """Each marked value is refused, each other one is not for want of a wall."""
    walls = {wall["name"] for wall in cli("doctor", "--json").json()["walls"]}
    planned, line = not_yet(cli, "backend")
    choices = cli("run", "--backend", "zzz", "--", "true").err.split("Planned: ")[1]
    assert set(planned) == {name.strip() for name in choices.split(",")} and not set(planned) & walls
    assert all(wall in line.split("not available")[0] for wall in walls)
    for name in planned:
        assert "planned and not in this build" in cli("run", "--backend", name, "--", "true").err
    planned, line = not_yet(cli, "network")
    assert planned == ["allow"]
    for mode in planned:
        assert "not available in this build" in cli("run", "--network", mode, "--", "true").err
    planned, line = not_yet(cli, "tier")
    missing = cli("run", "--tier", "zzz", "--", "true").err.split("No wall here reaches: ")[1]
    assert set(planned) <= {name.strip() for name in missing.split(",")}
