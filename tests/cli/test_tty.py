"""People and pipes before a sandbox that stays: terminals for `exec`, `shell`, input as it comes, signals.

Whatever ends the command or the CLI, the caller's terminal is as it was.
"""
import fcntl
import contextlib
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import termios
import time

import pytest
from run_fixtures import *  # noqa: F403
from test_stay import connected
from test_verbs import Shell

WAIT = 15
SPIN = "i=0; while [ $i -lt 500 ]; do i=$((i+1)); sleep 0.02; done"


class Person:
    """Somebody at a terminal on which caisson runs."""

    def __init__(self, sh):
        self.sh, self.seen, self.process = sh, b"", None
        self.master, self.slave = pty.openpty()
        self.resize(30, 100)
        if os.geteuid() == 0:
            os.fchown(self.slave, sh.box.uid, sh.box.uid)
        self.before = termios.tcgetattr(self.slave)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def start(self, *words, **streams):
        def own_terminal():
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

        self.process = self.sh.start(*words, preexec_fn=own_terminal, pass_fds=[self.slave],
                                     **({name: self.slave for name in ("stdin", "stdout", "stderr")} | streams))

    def type(self, keys):
        os.write(self.master, keys)

    def until(self, wanted):
        """What is shown, up to and with `wanted`; it is forgotten then."""
        end = time.monotonic() + WAIT
        while wanted not in self.seen:
            left = end - time.monotonic()
            assert left > 0, self.seen
            if select.select([self.master], [], [], left)[0]:
                self.seen += os.read(self.master, 65536)
        shown, _, self.seen = self.seen.partition(wanted)
        return shown + wanted

    def end(self):
        """The exit status, with the terminal as it was before."""
        end = time.monotonic() + WAIT
        while self.process.poll() is None:
            assert time.monotonic() < end, self.seen
            if select.select([self.master], [], [], 0.02)[0]:
                self.seen += os.read(self.master, 65536)
        while select.select([self.master], [], [], 0.05)[0]:
            self.seen += os.read(self.master, 65536)
        assert termios.tcgetattr(self.slave) == self.before
        return self.process.returncode

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


class Sandbox(Shell):
    def start(self, *words, env=(), **more):
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
        return subprocess.Popen([self.box.caisson, *words], cwd=self.box.ws, **self.box.as_owner(), **streams,
                                env=self.box.env | {"XDG_RUNTIME_DIR": str(self.box.base / "runtime"), "TERM": "xterm"} | dict(env))

    def up(self, *flags):
        done = self("up", *flags, "w")
        assert done.returncode == 0, done
        return self


@pytest.fixture
def sh(box):
    made = Sandbox(box)
    yield made
    made("down", "w")


@pytest.fixture
def person(sh):
    made = Person(sh)
    yield made
    made.close()


def read_line(process):
    assert select.select([process.stdout], [], [], WAIT)[0], "nothing came"
    return process.stdout.readline()


# ---- terminals ------------------------------------------------------------------------------------


def test_a_terminal_where_the_caller_has_one(person):
    person.sh.up()
    person.start("exec", "w", "--", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty size && echo $TERM; exit 7")
    assert person.end() == 7 and person.seen == b"30 100\r\nxterm\r\n", person.seen


def test_never_and_where_a_stream_is_none(person):
    person.sh.up()
    person.start("exec", "w", "--tty", "never", "--", "sh", "-c", "test -t 0 || test -t 1 || echo none")
    assert person.end() == 0 and person.seen == b"none\r\n", person.seen
    person.start("exec", "w", "--", "sh", "-c", "test -t 0 || echo none", stdout=subprocess.PIPE)
    assert read_line(person.process) == b"none\n"
    assert person.end() == 0


def test_always_without_one(sh):
    sh.up()
    done = sh("exec", "w", "--tty", "always", "--", "sh", "-c", "stty size; test -t 0 && cat", input=b"typed\n")
    assert done.returncode == 0 and b"24 80\r\n" in done.stdout and done.stdout.count(b"typed\r\n") == 2, done
    assert sh("exec", "w", "--tty", "perhaps", "--", "true").returncode != 0


def test_resized(person):
    person.sh.up()
    person.start("exec", "w", "--", "sh", "-c", f"trap 'stty size; exit 0' WINCH; echo up; {SPIN}")
    person.until(b"up\r\n")
    person.resize(12, 34)
    person.process.send_signal(signal.SIGWINCH)
    person.until(b"12 34\r\n")
    assert person.end() == 0


RAW = """
import os, sys, termios, tty
tty.setraw(0)
os.write(1, b"\\x1b[?1049hraw\\n")
keys = b""
while b"q" not in keys:
    keys += os.read(0, 100)
os.write(1, b"\\x1b[?1049l" + keys.hex().encode() + b"!")
"""


def test_a_program_that_takes_every_key(person):
    """As an editor does: nothing is echoed, turned into a signal, or changed on its way."""
    person.sh.box.file("raw.py", RAW)
    person.sh.up()
    person.start("exec", "w", "--", PYTHON, "raw.py")
    assert person.until(b"raw\n") == b"\x1b[?1049hraw\n"
    person.type(b"\x03\x1a\x11\x13\x04\r\n\x1b[A\xc3\xa9\x00q")
    assert person.until(b"!") == b"\x1b[?1049l" + b"\x03\x1a\x11\x13\x04\r\n\x1b[A\xc3\xa9\x00q".hex().encode() + b"!"
    assert person.end() == 0


def test_the_interrupt_key_is_the_commands(person):
    person.sh.up()
    person.start("exec", "w", "--", "sh", "-c", f"trap 'echo got; exit 9' INT; echo up; {SPIN}")
    person.until(b"up\r\n")
    person.type(b"\x03")
    person.until(b"got")
    assert person.end() == 9


@pytest.mark.parametrize("how", ["TERM", "HUP", "INT INT", "down", "timeout", "no such program", "KILL inside"])
def test_the_terminal_is_restored(person, how):
    person.sh.up()
    command = {"no such program": ["/no/such"], "KILL inside": ["sh", "-c", "kill -9 $$"]}.get(how, ["sh", "-c", f"trap '' TERM HUP INT; echo up; {SPIN}"])
    person.start("exec", "w", "--tty", "always", *(["--timeout", "400ms"] if how == "timeout" else []), "--", *command)
    if command[0] == "sh" and how != "KILL inside":
        person.until(b"up\r\n")
        assert person.is_raw(), "while it runs"
    started = time.monotonic()
    if how == "down":
        assert person.sh("down", "w").returncode == 0
    for name in how.split() if how.isupper() else []:
        person.process.send_signal(getattr(signal, "SIG" + name))
        time.sleep(0.1)
    status = {"TERM": 143, "HUP": 129, "INT INT": 130, "down": 125, "timeout": 124, "no such program": 127, "KILL inside": 137}
    assert person.end() == status[how], person.seen
    assert time.monotonic() - started < 5


def test_stopped_and_continued(person):
    person.sh.up()
    person.start("exec", "w", "--", "sh", "-c", "echo up; read line; echo got $line")
    person.until(b"up\r\n")
    person.process.send_signal(signal.SIGTSTP)
    assert wait_for(lambda: not person.is_raw()), "whoever is there meanwhile finds it as it was"
    person.process.send_signal(signal.SIGCONT)
    assert wait_for(person.is_raw)
    person.type(b"word\r")
    person.until(b"got word\r\n")
    assert person.end() == 0


def test_no_command_clock_on_a_terminal(sh):
    sh.up("--timeout", "500ms")
    assert sh("exec", "w", "--", "sleep", "5").returncode == 124
    assert sh("exec", "w", "--tty", "always", "--", "sleep", "1").returncode == 0
    assert sh("exec", "w", "--tty", "always", "--timeout", "300ms", "--", "sleep", "5").returncode == 124


def test_who_sits_there_in_silence_is_silent(person):
    """limits.idle: keys and output count, a command that says nothing does not."""
    person.sh.up("-l", "idle=1s")
    person.start("shell", "w")
    person.until(b"$ ")
    for i in range(4):
        time.sleep(0.4)
        person.type(b"echo a''%d\n" % i)
        person.until(b"a%d\r\n" % i)
    person.type(b"for i in 1 2 3 4; do sleep 0.4; echo b; done; echo d''one\n")
    person.until(b"done\r\n")
    person.type(b"sleep 5\n")
    started = time.monotonic()
    assert person.end() == 125 and 0.5 < time.monotonic() - started < 4, person.seen


def test_the_kind_of_terminal_passes_a_policy(person):
    done = person.sh("up", *person.sh.box.policy("version: 1\nenv: {pass: [LANG]}\n"), "w")
    assert done.returncode == 0, done
    person.start("exec", "w", "--", "sh", "-c", "echo $TERM", env={"TERM": "screen"})
    assert person.end() == 0 and person.seen == b"screen\r\n", person.seen
    assert b"env.pass" in person.sh("exec", "w", "-e", "A=1", "--", "true").stderr
    assert person.sh("exec", "w", "-e", "LANG=C", "-c", "echo $LANG").stdout == b"C\n", "it passes the caller's"


@pytest.fixture
def landlocked(person):
    done = person.sh("up", *person.sh.box.policy("version: 1\ntier: auto\nbackend: landlock\n"), "w")
    if done.returncode:
        pytest.skip(f"landlock: {done.stderr}")
    return person


def test_a_terminal_behind_landlock(landlocked):
    """Nobody there may open one: the monitor makes each, and sends it to the agent."""
    person = landlocked
    for count in (1, 2, 3):
        person.start("exec", "w", "--", "sh", "-c", "stty size; test -t 0 && test -t 1 && test -t 2 && echo all >/dev/tty")
        assert person.end() == 0 and person.seen == count * b"30 100\r\nall\r\n", person.seen
    person.start("shell", "w")
    person.until(b"$ ")
    person.type(b"sleep 30\n")
    time.sleep(0.2)
    person.type(b"\x03")
    person.until(b"$ ")
    person.type(b"stty size; exit 7\n")
    person.until(b"30 100\r\n")
    assert person.end() == 7
    told = person.sh("exec", "w", "--tty", "never", "-c", "test -t 0 || echo none")
    assert told.stdout == b"none\n", told


def test_each_has_its_own_behind_landlock(landlocked):
    """A call that comes to nothing leaves its terminal to nobody, and no terminal of another is in reach."""
    sh = landlocked.sh
    other, own = os.openpty()
    if os.geteuid() == 0:
        os.chown(os.ttyname(own), sh.box.uid, sh.box.uid)
    landlocked.start("exec", "w", "--", "nosuch")
    assert landlocked.end() == 127
    landlocked.start("exec", "w", "--cwd", "nosuch", "--", "true")
    assert landlocked.end() == 127
    text = f"tty; echo x > {os.ttyname(own)}; cat {os.ttyname(own)}; ls -l /proc/self/fd | grep -c ptmx"
    landlocked.start("exec", "w", "--", "sh", "-c", text)
    landlocked.end()
    lines = landlocked.seen.split(b"\r\n")
    assert any(line.startswith(b"/dev/pts/") for line in lines) and landlocked.seen.count(b"Permission denied") == 2 and lines[-2] == b"0", lines
    os.close(other)
    os.close(own)


# ---- a shell --------------------------------------------------------------------------------------


def test_a_shell(person):
    person.sh.box.file("here", "")
    person.sh.up("--rw")
    person.start("shell", "w")
    assert b"w:/workspace$ " in person.until(b"$ ")
    person.type(b"ls; tty; stty size\n")
    shown = person.until(b"30 100\r\n")
    assert b"here" in shown and b"/dev/pts/" in shown, shown
    person.until(b"$ ")
    person.type(b"sleep 30\n")
    time.sleep(0.2)
    person.type(b"\x1a")
    person.until(b"Stopped")
    person.type(b"kill -9 %1; cd /tmp; pwd\n")
    person.until(b"/tmp\r\n")
    for _ in range(3):  # it warns of a job that it has not seen end, once
        with contextlib.suppress(OSError):
            person.type(b"exit 5\n")
        time.sleep(0.2)
    assert person.end() == 5


def test_a_shell_reads_commands_where_there_is_no_terminal(sh):
    sh.up()
    done = sh("shell", "w", input=b"cd /tmp\npwd\nfalse || exit 4\n")
    assert (done.returncode, done.stdout) == (4, b"/tmp\n") and b"stdin is no terminal" in done.stderr, done
    assert sh("shell", "w", "-q", input=b"exit 3\n").stderr == b""


# ---- pipes and signals ----------------------------------------------------------------------------


def test_input_comes_as_it_comes(sh):
    sh.up()
    process = sh.start("exec", "w", "--", "cat", stdin=subprocess.PIPE)
    for word in (b"a\n", b"b\n"):
        process.stdin.write(word)
        process.stdin.flush()
        assert read_line(process) == word, "before the next is there"
    process.stdin.close()
    assert process.wait(WAIT) == 0


def test_output_comes_while_input_waits(sh):
    sh.up()
    process = sh.start("exec", "w", "-c", "echo first; sleep 0.2; echo second; read x; echo $x", stdin=subprocess.PIPE)
    assert [read_line(process) for _ in "12"] == [b"first\n", b"second\n"]
    process.stdin.write(b"third\n")
    process.stdin.close()
    assert read_line(process) == b"third\n" and process.wait(WAIT) == 0


def test_input_that_nobody_reads(sh):
    sh.up()
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as yes:
        started = time.monotonic()
        process = sh.start("exec", "w", "-c", "sleep 0.3; echo over", stdin=yes.stdout)
        assert process.communicate(timeout=WAIT)[0] == b"over\n" and process.returncode == 0
        assert time.monotonic() - started < 5
        yes.kill()


def test_a_reader_that_waits_and_one_that_leaves(sh):
    sh.up()
    process = sh.start("exec", "w", "-c", "yes | head -c 3000000")
    time.sleep(0.5)
    assert len(process.communicate(timeout=WAIT)[0]) == 3000000 and process.returncode == 0
    process = sh.start("exec", "w", "-c", "exec yes")
    assert process.stdout.read(2) == b"y\n"
    process.stdout.close()
    assert process.wait(WAIT) == 141


CATCH = """
import os, signal, sys, time
def got(*_):
    os.write(1, b"got\\n")
    os._exit(9)
signal.signal(int(sys.argv[1]), got)
os.write(1, b"up\\n")
for _ in range(1000):
    time.sleep(0.01)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_goes_to_the_command(sh, number):
    sh.box.file("catch.py", CATCH)  # no bash: it drops an interrupt that comes between its fork and its exec
    sh.up()
    process = sh.start("exec", "w", "--", PYTHON, "catch.py", str(int(number)))
    assert read_line(process) == b"up\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=WAIT)
    assert (process.returncode, out) == (128 + number, b"got\n"), (out, err)


@pytest.mark.parametrize("second, least, most", [(False, 0.9, 3), (True, 0, 0.8)])
def test_a_command_that_ignores_it(sh, second, least, most):
    sh.up()
    process = sh.start("exec", "w", "-c", f"trap '' INT; echo up; {SPIN}")
    assert read_line(process) == b"up\n"
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    if second:
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
    assert process.wait(WAIT) == 130
    assert least <= time.monotonic() - started < most
    assert sh("exec", "w", "--", "true").returncode == 0, "the sandbox goes on"


def test_a_signal_while_our_reader_waits(sh):
    """Its output is stuck in a pipe that nobody empties; Ctrl-C works all the same."""
    sh.up()
    process = sh.start("exec", "w", "-c", "trap '' INT; exec yes")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(WAIT) == 130


def test_who_ignores_interrupts_still_does(sh):
    sh.up()
    process = sh.start("exec", "w", "-c", "echo up; read x; exit 4", stdin=subprocess.PIPE,
                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert read_line(process) == b"up\n"
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    process.stdin.close()
    assert process.wait(WAIT) == 4


def test_a_monitor_that_hangs(sh):
    """The third signal leaves without it."""
    sh.up()
    process = sh.start("exec", "w", "--", "sleep", "20")
    time.sleep(0.3)
    with connected(sh.box.base / "runtime/caisson/w.sock", sh.box.uid) as peer:
        pid = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        assert process.wait(WAIT) == 130
    finally:
        os.kill(pid, signal.SIGCONT)
