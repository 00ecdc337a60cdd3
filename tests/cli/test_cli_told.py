"""What a person at a terminal is told after a run: denials in groups, limits by their names, what was kept from it."""
import subprocess

import pytest

from test_cli_slips import on_a_terminal


def test_equal_denials_are_one_line(caisson, project, env):
    status, seen = on_a_terminal(caisson, project, env, "run", "-c", "for f in a b c d; do : >$f; done; : >a")
    lines = seen[seen.index("caisson: "):].splitlines()
    assert lines[1] == "  5 writes to the read-only workspace denied: a, b, c, …; --rw or --cow lends it", seen
    assert lines[0] == "caisson: 1 kind of attempt denied" and lines[2].startswith("  the rules behind them: caisson why "), seen


def test_one_denial_is_a_sentence(caisson, project, env):
    seen = on_a_terminal(caisson, project, env, "run", "-c", ": >a")[1]
    assert "  FilesystemWriteViolation: Writing /workspace/a is not permitted: the workspace\n  is read-only here;" in seen, seen
    assert all(len(line) <= 80 for line in seen.splitlines()), seen


def test_advice_for_a_project_with_a_policy(cli, caisson, project, env):
    cli("policy", "init")
    seen = on_a_terminal(caisson, project, env, "run", "-c", ": >a; : >b")[1]
    assert "2 writes to the read-only workspace denied: a, b; --cow lends" in seen and "--rw" not in seen, seen


def test_a_failing_command_is_told_what_was_hidden(caisson, project, env):
    for name in (".env", ".env.a", ".env.b", ".env.c"):
        (project / name).write_text("x")
    seen = on_a_terminal(caisson, project, env, "run", "--", "false")[1]
    assert "caisson: hidden from it: .env" in seen and ", …; see workspace.hide\n" in seen, seen
    assert "hidden" not in on_a_terminal(caisson, project, env, "run", "--", "true")[1]


def test_a_copy_says_what_it_holds(caisson, project, env):
    seen = on_a_terminal(caisson, project, env, "run", "--cow", "-c", "echo x >a; echo y >b")[1]
    assert "caisson: 2 files changed in the copy: caisson runs diff · commit\n" in seen, seen
    assert "changed" not in on_a_terminal(caisson, project, env, "run", "--cow", "--", "true")[1]


@pytest.mark.parametrize("flags, text, says", [
    (["--timeout", "300ms"], "sleep 9", "caisson: stopped after 300 ms (limits.command)\n"),
    (["-l", "output=16KiB"], "yes | head -c 999999", "caisson: stopped: more than 16KiB of output (limits.output)\n"),
])
def test_a_stop_names_its_limit(cli, flags, text, says):
    assert cli("run", *flags, "-c", text).err == says


def shell(caisson, project, env, text):
    return subprocess.run(["bash", "-c", text.replace("CAISSON", str(caisson))], cwd=project, env=env, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


def test_a_reader_that_has_enough_is_no_news(caisson, project, env):
    done = shell(caisson, project, env, "CAISSON run -- yes | head -1; echo ${PIPESTATUS[0]}")
    assert (done.stdout, done.stderr) == ("y\n141\n", ""), done


def test_a_full_disk_is_named(cli, caisson, project, env):
    done = shell(caisson, project, env, "CAISSON run -- yes >/dev/full")
    assert done.returncode == 141 and done.stderr == "caisson: cannot write the command's output: No space left on device\n", done
    assert "No space left on device" in cli("why").out
