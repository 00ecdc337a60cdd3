"""One table, told five times: help, manual page, docs/cli.md, and three completions agree with it."""
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


def long_names(flags):
    return {re.search(r"--[a-z-]+", flag)[0] for flag in flags}


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


def test_first_page_names_every_command(cli, table):
    out = cli("help").out
    assert all(re.search(rf"^  {name} ", out, re.M) for name in table)
    bare = cli()
    assert bare.status == 2 and bare.out == "" and bare.err == out


BASH = r"""
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _caisson
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(cli, tmp_path):
    script = tmp_path / "caisson.bash"
    script.write_text(cli("completion", "bash").out)

    def run(*words):
        done = subprocess.run(["bash", "-c", BASH, "bash", str(script), "caisson", *words], cwd=tmp_path,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30, encoding="utf-8")
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return set(done.stdout.split())

    return run


def test_bash_completes_commands_flags_values(complete, table):
    first = {name.split()[0] for name in table}
    assert complete("") == first
    assert complete("pol") == {"policy"}
    for group in ("policy", "runs"):
        assert complete(group, "") == {name.split()[1] for name in table if name.startswith(group + " ")}
    for name, flags in table.items():
        assert complete(*name.split(), "--") == long_names(flags), name
    assert complete("policy", "show", "--network", "") == {"none", "loopback", "allow", "engine"}
    assert complete("policy", "show", "-n", "l") == {"loopback"}


def test_fish_and_zsh_name_every_flag(cli, table):
    fish, zsh = cli("completion", "fish").out, cli("completion", "zsh").out
    for name, flags in table.items():
        in_fish = set(re.findall(rf"^complete -c caisson -n '__caisson_is {name}' -l ([a-z-]+)", fish, re.M))
        assert {"--" + flag for flag in in_fish} == long_names(flags), name
        line = re.search(rf"^\t'{name}'\) _arguments -s(.*)$", zsh, re.M)[1]
        assert set(re.findall(r"'\*?(--[a-z-]+)=?\[", line)) == long_names(flags), name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_good_syntax(cli, shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell}: not installed")
    script = cli("completion", shell).out
    subprocess.run([shell, "-n"], input=script, encoding="utf-8", check=True, timeout=30)


def test_completion_for_another_shell_is_refused(cli):
    answer = cli("completion", "csh")
    assert answer.status == 2 and "bash, zsh and fish" in answer.err


def test_version(cli):
    assert re.fullmatch(r"caisson \d+\.\d+\.\d+\n", cli("version").out)
    assert cli("--version").out == cli("version").out
    assert cli("version", "--json").json()["result_schema"] == "caisson.result/1"
