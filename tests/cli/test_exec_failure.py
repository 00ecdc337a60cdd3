"""Why a command could not start: another sentence for each cause, and what to type instead."""
import os
import re
import shlex
import subprocess

import pytest

FILES = {
    "gone": ("#!/opt/nothing/python -u\n", 0o755, "the first line of ./gone names /opt/nothing/python, which is not here or inside"),
    "crlf": ("#!/bin/sh\r\necho\r\n", 0o755, "ends with a carriage return, which is taken for a part of /bin/sh: sed -i"),
    "odd": ("#!/opt/\x1b[2J\n", 0o755, "what it needs to start is not shown inside"),
    "hello.py": ("print(1)\n", 0o644, "./hello.py is not executable: chmod +x ./hello.py, or python3 ./hello.py\n"),
    "tool": ("echo\n", 0o644, "./tool is not executable: chmod +x ./tool\n"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_workspace(cli, project, name):
    text, mode, sentence = FILES[name]
    (project / name).write_text(text)
    (project / name).chmod(mode)
    answer = cli("run", "--", f"./{name}")
    assert answer.status == (127 if mode == 0o755 else 126) and sentence in answer.err and "\x1b" not in answer.err, answer


def test_a_folder(cli, project):
    (project / "sub").mkdir()
    for name in ("./sub", "/etc"):
        answer = cli("run", "--", name)
        assert answer.status == 126 and f"{name} is a folder, not a program" in answer.err, answer


@pytest.mark.parametrize("name", ["cd", "export", "source", "alias"])
def test_a_word_of_the_shell(cli, name):
    answer = cli("run", "--", name, "x")
    assert answer.status == 127 and f"caisson run -c '{name} …'" in answer.err, answer


def test_what_is_nowhere(cli):
    assert "there is no program named no-such-program, neither here nor inside" in cli("run", "--", "no-such-program").err
    assert "there is no file ./absent, neither here nor inside" in cli("run", "--", "./absent").err


def test_a_path_that_has_another_name_inside(cli, project):
    script = project / "write.sh"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    answer = cli("run", "--", str(script))
    assert answer.status == 127 and f"{script} is /workspace/write.sh inside; use ./write.sh or --at host" in answer.err, answer
    assert cli("run", "--", "./write.sh").out == cli("run", "--at", "host", "--", str(script)).out == "ran\n"
    (project / "sub").mkdir()
    answer = cli("run", "-w", str(project), "--", str(script), cwd=project / "sub")
    assert "use /workspace/write.sh or --at host" in answer.err, answer


def test_a_path_that_is_not_shown(cli, project, tmp_path):
    folder = tmp_path / "other"
    folder.mkdir()
    tool = folder / "tool"
    tool.write_text("#!/bin/sh\necho ran\n")
    tool.chmod(0o755)
    answer = cli("run", "--", str(tool))
    assert answer.status == 127 and f"{tool} is not shown inside. To lend its folder: caisson run -m {folder}:{folder}" in answer.err, answer
    assert cli("run", "-m", f"{folder}:{folder}", "--", str(tool)).out == "ran\n"
    (project / "script").write_text(f"#!{tool}\n")
    (project / "script").chmod(0o755)
    assert f"names {tool}, which is not shown inside" in cli("run", "--", "./script").err


HOSTILE = ["; touch pwned;", "$(touch pwned)", "it's `touch pwned`", "a\\'; touch pwned #", "\x1b[2J'; touch pwned #\n", "-x", "a\u202eb"]


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_file_is_called_is_one_word_of_the_command(cli, project, env, name, shell):
    (project / "sub").mkdir()
    script = project / f"sub/{name}"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o644)
    (project / "-x").mkdir()
    (project / "-x/run").write_text("")
    for typed, file in (f"sub/{name}", script), ("-x/run", project / "-x/run"):
        answer = cli("run", "--", typed)
        command = re.search(r"not executable: (chmod .*)\n", answer.err).group(1)
        assert answer.status == 126 and command.isprintable(), answer
        subprocess.run([shell, "-c", command], cwd=project, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        # dash has no $'…': there the command does nothing, and still nothing else.
        assert os.access(file, os.X_OK) or (shell == "dash" and "$'" in command), command
    assert not list(project.glob("**/pwned"))


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_folder_is_called_is_one_word_of_the_command(cli, caisson, project, tmp_path, env, name):
    folder = tmp_path / name.replace("/", "")
    folder.mkdir()
    tool = folder / "a tool"
    tool.write_text("#!/bin/sh\necho ran\n")
    tool.chmod(0o755)
    for typed, more in (tool, {}), ("a tool", {"env": {"PATH": f"{folder}:{env['PATH']}"}}):
        answer = cli("run", "--", typed, **more)
        command = re.search(r"caisson (run -m .*)\n", answer.err).group(1)
        assert answer.status == 127 and command.isprintable(), answer
        command += "" if " -- " in command else f" -- {shlex.quote(str(tool))}"
        done = subprocess.run(["bash", "-c", f"{shlex.quote(caisson)} {command}"], cwd=project, env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, encoding="utf-8", errors="surrogateescape")
        assert done.stdout == "ran\n" or ("\x1b" in name and "caisson: --mount " in done.stderr), (command, done.stderr)
    assert not list(project.glob("**/pwned"))
