"""The verbs of a sandbox that stays, typed: what a shell script of an agent's would do."""
import json
import os
import subprocess

import pytest
from run_fixtures import *  # noqa: F403

WAIT = 20


class Shell:
    def __init__(self, box):
        self.box = box
        (box.base / "runtime").mkdir(mode=0o700)
        box.give()

    def __call__(self, *words, input=None):
        if words[0] == "up":
            self.box.give()  # not later: a changed owner is a changed file
        return subprocess.run([self.box.caisson, *map(str, words)], cwd=self.box.ws, capture_output=True, timeout=WAIT,
                              input=input, env=self.box.env | {"XDG_RUNTIME_DIR": str(self.box.base / "runtime")},
                              **({} if input is not None else {"stdin": subprocess.DEVNULL}), **self.box.as_owner())


@pytest.fixture
def sh(box):
    shell = Shell(box)
    yield shell
    shell("down", "w")


def outcome(done):
    return done.returncode, done.stdout


def test_exec_is_the_commands_own(sh):
    assert outcome(sh("up", "w")) == (0, b"w\n")
    done = sh("exec", "w", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert outcome(done) == (3, b"out\n") and done.stderr == b"err\n", done
    assert outcome(sh("exec", "w", "-c", "echo $((1+2)); kill -9 $$")) == (137, b"3\n")
    assert outcome(sh("exec", "w", "--", "cat", input=b"through\n")) == (0, b"through\n")
    assert outcome(sh("exec", "w", "--cwd", "/tmp", "-e", "A=1", "--", "sh", "-c", "pwd; echo $A")) == (0, b"/tmp\n1\n")
    assert outcome(sh("exec", "w", "--timeout", "300ms", "--", "sleep", "9"))[0] == 124
    assert outcome(sh("exec", "w", "--", "no-such-program"))[0] == 127
    assert outcome(sh("exec", "w", "--", "/etc/passwd"))[0] == 126


def test_what_was_denied_is_told(sh):
    sh("up", "w")
    done = sh("exec", "w", "-c", "echo x >/etc/x; true")
    assert done.returncode == 0 and b"caisson: Writing /etc/x is not permitted" in done.stderr, done
    assert b"caisson:" not in sh("exec", "w", "-q", "-c", "echo x >/etc/x; true").stderr


def test_files(sh):
    sh.box.file("a.txt", "one\ntwo\n")
    sh("up", "w", "--cow")
    assert outcome(sh("read", "w", "a.txt")) == (0, b"one\ntwo\n")
    assert outcome(sh("read", "w", "a.txt", "--offset", "4", "--length", "2")) == (0, b"tw")
    assert outcome(sh("write", "w", "b/c.txt", "--mode", "600", input=b"new\n")) == (0, b"")
    assert outcome(sh("exec", "w", "-c", "stat -c %a b/c.txt; cat b/c.txt")) == (0, b"600\nnew\n")
    assert outcome(sh("edit", "w", "a.txt", "--old", "two", "--new", "TWO")) == (0, b"1\n")
    assert outcome(sh("edit", "w", "a.txt", "--old", "absent", "--new", "x")) == (1, b"0\n")
    assert outcome(sh("glob", "w", "**/*.txt")) == (0, b"a.txt\nb/c.txt\n")
    assert outcome(sh("glob", "w", "*.txt", "-0")) == (0, b"a.txt\0")
    assert outcome(sh("grep", "w", "^TWO|new")) == (0, b"a.txt:2:TWO\nb/c.txt:1:new\n")
    assert outcome(sh("grep", "w", "^two", "a.txt", "-i")) == (0, b"a.txt:2:TWO\n")
    assert outcome(sh("grep", "w", "nowhere")) == (1, b"")
    assert sh("down", "w").returncode == 0
    assert b"+TWO" in sh("runs", "diff").stdout and (sh.box.ws / "a.txt").read_text() == "one\ntwo\n"
    assert sh("runs", "commit").returncode == 0 and (sh.box.ws / "a.txt").read_text() == "one\nTWO\n"


def test_a_server_from_start_to_end(sh):
    sh("up", "w", "-n", "loopback")
    code = "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 8124)); s.listen(); print('ready', flush=True); time.sleep(60)"
    assert outcome(sh("exec", "w", "--detach", "--tag", "web", "--", PYTHON, "-c", code)) == (0, b"")
    assert outcome(sh("wait", "w", "web", "--line", "^ready$", "--timeout", "5s"))[0] == 0
    assert outcome(sh("wait", "w", "web", "--port", "8124", "--timeout", "5s"))[0] == 0
    assert outcome(sh("logs", "w", "web")) == (0, b"ready\n")
    assert outcome(sh("wait", "w", "web", "--timeout", "200ms"))[0] == 1
    assert outcome(sh("kill", "w", "web")) == (0, b"")
    assert outcome(sh("wait", "w", "web", "--timeout", "5s"))[0] == 143


def test_down_ends_all_that_can_be_ended(sh):
    for name in ("a", "b"):
        assert sh("up", name).returncode == 0
    done = sh("down", "a", "nosuch", "b", "neither")
    assert done.returncode == 1, done
    assert [name in done.stderr for name in (b"nosuch", b"neither")] == [True, True] and done.stderr.count(b"\n") == 2, done
    assert json.loads(sh("ps", "--json").stdout)["sandboxes"] == []


def test_a_failed_call_has_the_librarys_code(sh):
    sh("up", "w")
    assert sh("exec", "w", "--detach", "--tag", "short", "--", "true").returncode == 0
    assert sh("wait", "w", "short", "--timeout", "5s").returncode == 0
    for words, code in ((("kill", "w", "short"), "esrch"), (("read", "w", "missing"), "enoent"), (("kill", "w", "none"), "enoent")):
        done = sh(*words, "--json")
        assert done.returncode == 1 and json.loads(done.stdout)["error"]["code"] == code, done


@pytest.mark.parametrize("words,sentence", [
    (["exec", "none", "--", "ls"], b"no sandbox named none"), (["exec", "w"], b"a command is missing"),
    (["read", "w", "missing"], b"missing"), (["read", "w", "/tmp"], b"/tmp"), (["grep", "w", "("], b"byte 1: missing closing"),
    (["glob", "w", "[a"], b"class has no end"), (["edit", "w", "a"], b"--old TEXT"), (["write", "w", "/etc/x"], b"/etc"),
    (["exec", "w", "--timeout", "soon", "--", "ls"], b"--timeout takes a time"), (["logs", "w", "nobody"], b"no detached command of w has the tag nobody"),
    (["read", "w", "a", "--offset", "-1"], b"number")])
def test_refusals_are_sentences(sh, words, sentence):
    sh("up", "w")
    done = sh(*words, input=b"")
    assert done.returncode not in (0, 139) and done.stderr.startswith(b"caisson: ") and b"\n" == done.stderr[-1:], done
    assert sentence in done.stderr, done


def test_a_command_line_that_makes_no_sense_has_one_status(sh):
    """2; 125 where the status of a command is passed through. In `up` no flag is without effect."""
    sh("up", "w")
    for words in (["edit", "w", "a"], ["grep", "w"], ["kill", "w", "t", "x"], ["mount", "w", "a"], ["read", "w", "a", "--offset", "x"]):
        assert sh(*words, input=b"").returncode == 2, words
    for words in (["exec", "w"], ["exec", "w", "--timeout", "soon", "--", "ls"], ["exec"], ["up", "v", "--tty", "never"],
                  ["up", "v", "--stdin", "f"], ["up", "v", "--result", "-"]):
        assert sh(*words, input=b"").returncode == 125, words
    assert b"v" not in sh("ps", "-q").stdout


def test_a_wall_that_mounts_nothing_says_why(sh):
    policy = sh.box.base / "landlock.yaml"
    policy.write_text("version: 1\ntier: auto\nbackend: landlock\n")
    up = sh("up", "l", "--policy", str(policy))
    if up.returncode:
        pytest.skip("landlock: " + up.stderr.decode())
    done = sh("mount", "l", "/usr/share:/mnt/x")
    assert done.returncode == 1 and b"the host's own tree" in done.stderr and b"--backend process" in done.stderr, done
    sh("down", "l")


def test_the_library_opens_and_closes_one(sh):
    """The example: libcaisson starts `caisson monitor`, edits a file, runs the tests, shows the end."""
    build = os.path.dirname(os.path.realpath(sh.box.caisson))
    example = os.path.join(build, "../../tests/client/example-edit-static")
    if not os.path.exists(example):
        example = os.path.join(os.path.dirname(os.environ.get("CAISSON", build)), "tests/client/example-edit-static")
    if not os.access(example, os.X_OK):
        pytest.fail(f"{example} is not built")
    sh.box.file("main.c", "int a;\n")
    done = subprocess.run([example, "main.c", "int a", "int b", "cat main.c"], cwd=sh.box.ws, capture_output=True, timeout=WAIT,
                          env=sh.box.env | {"PATH": f"{os.path.dirname(sh.box.caisson)}:{sh.box.env['PATH']}"},
                          **({} if sh.box.is_root else {"stdin": subprocess.DEVNULL}))
    assert b"int b;\nexited, status 0, 0 violations" in done.stdout, done
    assert wait_for(lambda: not subprocess.run(["pgrep", "-f", f"caisson monitor.*{sh.box.base}"], capture_output=True).stdout, 3)


def test_json_of_what_has_no_result(sh):
    """Every command with the flag prints one object."""
    for name in ("w", "x"):
        sh("up", "--rw", name)
    assert json.loads(sh("write", "w", "f", "--json", input=b"f").stdout) == {}
    assert json.loads(sh("cp", "w:f", str(sh.box.ws / "g"), "--json").stdout) == {"complete": True}
    done = sh("down", "w", "none", "x", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1 and told["ended"] == ["w", "x"] and "no sandbox named none" in told["failed"]["none"], done
    assert done.stderr.count(b"\n") == 1, done


def test_what_is_named_must_be_there(sh):
    sh.box.file("f", "f\n")
    sh("up", "--cow", "w")
    for verb in ("diff", "commit"):
        done = sh(verb, "w", "nosuch")
        assert done.returncode == 1 and b"nosuch" in done.stderr and b"nothing changed" not in done.stderr, done
        done = sh(verb, "w", "f")
        assert done.returncode == 0 and done.stderr == b"nothing changed\n", done
    sh("exec", "w", "rm", "f")
    assert sh("diff", "w", "f").stdout.startswith(b"D f\n"), "what is gone has changed"
