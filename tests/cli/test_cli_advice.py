"""A refusal names commands; whoever pastes them gets what he asked for."""
import os
import re
import subprocess

import pytest


def paste(answer, caisson, project, env):
    """Runs the first command that a refusal names."""
    command = re.search(r"`(caisson policy (?:init|set)[^`]*)`", answer.err).group(1)
    folder = os.path.dirname(caisson)
    done = subprocess.run(["sh", "-c", command], cwd=project, env=env | {"PATH": f"{folder}:{env['PATH']}"},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, encoding="utf-8")
    assert done.returncode == 0, (command, done.stdout)
    return command


@pytest.mark.parametrize("flags", [["--memory", "4GiB"], ["--memory", "2GiB", "--rw"], ["--network", "loopback", "--timeout", "9m"]], ids=" ".join)
def test_without_a_file_the_two_commands_permit_it(cli, caisson, project, env, flags):
    answer = cli("run", *flags, "--", "true")
    assert answer.status == 125, answer
    assert paste(answer, caisson, project, env).startswith("caisson policy init && caisson policy set ")
    assert cli("run", *flags, "--", "true").status == 0


def test_below_the_project_the_file_goes_into_the_project(cli, caisson, project, env):
    (project / ".git").mkdir()
    sub = project / "a folder"
    sub.mkdir()
    paste(cli("run", "--memory", "2GiB", "--", "true", cwd=sub), caisson, sub, env)
    assert (project / "caisson.yaml").exists() and not (sub / "caisson.yaml").exists()
    assert cli("run", "--memory", "2GiB", "--", "true", cwd=sub).status == 0


@pytest.mark.parametrize("flags", [["--rw"], ["--memory", "4GiB"], ["--env", "FOO"], ["--memory", "2GiB", "--cpus", "3", "--rw"]], ids=" ".join)
def test_with_a_file_one_command_permits_it(cli, caisson, project, env, flags):
    assert cli("policy", "init").out.endswith("written and trusted; from now on flags only narrow it, except as its mount_roots and overrides say\n")
    answer = cli("run", *flags, "--", "true")
    assert answer.status == 125 and "policy init" not in answer.err, answer
    paste(answer, caisson, project, env)
    assert cli("run", *flags, "--", "true").status == 0


def test_a_file_that_is_not_trusted_is_trusted_by_the_command(cli, project):
    (project / "caisson.yaml").write_text("version: 1\n")
    assert "`caisson policy set workspace.mode=rw && caisson policy trust`" in cli("run", "--rw", "--", "true").err


def test_a_named_file_is_named_again(cli, caisson, project, env):
    (project / "my own.yaml").write_text("version: 1\n")
    answer = cli("run", "--policy", "my own.yaml", "--rw", "--", "true")
    paste(answer, caisson, project, env)
    assert cli("run", "--policy", "my own.yaml", "--rw", "--", "true").status == 0


KEYS = [("limts.memory=1GiB", "limits.memory"), ("memory=1GiB", "limits.memory"), ("mem=1GiB", "limits.memory"), ("timeout=3s", "limits.command"),
        ("protect=[]", "workspace.protect"), ("observ=[reads]", "observe")]


@pytest.mark.parametrize("word, meant", KEYS)
def test_a_key_that_is_none_names_the_near_one(cli, word, meant):
    cli("policy", "init")
    answer = cli("policy", "set", word)
    assert answer.status == 1 and f"did you mean {meant}?" in answer.err, answer


def test_a_key_like_no_other(cli):
    cli("policy", "init")
    assert "no key colour, expected one such as" in cli("policy", "set", "colour=1").err


def test_setting_leaves_nothing_twice(cli, project):
    cli("policy", "init")
    for word in ("limits.memory=2GiB", "limits.command=10m", "workspace.hide=[]", "workspace.protect=[a, \"b c\"]", "observe=[reads]"):
        assert cli("policy", "set", word).status == 0
    text = (project / "caisson.yaml").read_text()
    for key in ("limits", " +memory", " +command", "workspace", " +hide", " +protect", "observe"):
        assert len(re.findall(rf"^#?{key}:", text, re.M)) == 1, key
    shown = cli("policy", "show", "--effective").out
    assert "hide: []" in shown and '[a, "b c"]' in shown and "memory: 2GiB" in shown and "[reads]" in shown, shown


def test_what_no_run_does_is_said_when_it_is_set(cli):
    cli("policy", "init")
    answer = cli("policy", "set", "network.mode=allow")
    assert answer.status == 0 and "network.mode; refused by run: " in answer.err, answer
    answer = cli("policy", "set", "limits.memory=2GiB")
    assert answer.status == 0 and answer.err == "", answer


def test_the_summary_advises_what_will_work(cli):
    touch = ("run", "-v", "--", "sh", "-c", "echo > x")
    assert "or ask for --rw." in cli(*touch).err
    cli("policy", "init")
    assert "or ask for `caisson policy set workspace.mode=rw`." in cli(*touch).err


def test_what_show_prints_is_what_set_takes(cli, project):
    """Setting a value again as the file has it leaves every byte where it was, backslashes too."""
    text = 'version: 1\nworkspace:\n  hide: ["a\\\\b", \'c\\d\', \'it\'\'s, [x]\', "q\\"\\u00e9", e]   # five\n  at: "/x\\\\y z"\n'
    file = project / "caisson.yaml"
    file.write_text(text)
    cli("policy", "trust", "--yes")
    shown = dict(re.findall(r"^  (hide|at): (.*)$", cli("policy", "show", "--effective").out, re.M))
    for value in (re.search(r"\[.*\]", text).group(), shown["hide"]):
        assert cli("policy", "set", f"workspace.hide={value}", 'workspace.at="/x\\\\y z"').status == 0
        again = dict(re.findall(r"^  (hide|at): (.*)$", cli("policy", "show", "--effective").out, re.M))
        assert again == shown, value
        assert file.read_text() == text.replace(re.search(r"\[.*\]", text).group(), value)


@pytest.mark.parametrize("value", ['["a\nb"]', '["a\\"]', '["a]', '["a"b]', '[""]', '["\\x41\\z"]'])
def test_a_list_that_no_file_could_have(cli, project, value):
    cli("policy", "init")
    before = (project / "caisson.yaml").read_bytes()
    answer = cli("policy", "set", f"workspace.hide={value}")
    assert answer.status == 1 and (project / "caisson.yaml").read_bytes() == before, answer


def test_a_text_with_blanks_and_a_backslash_is_permitted_by_the_command(cli, caisson, project, env):
    folder = project / "a \\b"
    folder.mkdir()
    cli("policy", "init")
    cli("policy", "set", "workspace.path=src")
    (project / "src").mkdir()
    answer = cli("run", "-w", str(folder), "--", "true")
    assert answer.status == 125, answer
    paste(answer, caisson, project, env)
    assert cli("run", "-w", str(folder), "--", "true").status == 0


def test_what_a_file_leaves_to_flags_is_said(cli, project, tmp_path):
    """Flags only narrow, except as mount_roots and overrides say: what is printed names both, and both do it."""
    for said in (cli("policy", "init").out, cli("help", "run").out):
        assert "flags only narrow" in said and "mount_roots" in said and "overrides" in said, said
    (tmp_path / "data").mkdir()
    flags = [("-m", f"{tmp_path}/data:/x"), ("--memory", "2GiB"), ("--network", "loopback"), ("--backend", "local"), ("--rw",), ("--env", "FOO")]
    assert [cli("run", *flag, "--", "true").status for flag in flags] == [125] * 6
    (project / "caisson.yaml").write_text(f"version: 1\nmount_roots: [{tmp_path}/data]\noverrides: {{per_request: true}}\n")
    cli("policy", "trust", "--yes")
    assert [cli("run", *flag, "--", "true").status for flag in flags] == [0, 0, 0, 125, 125, 125]
