"""What a person at a terminal is told after a run: denials in groups, limits by their names, what was kept from it."""
import re
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


def test_a_copy_says_what_it_holds_and_how_to_keep_it(caisson, project, env):
    (project / "old").write_text("x")
    (project / "gone").write_text("x")
    seen = on_a_terminal(caisson, project, env, "run", "--cow", "-c", "echo x >a; echo y >'b\nc'; echo z >old; rm gone")[1]
    assert "caisson: in the copy 1 modified, 2 added, 1 deleted: A a, A b\\nc, D gone, M old\n" in seen, seen
    for words in re.findall(r"  to (?:see|keep) them: +caisson (.*)\n", seen):
        done = subprocess.run([caisson, *words.split()], cwd=project, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
        assert done.returncode == 0 and b"A a\n" in done.stdout, done
    assert (project / "old").read_text() == "z\n" and not (project / "gone").exists()
    seen = on_a_terminal(caisson, project, env, "run", "--cow", "-c", "for n in $(seq 20); do echo >f$n; done")[1]
    assert "20 added: A f1, A f10," in seen and seen.count(" A f") == 10 and ", …\n" in seen, seen
    seen = on_a_terminal(caisson, project, env, "run", "--cow", "--run-dir", "r u", "-c", "echo >x")[1]
    assert "caisson commit --run-dir 'r u' 2" in seen, seen
    assert "the copy" not in on_a_terminal(caisson, project, env, "run", "--cow", "--", "true")[1]


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
