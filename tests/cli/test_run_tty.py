"""A command on a terminal: a pty inside, keys that pass as they are, the caller's own restored."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

import pytest

from run_fixtures import *


class Screen:
    """A pseudo terminal that a caisson runs on."""

    def __init__(self, box):
        self.box, self.seen = box, b""
        self.master, self.slave = pty.openpty()
        self.resize(30, 100, None)

    def resize(self, rows, columns, process):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if process:
            process.send_signal(signal.SIGWINCH)

    def start(self, *argv, **more):
        def own_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        if os.geteuid() == 0:
            os.fchown(self.slave, self.box.uid, self.box.uid)
        self.started = time.monotonic()
        streams = {"stdin": self.slave, "stdout": self.slave, "stderr": self.slave}
        self.process = self.box.start(*argv, preexec_fn=own_terminal, **streams | more)
        return self.process

    def read_until(self, wanted, seconds=5):
        end = time.monotonic() + seconds
        while wanted not in self.seen:
            left = end - time.monotonic()
            assert left > 0, self.seen
            if select.select([self.master], [], [], left)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:
                    break
        return self.seen

    def type(self, keys):
        os.write(self.master, keys)

    def end(self, seconds=10):
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            if select.select([self.master], [], [], 0.02)[0]:
                self.seen += os.read(self.master, 65536)
        while select.select([self.master], [], [], 0.05)[0]:
            self.seen += os.read(self.master, 65536)
        return self.box.finish(self.process, self.started, 1)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def screen(box):
    made = Screen(box)
    yield made
    made.close()


AUTO = {"result": False}


def test_a_terminal_inside(screen):
    screen.start("sh", "-c", "test -t 0 && test -t 1 && test -t 2 && tty && stty size && echo $TERM", env={"TERM": "xterm-256color"},
                 flags=["--tty", "always"])
    run = screen.end()
    assert run.status == 0, (run, screen.seen)
    assert screen.seen.split()[:4] == [b"/dev/pts/0", b"30", b"100", b"xterm-256color"], screen.seen


def test_auto_means_where_there_is_one(screen):
    screen.start("sh", "-c", "test -t 0 && echo yes", **AUTO)
    screen.end()
    assert screen.seen.startswith(b"yes\r\n"), screen.seen


def test_never(screen):
    screen.start("sh", "-c", "test -t 0 || test -t 1 || echo none", flags=["--tty", "never"])
    screen.end()
    assert b"none" in screen.seen


def test_no_terminal_where_one_stream_is_none(screen):
    screen.start("sh", "-c", "test -t 0 || echo none", stdout=-1, **AUTO)
    assert screen.process.stdout.read() == b"none\n"
    screen.end()


def test_always_without_one(box):
    run = box.run("sh", "-c", "test -t 0 && test -t 1 && echo yes", flags=["--tty", "always"])
    assert run.status == 0 and run.text == "yes\r\n", run


def test_resize(screen):
    process = screen.start("sh", "-c", "trap 'stty size; exit 0' WINCH; echo up; while :; do sleep 0.02; done",
                           flags=["--tty", "always"])
    screen.read_until(b"up\r\n")
    screen.resize(12, 34, process)
    screen.read_until(b"12 34\r\n")
    assert screen.end().status == 0


def test_interrupt_key_goes_to_the_command(screen):
    screen.start("sh", "-c", "trap 'echo got; exit 9' INT; echo up; while :; do sleep 0.02; done", flags=["--tty", "always"])
    screen.read_until(b"up\r\n")
    screen.type(b"\x03")
    screen.read_until(b"got")
    run = screen.end()
    assert run.status == 9 and run.reason == "exited", run


def test_quit_key_and_default_action(screen):
    screen.start("sh", "-c", "echo up; exec sleep 60", flags=["--tty", "always"])
    screen.read_until(b"up\r\n")
    screen.type(b"\x03")
    assert screen.end().status == 130


def test_end_of_input_key(screen):
    screen.start("sh", "-c", "echo up; cat; echo after", flags=["--tty", "always"])
    screen.read_until(b"up\r\n")
    screen.type(b"line\n\x04")
    screen.read_until(b"after")
    assert screen.end().status == 0 and screen.seen.count(b"line") == 2, "echoed, and printed"


@pytest.mark.parametrize("how", ["exit", "TERM", "KILL inside", "refused", "timeout"])
def test_the_callers_terminal_is_restored(screen, how):
    before = termios.tcgetattr(screen.slave)
    argv = {"exit": ["true"], "refused": ["/no/such"], "KILL inside": ["sh", "-c", "kill -9 $$"]}.get(how, ["sleep", "20"])
    flags = ["--tty", "always"] + (["--timeout", "200ms"] if how == "timeout" else [])
    process = screen.start(*argv, flags=flags)
    if how == "TERM":
        assert wait_for(lambda: termios.tcgetattr(screen.slave) != before), "raw while it runs"
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
    screen.end()
    assert termios.tcgetattr(screen.slave) == before


def test_a_shell_is_usable(screen):
    """Job control: a foreground child of its own group, stopped and resumed."""
    screen.start("bash", "--norc", "-i", flags=["--tty", "always"], env={"TERM": "dumb"})
    screen.type(b"PS1='>''> '\n")
    screen.read_until(b">> ")
    screen.type(b"sh -c 'echo in fr''ont; exec cat'\n")
    screen.read_until(b"in front")  # a key before that is the shell's
    screen.type(b"\x1a")
    screen.read_until(b"Stopped")
    screen.type(b"kill %1; wait; echo do''ne\n")
    screen.read_until(b"done")
    # Twice: bash may still count the job as stopped (a race of its own), and then refuses once.
    screen.type(b"exit 5\nexit 5\n")
    assert screen.end().status == 5, screen.seen


def test_much_output_on_a_terminal(screen):
    screen.start("sh", "-c", "seq 1 20000", flags=["--tty", "always"])
    screen.read_until(b"\n20000\r\n", 10)
    assert screen.end().status == 0
    assert screen.seen.count(b"\r\n") == 20000


def test_no_fake_keys(screen):
    """What a program inside types into its terminal stays inside."""
    screen.start(PYTHON, "-c", "import fcntl, termios\ntry:\n    fcntl.ioctl(0, termios.TIOCSTI, b'x')\nexcept OSError as e: print(e.errno)",
                 flags=["--tty", "always"])
    run = screen.end()
    assert run.status == 0 and screen.seen.split()[0] in (b"1", b"5", b"25", b"38"), screen.seen
    assert "SyscallViolation" in run.events, run
