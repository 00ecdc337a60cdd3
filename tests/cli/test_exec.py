"""`caisson exec` beyond a plain command: where it starts, what is said when it cannot, how it ended, and all of it as JSON."""
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
