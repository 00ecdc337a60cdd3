"""What newcomers type: a refusal names the spelling that works, and the lines that would permit it."""
import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

import pytest

VALUES = [
    (["--memory", "512Mib"], "did you mean 512MiB?"),
    (["--memory", "512MB"], "did you mean 512MiB?"),
    (["--memory", "1.5 GiB"], "did you mean 1536MiB?"),
    (["--memory", "2g"], "did you mean 2GiB?"),
    (["--timeout", "5"], "did you mean 5s?"),
    (["--timeout", "1h30m"], "did you mean 90m?"),
    (["--timeout", "90 Seconds"], "did you mean 90s?"),
    (["--timeout", "0.5m"], "did you mean 30s?"),
    (["-l", "mem=1GiB"], "did you mean memory?"),
    (["-l", "timeout=5s"], "did you mean command?"),
    (["-l", "scratch=5G"], "did you mean 5GiB?"),
]
NO_GUESS = [["--memory", "much"], ["--memory", "5 parsecs"], ["--timeout", "-5"], ["--timeout", "1.2345s"], ["--cpus", "two"],
            ["--memory", "99999999999999GB"], ["--memory", "0MB"], ["-l", "colour=1"]]


@pytest.mark.parametrize("flags, meant", VALUES, ids=lambda value: " ".join(value) if isinstance(value, list) else value)
def test_a_foreign_spelling_is_refused_with_ours(cli, flags, meant):
    answer = cli("run", *flags, "--", "true")
    assert answer.status == 125 and meant in answer.err, answer


@pytest.mark.parametrize("flags", NO_GUESS, ids=" ".join)
def test_nothing_is_guessed_from_nonsense(cli, flags):
    answer = cli("run", *flags, "--", "true")
    assert answer.status == 125 and "expected" in answer.err and "did you mean" not in answer.err, answer


def test_the_same_in_a_file(cli, project):
    (project / "caisson.yaml").write_text("version: 1\nlimits: {memory: 512MB, command: 30}\n")
    answer = cli("policy", "check")
    assert "caisson.yaml:2:18: limits.memory" in answer.err and "did you mean 512MiB?" in answer.err, answer


def lines_of(answer):
    """Where a refusal says to write, and what."""
    head, *lines = answer.err.splitlines()
    return head, "\n".join(lines) + "\n"


@pytest.mark.parametrize("flags", [["--tier", "auto"], ["--timeout", "10m"], ["--memory", "2GiB"]], ids=" ".join)
def test_a_refusal_without_a_policy_names_file_and_lines(cli, project, flags):
    answer = cli("run", "--result", "r.json", *flags, "--", "true")
    head, lines = lines_of(answer)
    assert answer.status == 125 and json.loads((project / "r.json").read_text())["error"]["code"] == "eperm", answer
    assert f"write into {project}/caisson.yaml, then run `caisson policy trust`" in head and lines.startswith("version: 1\n"), answer
    (project / "caisson.yaml").write_text(lines)
    assert cli("policy", "trust", "--yes").status == 0
    assert cli("policy", "explain", "--json", "--", "true").status == 0
    assert "refused" not in cli("policy", "explain", *flags, "--", "true").out


def test_a_refusal_with_a_policy_names_that_file(cli, project):
    policy = project / "caisson.yaml"
    policy.write_text("version: 1\n")
    head, lines = lines_of(cli("run", "--tier", "auto", "--", "true"))
    assert f"let {policy} say this, then run `caisson policy trust`:" in head and lines == "tier: auto\n"
    head, lines = lines_of(cli("run", "--policy", policy, "--rw", "--", "true"))
    assert f"let {policy} say:" in head and "trust`" not in head and lines == "workspace: {mode: rw}\n"


@pytest.mark.parametrize("flags", [["-n", "allow"], ["--allow", "pypi.org"]], ids=" ".join)
def test_what_no_build_does_is_not_offered_as_lines(cli, flags):
    answer = cli("run", *flags, "--", "true")
    assert answer.status == 125 and "not available in this build" in answer.err and "\nversion" not in answer.err, answer


def error_of(cli, project, *argv):
    """The error of a refused run, from its result; the same sentence is on stderr."""
    answer = cli("run", "--result", "r.json", *argv)
    error = json.loads((project / "r.json").read_text())["error"]
    assert answer.status == 125 and error["text"].splitlines()[0] in answer.err, answer
    return error


def test_an_unknown_wall_lists_what_is_usable(cli, project):
    walls = cli("doctor", "--json").json()["walls"]
    error = error_of(cli, project, "--backend", "proces", "--", "true")
    assert error["code"] == "einval" and "did you mean process?" in error["text"]
    usable = error["text"].split("Usable here: ")[1].split(".")[0]
    for wall in walls:
        assert (wall["name"] in usable) == wall["usable"], (wall, error)
    assert "qemu" in error["text"].split("Planned: ")[1]
    assert "did you mean" not in error_of(cli, project, "--backend", "zzz", "--", "true")["text"]
    assert cli("policy", "explain", "--backend", "zzz", "--", "true").status != 0


def test_an_unknown_tier_lists_what_is_usable(cli, project):
    error = error_of(cli, project, "--tier", "stric", "--", "true")
    assert "did you mean strict?" in error["text"] and "Usable here: local (no wall at all)" in error["text"]
    assert "strict" in error["text"].split("No wall here reaches: ")[1]


@pytest.mark.parametrize("argv, code, says", [
    (["--tier", "strict"], "StrictModeUnavailable", "doctor"),
    (["--backend", "qemu"], "TierUnavailable", "Usable here: "),
    (["--backend", "landlock"], "TierUnavailable", "tier: auto"),
    (["--policy", "strict.yaml"], "StrictModeRequired", "doctor"),
    (["--policy", "named.yaml"], "TierUnavailable", "doctor"),
    (["--policy", "cow.yaml"], "TierUnavailable", "does not enforce: fs-cow. Leave out"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else value)
def test_what_cannot_be_had_has_a_name(cli, project, argv, code, says):
    (project / "strict.yaml").write_text("version: 1\ntier: strict\n")
    (project / "named.yaml").write_text("version: 1\nbackend: qemu\n")
    (project / "cow.yaml").write_text("version: 1\ntier: auto\nbackend: landlock\nworkspace: {mode: cow}\n")
    error = error_of(cli, project, *argv, "--", "true")
    assert error["code"] == code and error["text"].startswith(f"{code}: ") and says in error["text"], error
    assert cli("run", "--json", *argv, "--", "true").json()["error"]["code"] == code


@pytest.mark.parametrize("line, says", [
    ("ls -la", "caisson run -- ls -la; as text for a shell: caisson run -c 'ls -la'"),
    ("ls|wc", "As text for a shell: caisson run -c 'ls|wc'"),
    ("A=1 ls", "As text for a shell: caisson run -c 'A=1 ls'"),
    ("echo 'a b'", "As text for a shell: caisson run -c 'echo '\\''a b'\\'''\n"),
    ("echo a!b", "As text for a shell: caisson run -c 'echo a!b'"),
    ("ls \x1b[2J", "As text for a shell: caisson run -c $'ls \\033[2J'"),
])
def test_a_line_in_one_word(cli, line, says):
    answer = cli("run", line)
    assert answer.status == 127 and "is one word, and no program inside has that name" in answer.err, answer
    assert says in answer.err and "\x1b" not in answer.err and answer.err.count("\n") == 1, answer


def test_a_program_with_a_blank_runs(cli, project):
    (project / "my tool").write_text("#!/bin/sh\necho ran\n")
    (project / "my tool").chmod(0o755)
    assert cli("run", "./my tool").out == "ran\n"
    assert "one word" not in cli("run", "nosuch").err and "one word" not in cli("run", "no such", "x").err


@pytest.mark.parametrize("number, name", [(9, "SIGKILL"), (11, "SIGSEGV"), (40, "40")])
def test_a_signal_is_named(cli, number, name):
    answer = cli("run", "-v", "-c", f"kill -{number} $$")
    assert answer.status == 128 + number and f"ended: signal {name} after" in answer.err, answer
    assert f"signal {name}\n" in cli("why").out and f"signal {name}\n" in cli("runs", "show").out
    assert f"signal {name} " in cli("runs", "ls").out


def on_a_terminal(caisson, project, env, *argv):
    """What a person sees: stdin, stdout and stderr are one terminal of 80 columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
    process = subprocess.Popen([caisson, *argv], cwd=project, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    seen = b""
    with contextlib.suppress(OSError):  # the end of a terminal is EIO
        while piece := os.read(master, 65536):
            seen += piece
    os.close(master)
    return process.wait(30), re.sub(r"\x1b\[[0-9;]*m", "", seen.decode()).replace("\r", "")


def test_a_person_is_told_of_limits_and_attempts_apart(caisson, project, env):
    status, seen = on_a_terminal(caisson, project, env, "run", "--timeout", "300ms", "-c", "mkdir /usr/x; sleep 9")
    assert status == 124 and "caisson: 1 kind of attempt denied, 1 limit met\n" in seen, seen
    status, seen = on_a_terminal(caisson, project, env, "run", "--timeout", "300ms", "--", "sleep", "9")
    assert "caisson: 1 limit met\n" in seen and "attempt" not in seen, seen


def test_a_person_is_told_of_a_signal_and_of_no_wall_once(caisson, project, env):
    status, seen = on_a_terminal(caisson, project, env, "run", "--", "sh", "-c", "kill -9 $$")
    assert status == 137 and "ended: signal SIGKILL after" in seen, seen
    status, seen = on_a_terminal(caisson, project, env, "run", "--tier", "strict", "--", "true")
    assert status == 125 and seen.count("StrictModeUnavailable") == 1 and "denied" not in seen, seen


def test_doctor_fits_its_terminal(caisson, project, env):
    status, seen = on_a_terminal(caisson, project, env, "doctor")
    lines = [line for line in seen.splitlines() if line.startswith(" " * 12)]
    assert lines and all(len(line) <= 80 or " " not in line.strip() for line in lines), seen


def test_what_a_written_policy_is_worth(cli, project):
    assert cli("policy", "init").out == f"{project}/caisson.yaml: written and trusted; from now on flags only narrow it, except as its mount_roots and overrides say\n"
    assert cli("policy", "set", "limits.command=10m").out == f"{project}/caisson.yaml: changed and trusted\n"
    with open(project / "caisson.yaml", "a") as file:
        file.write("# more\n")
    assert "it may only tighten until you run `caisson policy trust`" in cli("policy", "set", "limits.command=9m").out


@pytest.mark.parametrize("words, meant", [(["rnu"], "run"), (["policy", "sett"], "policy set"), (["runs", "lss"], "runs ls"), (["colour"], None)],
                         ids=str)
def test_help_for_a_command_that_is_none(cli, words, meant):
    answer = cli("help", *words)
    assert answer.status == 2 and answer.out == "" and f'there is no command "{" ".join(words)}"; ' in answer.err, answer
    assert (f'did you mean "{meant}"?' if meant else "`caisson help` lists them") in answer.err, answer


def test_help_for_a_group_lists_it(cli):
    assert cli("help", "policy").status == 0 and "policy set" in cli("help", "policy").out


def test_help_fits_its_terminal(caisson, project, env):
    status, seen = on_a_terminal(caisson, project, env, "help", "run")
    assert status == 0 and max(map(len, seen.splitlines())) <= 80, seen


def test_a_mode_that_is_none(cli, project):
    answer = cli("run", "-w", ".:rwx", "--", "true")
    assert answer.status == 125 and "the mode is ro, rw or cow, not rwx" in answer.err, answer
    (project / "a:b").mkdir()
    assert cli("run", "-w", "a:b", "--", "true").status == 0


def test_ages_and_sizes_of_other_tools(cli):
    assert "did you mean 120h?" in cli("runs", "gc", "--age", "5d").err
    assert "did you mean 5MiB?" in cli("runs", "gc", "--size", "5mb").err
    assert "did you mean" not in cli("runs", "gc", "--age", "long").err


def test_less_memory_than_a_wall_needs(cli):
    for size in ("1KiB", "1MiB", "4095KiB"):
        answer = cli("run", "--memory", size, "--", "true")
        assert answer.status == 125 and "at least 4MiB" in answer.err, answer
    assert cli("run", "--memory", "4MiB", "--", "true").status == 0


def test_doctor_says_what_its_columns_are(cli):
    head, first, *_ = cli("doctor").out.splitlines()
    assert head.split()[:3] == ["ok", "wall", "tier"] and head.index("wall") == first.index("process") and head.index("tier") == first.index("balanced")


def test_a_listed_command_fits_its_terminal(cli, caisson, project, env):
    assert cli("run", "--", "echo", "long " * 40).status == 0
    status, seen = on_a_terminal(caisson, project, env, "runs", "ls")
    assert status == 0 and "echo" in seen and max(map(len, seen.splitlines())) <= 80, seen


def test_a_reader_who_has_enough_is_no_news(caisson, project, env):
    """With SIGPIPE ignored, as Python's children may have it, the write fails instead."""
    line = f'trap "" PIPE; {{ sleep 0.2; {caisson} help --markdown; }} | true'
    done = subprocess.run(["sh", "-c", line], cwd=project, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30, encoding="utf-8")
    assert done.stderr == "", done


PATH = "/workspace/" + "a folder with blanks/" * 4 + "x"
ADVICE = "--mount '/srv/two words and four more/it'\\''s:/srv/two words and four more/it'\\''s:rw'"


@pytest.mark.parametrize("path, advice", [("/workspace/" + "f" * 300, "--rw"), (PATH, ADVICE), (PATH, "`caisson policy set workspace.mode=rw limits.memory=2GiB observe=[]`")])
def test_why_wraps_and_breaks_nothing_that_is_pasted(caisson, cli, make_record, project, env, path, advice):
    say = f"Writing {path} is not permitted: the caller's workspace isn't writable here; write to /tmp, or ask for {advice}."
    make_record(violations=[{"event": "FilesystemWriteViolation", "count": 1, "rule": "workspace.mode: ro", "say": say, "comm": "sh",
                             "certain": True, "detail": {"path": path}}])
    status, seen = on_a_terminal(caisson, project, env, "why")
    said = re.search(r"  say     (.*)\n  policy", seen, re.S).group(1)
    assert re.sub(r"\n {10}", " ", said) == say, seen
    assert path in said and advice in said, seen
    for line in ("  say     " + said).splitlines():
        assert len(line) <= 80 or path in line or advice in line, seen
    assert f"  say     {say}\n" in cli("why").out


def test_a_lost_run_is_listed_with_its_command(caisson, cli, make_record, runs):
    command = ["make", "a b", "\x1b[2J"]
    lost = make_record(lost=True, events=[("Grant", {"what": "x"}), ("RunStarted", {"command": command})])
    odd = make_record(lost=True, events=[("RunStarted", {"command": 7})])
    copied = make_record()
    (runs / copied / "cow/upper").mkdir(parents=True)
    lines = {line.split()[0]: line.split("  ", 2)[2] for line in cli("runs", "ls").out.splitlines()}
    assert lines[lost] == "lost               make 'a b' $'\\033[2J'" and lines[odd].strip() == "lost"
    assert lines[copied] == "exited 3, cow      make test"
    rows = {row["run_id"]: row for row in cli("runs", "ls", "--json").json()}
    assert rows[lost]["command"] == command and [rows[run]["cow"] for run in (lost, odd, copied)] == [False, False, True]


def test_a_run_that_was_killed_is_listed_with_its_command(caisson, cli, project, env):
    with subprocess.Popen([caisson, "run", "--", "sh", "-c", "echo up; sleep 60"], cwd=project, env=env, stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL) as run:
        assert run.stdout.readline() == b"up\n"
        line = cli("runs", "ls").out
        assert "  running " in line and "sh -c 'echo up; sleep 60'" in line, line
        run.kill()
    line = cli("runs", "ls").out
    assert "  lost " in line and "sh -c 'echo up; sleep 60'" in line, line


def test_a_list_of_a_run_fits_its_terminal(caisson, cli, make_record, project, env):
    words = [f"feature-{i}" for i in range(20)]
    make_record(enforced=words, command=["make", "a-target-of-some-length"])
    status, seen = on_a_terminal(caisson, project, env, "runs", "show")
    listed = re.search(r"enforced  (.*?)\nrecord", seen, re.S).group(1)
    assert re.sub(r"\n {10}", " ", listed) == ", ".join(words) and all(len(line) <= 70 for line in listed.splitlines()[:1]), seen
    assert f"enforced  {', '.join(words)}\n" in cli("runs", "show").out
    status, seen = on_a_terminal(caisson, project, env, "runs", "ls")
    assert seen.endswith("make a-target-of-some-len…\n") and all(len(line) <= 80 for line in seen.splitlines()), seen
