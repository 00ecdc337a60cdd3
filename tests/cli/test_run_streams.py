"""A command's streams: byte for byte, in time, and never mixed with ours."""
import hashlib
import os
import signal
import subprocess
import time

import pytest

from run_fixtures import *

MIB = 1 << 20
FREE = "version: 1\nlimits: {output: 200MiB}\n"
WALLS = {"process": FREE, "landlock": LANDLOCK + "limits: {output: 200MiB}\n", "local": LOCAL + "limits: {output: 200MiB}\n"}
each_wall = pytest.mark.parametrize("policy", WALLS.values(), ids=WALLS)


@each_wall
def test_every_byte_passes(box, policy):
    data = bytes(range(256)) * 64 + b"\r\n\0\x04\x1a\xff"
    run = box.run("sh", "-c", "cat; printf '\\377\\000err' >&2", input=data, policy=policy)
    assert run.status == 0 and run.out == data, run
    assert run.err.encode(errors="replace") != b"" and run.result["usage"]["stderr_bytes"] == 5


@each_wall
def test_much_passes_both_ways(root_box, policy):
    """64 MiB in, 64 MiB out, at the same time."""
    size, piece = 64 * MIB, os.urandom(MIB)
    source = root_box.base / "big"
    with open(source, "wb") as file:
        for _ in range(size // MIB):
            file.write(piece)
    with open(source, "rb") as stdin:
        run = root_box.run("cat", policy=policy, stdin=stdin)
    assert run.status == 0, run
    assert len(run.out) == size and hashlib.sha256(run.out).digest() == hashlib.sha256(piece * 64).digest()
    assert run.result["usage"]["stdout_bytes"] == size


def test_a_piped_gigabyte_that_nobody_reads(box):
    """A command that ignores its input ends at once, however much there is of it."""
    with subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE) as endless:
        run = box.run("true", stdin=endless.stdout)
        endless.kill()
    assert run.status == 0 and run.seconds < 3, run


def test_output_comes_as_it_is_written(box):
    process = box.start("sh", "-c", "echo one; read x; echo two $x", stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"one\n"
    process.stdin.write(b"go\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"two go\n"
    process.communicate(timeout=10)
    assert process.returncode == 0


def test_order_within_a_stream_and_one_stream_for_both(box):
    path = box.base / "both"
    with open(path, "wb") as both:
        run = box.sh("for i in 1 2 3; do echo o$i; sleep 0.05; echo e$i >&2; sleep 0.05; done", stdout=both, stderr=both)
    assert run.status == 0 and path.read_text().split() == ["o1", "e1", "o2", "e2", "o3", "e3"]


def test_appending_does_not_truncate(box):
    path = box.base / "log"
    path.write_bytes(b"before\n")
    with open(path, "ab") as log:
        box.run("echo", "after", stdout=log)
    assert path.read_bytes() == b"before\nafter\n"


def test_closed_stdin(box):
    for closing in ("exec 0<&-", "exec 0<&- 1>&-", "exec 0<&- 2>&-", "exec 0<&- 1>&- 2>&-"):
        argv = ["sh", "-c", f'{closing}; exec "$@"', "sh", box.caisson, "run", "--result", str(box.base / "r"), "--", "cat"]
        done = subprocess.run(argv, cwd=box.ws, env=box.env, timeout=20, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              **box.as_owner())
        assert (done.returncode, done.stdout) == (0, b""), (closing, done)


def test_closed_streams_are_not_taken_by_files_of_ours(box):
    """Number 1 must not become the record: what a program prints would land in it."""
    argv = ["sh", "-c", 'exec 1>&- 2>&-; exec "$@"', "sh", box.caisson, "run", "--", "sh", "-c", "echo FORGED; echo FORGED >&2"]
    subprocess.run(argv, cwd=box.ws, env=box.env, timeout=20, stdin=subprocess.DEVNULL, **box.as_owner())
    for path in box.record().rglob("*"):
        if path.is_file() and path.name not in ("stdout", "stderr"):
            assert not path.read_bytes().startswith(b"FORGED") and b"\nFORGED\n" not in path.read_bytes(), path


def test_stdin_from_a_file_flag(box):
    source = box.base / "in"
    source.write_bytes(b"\0data\n")
    assert box.run("cat", flags=["--stdin", source]).out == b"\0data\n"
    run = box.run("cat", flags=["--stdin", box.base / "none"])
    assert run.status == 125 and "none" in run.err, run
    run = box.run("cat", flags=["--stdin", box.base])
    assert run.status in (0, 125) and run.out == b"", run


def test_stdin_at_its_offset(box):
    source = box.base / "in"
    source.write_bytes(b"first\nsecond\n")
    with open(source, "rb") as stdin:
        os.lseek(stdin.fileno(), 6, os.SEEK_SET)
        assert box.run("cat", stdin=stdin).out == b"second\n"


def test_an_open_stdin_does_not_hold_the_run(box):
    with open_ends() as (reader, _):
        run = box.run("echo", "done", stdin=reader)
    assert run.out == b"done\n" and run.seconds < 2, run


def test_a_reader_that_closes(box):
    started = time.monotonic()
    process = box.start("yes")
    assert process.stdout.readline() == b"y\n"
    process.stdout.close()
    process.wait(timeout=10)
    assert time.monotonic() - started < 3 and process.returncode == 128 + signal.SIGPIPE
    process.stderr.close()


def test_head_ends_a_pipeline(box):
    box.give()
    done = subprocess.run(["bash", "-c", 'set -o pipefail; "$0" run -- yes | head -1', box.caisson], cwd=box.ws, timeout=10,
                          env=box.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **box.as_owner())
    assert done.stdout == b"y\n" and done.returncode == 141


def test_a_slow_reader_loses_nothing(box):
    process = box.start(PYTHON, "-c", "for n in range(60000): print(n)")
    seen = b""
    while True:
        piece = os.read(process.stdout.fileno(), 20000)
        if not piece:
            break
        seen += piece
        time.sleep(0.01)
    process.communicate(timeout=10)
    assert process.returncode == 0
    assert seen == b"".join(b"%d\n" % n for n in range(60000))


def test_a_reader_that_stops_still_meets_the_clock(box):
    """Nobody reads, the command never ends: the clock ends it all the same."""
    started = time.monotonic()
    process = box.start("yes", flags=["--timeout", "700ms"])
    time.sleep(2.5)
    gone = wait_for(lambda: not children_named(process.pid, "yes"), 2)
    run = box.finish(process, started)
    assert gone and run.reason in ("timeout", "output"), run
    assert run.status in (124, 137), run


def children_named(pid, name):
    """Descendants of `pid` with that command name."""
    found = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,comm="], stdout=subprocess.PIPE, check=True, encoding="ascii",
                           errors="replace")
    table = [line.split(None, 2) for line in found.stdout.splitlines()]
    family = {str(pid)}
    for _ in range(6):
        family |= {row[0] for row in table if row[1] in family}
    return [row[0] for row in table if row[0] in family and row[2] == name]


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_cap(box, stream):
    where = ">&2" if stream == "stderr" else ""
    run = box.sh(f"i=0; while :; do i=$((i+1)); echo line $i {where}; done", flags=["-l", "output=64KiB"])
    assert (run.status, run.reason) == (137, "output"), run
    out = run.out if stream == "stdout" else run.err.encode()
    assert out.startswith(b"line 1\nline 2\n") and 60000 <= len(out) <= 66500, len(out)
    assert run.events == {"OutputLimitViolation"}, run
    kept = (box.record() / "logs" / stream).read_bytes()
    assert kept.startswith(b"line 1\n") and len(kept) > 32000


def test_the_record_keeps_both_halves(box):
    policy = "version: 1\nlimits: {output: 64MiB}\n"
    run = box.sh("echo begin; head -c 30000000 /dev/zero; echo end", policy=policy)
    assert run.status == 0 and len(run.out) == 30000010, run
    kept = (box.record() / "logs" / "stdout").read_bytes()
    assert kept.startswith(b"begin\n") and kept.endswith(b"end\n")
    assert len(kept) < 11 * MIB and run.result["usage"]["output_cut_bytes"] > 0
    assert b"%d bytes cut" % run.result["usage"]["output_cut_bytes"] in kept


@each_wall
def test_a_grandchild_that_holds_the_pipe(box, policy):
    run = box.sh("sleep 37 & echo done", policy=policy)
    assert run.out == b"done\n" and run.status == 0 and run.seconds < 3, run
    assert not running("sleep 37"), "it outlived the run"


def running(command):
    done = subprocess.run(["ps", "-e", "-o", "args="], stdout=subprocess.PIPE, check=True, encoding="utf-8", errors="replace")
    return [line for line in done.stdout.splitlines() if line == command]


@each_wall
def test_a_daemon_does_not_survive(box, policy):
    run = box.sh("setsid sh -c 'setsid sleep 38 >/dev/null 2>&1 </dev/null &' ; echo done", policy=policy)
    assert run.out == b"done\n" and run.status == 0 and run.seconds < 3, run
    assert wait_for(lambda: not running("sleep 38"), 1.0)


def test_the_result_on_stdout_stands_alone(box):
    run = box.cli("run", "--result", "-", "--", "sh", "-c", "echo out; echo err >&2; exit 4")
    assert run.status == 4 and b"\nout\n" not in run.out and run.err == "", run
    import json
    result = json.loads(run.out)
    assert result["termination"]["exit_code"] == 4 and result["usage"]["stdout_bytes"] == 4
    assert (box.record() / "logs" / "stdout").read_bytes() == b"out\n"
    assert (box.record() / "logs" / "stderr").read_bytes() == b"err\n"


def test_nothing_of_ours_in_a_quiet_run(box):
    run = box.run("sh", "-c", "echo out; echo err >&2", result=False)
    assert (run.out, run.err) == (b"out\n", "err\n")
