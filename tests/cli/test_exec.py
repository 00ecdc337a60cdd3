"""`caisson exec` beyond a plain command: where it starts, what is said when it cannot, how it ended, and all of it as JSON."""
import json
import time

import pytest
from run_fixtures import *  # noqa: F403
from test_tty import Sandbox, read_line


@pytest.fixture
def sh(box):
    made = Sandbox(box)
    yield made
    made("down", "w")


@pytest.mark.parametrize("cwd, told", [("src", "src"), ("./src/../src/deep", "src/deep"), (".", "."), ("/usr/bin", "/usr/bin")])
@pytest.mark.parametrize("wall", ["process", "landlock"])
def test_where_it_starts(sh, wall, cwd, told):
    """A relative folder begins in the workspace, as every other path."""
    sh.box.file("src/deep/a.txt", "a\n")
    sh.up(*([] if wall == "process" else sh.box.policy(f"version: 1\ntier: auto\nbackend: {wall}\n")))
    root = "/workspace" if wall == "process" else str(sh.box.ws)
    wanted = told if told[0] == "/" else root if told == "." else f"{root}/{told}"
    done = sh("exec", "--cwd", cwd, "w", "--", "pwd")
    assert (done.returncode, done.stdout.decode()) == (0, wanted + "\n"), done
    assert sh("shell", "--cwd", cwd, "w", input=b"pwd\n").stdout.decode() == wanted + "\n"


UNSTARTED = {
    ("nosuch",): (127, "there is no program named nosuch, neither here nor inside; install it, or `caisson mount NAME` HOST:AT"),
    ("./Makefile",): (126, "./Makefile is not executable: chmod +x ./Makefile"),
    ("cd", "x"): (127, "cd is a word of the shell and not a program: caisson exec NAME -c 'cd …'"),
    ("-e", "PATH=/nope", "ls"): (127, "there is no program named ls in the PATH that this call sets: /nope"),
    ("--cwd", "nope", "ls"): (127, "there is no folder nope inside to start in; a relative one begins in the workspace, /workspace"),
    ("--cwd", "Makefile", "ls"): (126, "Makefile cannot be started in: it is no folder"),
}


def test_why_nothing_was_started(sh):
    sh.box.file("Makefile", "all:\n")
    sh.up()
    for words, (status, sentence) in UNSTARTED.items():
        flags = words[:2] if words[0][0] == "-" else ()
        done = sh("exec", *flags, "w", "--", *words[len(flags):])
        err = done.stderr.decode()
        assert done.returncode == status and err.startswith("caisson: " + sentence) and err.count("\n") == 1, done


STOPPED = {
    ("head", "-c", "3000000", "/dev/zero"): (137, "stopped: more than 1MiB of output (limits.output)"),
    ("sh", "-c", "sleep 9"): (124, "stopped after 400 ms (limits.command)"),
    ("--timeout", "200ms", "sleep", "9"): (124, "stopped after 200 ms (timeout)"),
}


def test_which_limit_stopped_it(sh):
    sh.up("--timeout", "400ms", "-l", "output=1MiB")
    for words, (status, sentence) in STOPPED.items():
        flags = words[:2] if words[0][0] == "-" else ()
        done = sh("exec", *flags, "w", "--", *words[len(flags):])
        assert done.returncode == status and done.stderr.decode().splitlines()[0] == "caisson: " + sentence, done
    assert sh("exec", "-q", "w", "--", "sleep", "9").stderr == b""


def test_more_memory_than_there_is(root_box):
    """Whichever is heard first, its death or that memory ran out."""
    sh = Sandbox(root_box).up("--memory", "64MiB")
    for _ in range(3):
        done = sh("exec", "w", "--", "python3", "-c", "x = bytearray(200 << 20)")
        assert done.returncode == 137 and done.stderr.startswith(b"caisson: stopped: more than 64MiB of memory (limits.memory)\n"), done
    sh("down", "w")


def test_an_end_by_others(sh):
    sh.up()
    process = sh.start("exec", "w", "--", "sh", "-c", "trap '' INT; echo on; sleep 9")
    assert read_line(process) == b"on\n"
    process.send_signal(2)
    assert process.communicate(timeout=9)[1].startswith(b"caisson: ended: cancelled (SIGINT) after ") and process.returncode == 130
    process = sh.start("exec", "w", "--", "sh", "-c", "echo on; sleep 9")
    assert read_line(process) == b"on\n" and sh("down", "w").returncode == 0
    assert process.communicate(timeout=9)[1] == b"caisson: the sandbox was ended meanwhile\n" and process.returncode == 125


def told(done, status=0):
    assert done.returncode == status, done
    return json.loads(done.stdout)


def test_the_account_as_json(sh):
    sh.up()
    account = told(sh("exec", "--json", "w", "--", "sh", "-c", "echo out; printf 'a\\377' >&2; exit 7"), 7)
    assert (account["reason"], account["exit_code"], account["signal"], account["text"]) == ("exited", 7, None, None), account
    assert account["output"]["data"] == "out\n" and account["errors"]["data"] == {"base64": "Yf8="} and account["wall_us"] > 0, account
    assert account["stdout_bytes"] == 4 and account["scope"] == "command" and account["violations"] == [], account
    account = told(sh("exec", "--json", "--timeout", "200ms", "w", "--", "sleep", "9"), 124)
    assert (account["reason"], account["clock"]) == ("timeout", "command") and account["violations"][0]["event"] == "TimeoutViolation", account
    account = told(sh("exec", "--json", "w", "nosuch"), 127)
    assert (account["reason"], account["error"], account["stage"]) == ("start_failed", "enoent", "exec") and "nosuch" in account["text"], account


def test_files_as_json(sh):
    sh.box.file("a.txt", "one\ntwo\n")
    assert told(sh("up", "--rw", "--json", "w")) == {"name": "w"}
    assert told(sh("glob", "--json", "w", "*.txt")) == {"paths": ["a.txt"], "truncated": False, "skipped": 0}
    match = {"path": "a.txt", "line_number": 2, "line": "two", "is_context": False}
    assert told(sh("grep", "--json", "w", "tw")) == {"matches": [match], "binary": [], "truncated": False, "skipped": 0}
    assert told(sh("grep", "--json", "w", "absent"), 1)["matches"] == []
    assert told(sh("edit", "--json", "w", "a.txt", "--old", "two", "--new", "2")) == {"occurrences": 1, "content": "one\n2\n"}
    assert told(sh("read", "--json", "w", "a.txt")) == {"content": "one\n2\n"}


def test_a_variable_that_has_no_name(sh):
    sh.up()
    done = sh("exec", "-e", "A B", "w", "--", "true")
    assert done.returncode == 125 and b"--env: not a variable's name" in done.stderr, done


def test_a_variable_that_is_not_set_here(sh):
    """A slip in a name must not look like an empty value, whichever command lends it."""
    said = b"caisson: --env NOSUCH is not set here, so not there either\n"
    assert said in sh("up", "-e", "NOSUCH", "w").stderr
    done = sh("exec", "-e", "NOSUCH", "-e", "HOME", "-e", "EMPTY=", "w", "-c", "echo ${NOSUCH-none}")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"none\n", said), done
    assert said in sh("run", "-e", "NOSUCH", "--", "true").stderr
    assert sh("exec", "-q", "-e", "NOSUCH", "w", "--", "true").stderr == b""


@pytest.mark.parametrize("signal", ["INT", "SIGINT", "int", "2"])
def test_a_signal_by_its_name(sh, signal):
    sh.up()
    assert sh("exec", "--detach", "--tag", "a", "w", "--", "sleep", "9").returncode == 0
    assert sh("kill", "w", "a", "NONE").returncode == 2
    assert sh("kill", "w", "a", signal).returncode == 0
    assert sh("wait", "w", "a").returncode == 130


def test_detached_without_a_tag(sh):
    sh.up()
    done = sh("exec", "--detach", "w", "--", "sh", "-c", "echo on")
    tag = done.stderr.decode().split()[4].rstrip(",")
    assert sh("wait", "w", tag).returncode == 0 and sh("logs", "w", tag).stdout == b"on\n"


def test_too_many_at_once_wait_a_while(sh):
    """The agent has 64 calls; what comes then is done when there is room."""
    sh.up()
    many = [sh.start("exec", "w", "--", "sleep", "2") for _ in range(64)]
    time.sleep(1)
    done = sh("exec", "w", "--", "echo", "on")
    assert (done.returncode, done.stdout) == (0, b"on\n"), done
    assert {process.wait(timeout=20) for process in many} == {0}
