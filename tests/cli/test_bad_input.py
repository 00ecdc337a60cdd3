"""Input that is wrong, huge or hostile: policy files, commands, mounts, run roots, variables."""
import json
import os
import signal
import subprocess
import time

import pytest

from run_fixtures import *

POLICIES = {
    "empty": b"", "only a comment": b"# nothing\n", "no version": b"tier: auto\n", "version 2": b"version: 2\n",
    "version text": b'version: "1"\n', "unknown key": b"version: 1\nworkspase: {}\n", "unknown in map": b"version: 1\nlimits: {memroy: 1GiB}\n",
    "list for map": b"version: 1\nlimits: [1]\n", "text for map": b"version: 1\nlimits: all\n", "map for text": b"version: 1\ntier: {a: b}\n",
    "unknown tier": b"version: 1\ntier: high\n", "negative": b"version: 1\nlimits: {processes: -1}\n", "zero": b"version: 1\nlimits: {memory: 0}\n",
    "overflow": b"version: 1\nlimits: {memory: 99999999999999999999GiB}\n", "u64 wrap": b"version: 1\nlimits: {memory: 18446744073709551617}\n",
    "i64": b"version: 1\nlimits: {processes: 9223372036854775808}\n", "float": b"version: 1\nlimits: {processes: 1.5}\n",
    "hex": b"version: 1\nlimits: {processes: 0x10}\n", "exponent": b"version: 1\nlimits: {cpus: 1e9}\n", "nan": b"version: 1\nlimits: {cpus: .nan}\n",
    "inf": b"version: 1\nlimits: {cpus: .inf}\n", "no unit": b"version: 1\nlimits: {command: 45 parsecs}\n",
    "duplicate": b"version: 1\ntier: auto\ntier: strict\n", "duplicate inside": b"version: 1\nlimits: {memory: 1GiB, memory: 2GiB}\n",
    "anchor": b"version: 1\nlimits: &a {memory: 1GiB}\n", "alias": b"version: 1\nmounts: [*a]\n",
    "merge": b"version: 1\n<<: {tier: auto}\n", "tag": b"version: !!int 1\n", "own tag": b"version: 1\ntier: !x auto\n",
    "two documents": b"version: 1\n---\nversion: 1\n", "directive": b"%YAML 9.9\n---\nversion: 1\n", "NUL": b"version: 1\ntier: au\0to\n",
    "NUL at end": b"version: 1\n\0", "bad UTF-8": b"version: 1\ntier: \xff\xfe\n", "overlong": b"version: 1\ntier: \xc0\xaf\n",
    "surrogate": b"version: 1\nenv: {set: {A: \"\\ud800\"}}\n", "UTF-16": "version: 1\ntier: nosuch\n".encode("utf-16"), "tab": b"version: 1\nlimits:\n\tmemory: 1GiB\n",
    "unclosed": b"version: 1\nlimits: {memory: 1GiB\n", "binary": bytes(range(256)) * 8, "ELF": b"\x7fELF" + bytes(100),
    "scalar": b"1", "list": b"- version: 1\n", "null": b"version: 1\ntier: null\n", "mount beneath": b"version: 1\nworkspace: {hide: [../x]}\n",
    "absolute protect": b"version: 1\nworkspace: {protect: [/etc]}\n", "at system": b"version: 1\nworkspace: {at: /usr}\n",
    "env name": b"version: 1\nenv: {set: {\"A=B\": c}}\n", "env number": b"version: 1\nenv: {set: {A: {b: c}}}\n",
    "deep": b"version: 1\nmounts: " + b"[" * 5000 + b"]" * 5000 + b"\n",
    "wide": b"version: 1\nworkspace: {hide: [" + b"x," * 200000 + b"y]}\n",
    "nesting of 10 MB": b"version: 1\nlimits: " + b"{a: " * (10 << 18) + b"\n",
    "long scalar": b"version: 1\ntier: " + b"a" * (10 << 20) + b"\n", "long key": b"version: 1\n? " + b"a" * (1 << 20) + b"\n: 1\n",
    "comments of 10 MB": b"version: 1\n" + b"# x\n" * (10 << 18),
}


@pytest.mark.parametrize("content", POLICIES.values(), ids=POLICIES)
def test_policy_content(user_box, content):
    path = user_box.base / "bad.yaml"
    path.write_bytes(content)
    run = user_box.run("true", flags=["--policy", path])
    assert run.status == 125 and run.err.startswith("caisson: ") and run.seconds < 3, run
    assert len(run.err) < 4000 and all(c.isprintable() or c == "\n" for c in run.err), run
    assert "bad.yaml" in run.err, run


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo", "unreadable", "device", "socket", "dangling", "loop"])
def test_policy_file_kinds(box, kind):
    path = box.base / "p.yaml"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "unreadable":
        path.write_text("version: 1\n")
        path.chmod(0)
    elif kind == "device":
        path = "/dev/zero"
    elif kind == "socket":
        import socket
        socket.socket(socket.AF_UNIX).bind(str(path))
    elif kind in ("dangling", "loop"):
        path.symlink_to("nowhere" if kind == "dangling" else "p.yaml")
    if kind == "unreadable" and box.is_root:
        pytest.skip("a file that root cannot read")
    run = box.run("true", flags=["--policy", path], timeout=5)
    assert run.status == 125 and str(path) in run.err and run.seconds < 2, run


@pytest.mark.parametrize("kind", ["folder", "fifo", "loop", "bad"])
def test_project_file_kinds(box, kind):
    path = box.ws / "caisson.yaml"
    {"folder": path.mkdir, "fifo": lambda: os.mkfifo(path), "loop": lambda: path.symlink_to("caisson.yaml"),
     "bad": lambda: path.write_bytes(b"\xff")}[kind]()
    run = box.run("true", timeout=5)
    assert run.status == 125 and "caisson.yaml" in run.err, run


LOOSE = {
    "tier": "tier: local", "memory": "limits: {memory: 64GiB}", "none": "limits: {command: none}",
    "mount": "mounts: [{host: /etc, at: /workspace/etc}]", "mode": "workspace: {mode: rw}", "path": "workspace: {path: ..}",
    "env": "env: {pass: [AWS_SECRET_ACCESS_KEY]}", "git": "env: {git_identity: true}", "hide": "workspace: {hide: []}",
    "protect": "workspace: {protect: []}", "network": "network: {mode: engine}", "allow": "network: {mode: allow, allow: [evil.example]}",
    "overrides": "overrides: {per_request: true}", "root": "mount_roots: [/]", "auto": "tier: auto", "backend": "backend: local",
    "output": "limits: {output: none}", "set": "env: {set: {LD_PRELOAD: ./evil.so}}",
}


@pytest.mark.parametrize("line", LOOSE.values(), ids=LOOSE)
def test_a_hostile_project_file_only_tightens(box, line):
    box.file("caisson.yaml", f"version: 1\n{line}\n")
    run = box.sh("env; echo x >f; cat etc/passwd", env={"AWS_SECRET_ACCESS_KEY": "leaked"})
    assert run.status == 125 and "trust" in run.err and "leaked" not in run.text, run
    assert not (box.ws / "f").exists()


def test_a_project_file_may_tighten(box):
    box.file("caisson.yaml", "version: 1\nlimits: {command: 300ms, memory: 64MiB}\n")
    run = box.run("sleep", "9")
    assert run.status == 124 and run.result["limits"]["command_ms"] == 300, run
    assert run.result["policy"]["trusted"] is False and len(run.result["policy"]["sha256"]) == 64


@pytest.mark.parametrize("mode", ["rw", "cow"])
def test_the_policy_file_in_force_is_read_only_inside(box, mode):
    text = f"version: 1\nworkspace: {{mode: {mode}}}\n"
    path = box.file("caisson.yaml", text)
    run = box.sh("(echo 'tier: local' >>caisson.yaml) 2>/dev/null; rm -f caisson.yaml; mv caisson.yaml x; cat caisson.yaml; true",
                 flags=["--policy", path])
    assert run.status == 0 and run.text == text and path.read_text() == text, run
    assert run.events == {"FilesystemWriteViolation"}, run


def test_a_project_file_of_a_stranger(root_box):
    path = root_box.file("caisson.yaml", "version: 1\nlimits: {memory: 64MiB}\n")
    os.chown(path, USER_UID, USER_UID)
    run = root_box.run("true")
    assert run.status == 125 and "caisson.yaml" in run.err or run.result["policy"]["path"] is None, run


def test_a_project_file_that_others_may_write(box):
    box.file("caisson.yaml", "version: 1\n", 0o666)
    run = box.run("true")
    assert run.status == 125 and "caisson.yaml" in run.err, run


# ---- commands ----------------------------------------------------------------------------------

@pytest.mark.parametrize("argv", [[], ["--"], ["--no-such-flag"], ["--timeout"], ["--memory", "lots", "--", "true"], ["-c"],
                                  ["-c", "true", "--", "true"], ["--tty", "maybe", "--", "true"], ["-e", "=x", "--", "true"],
                                  ["-l", "nonsense=1", "--", "true"], ["-m", "nowhere", "--", "true"],
                                  ["--cpus", "-1", "--", "true"], ["--cpus", "0", "--", "true"], ["--memory", "-5", "--", "true"]])
def test_wrong_flags(user_box, argv):
    run = user_box.cli("run", *argv)
    assert run.status == 125 and run.err and run.out == b"", run


def test_many_arguments(box):
    """As many as a host's execve() takes pass; beyond, a sentence and no half of them."""
    words = ["x" * 1000] * 1200
    run = box.run("sh", "-c", "echo $# ${1200}", "sh", *words)
    assert (run.status, run.text) == (0, f"1200 {'x' * 1000}\n"), run
    words = ["y" * 100000] * 19
    run = box.run("sh", "-c", "echo $#", "sh", *words)
    assert run.text == "19\n" or (run.status in (125, 126) and run.err), run


def test_a_text_too_long(box):
    run = box.cli("run", "-c", "true #" + "x" * 131000)
    assert run.status in (0, 125, 126) and (run.status == 0 or run.err), run


@pytest.mark.parametrize("name", ["\n", "a\nb", "\x1b[31mred", "\xff".encode("latin-1"), "..", "/", "-x", "a" * 5000, "ü" * 300])
def test_odd_command_names(box, name):
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    run = box.run(name)
    assert run.status in (125, 126, 127) and "\x1b" not in run.err, run
    assert json.dumps(run.result)


def test_odd_arguments_arrive(box):
    words = ["", "\n", "a b", "\x01", "'\"$(x)`", os.fsdecode(b"\xff\xfe"), "ü", "-", "--", "*"]
    run = box.run(PYTHON, "-c", "import os, sys; print([os.fsencode(a) for a in sys.argv[1:]])", *words)
    assert eval(run.text) == [os.fsencode(word) for word in words], run  # noqa: S307


@pytest.mark.parametrize("value", ["a\nb", "", "=", "x" * 100000, "\x1b]0;x\x07", os.fsdecode(b"\xff")])
def test_odd_variables(box, value):
    run = box.run(PYTHON, "-c", "import os; os.write(1, os.environb[b'ODD'])", flags=["-e", "ODD"], env={"ODD": value})
    assert run.status == 0 and run.out == os.fsencode(value), run
    run = box.run(PYTHON, "-c", "import os; os.write(1, os.environb[b'ODD'])", flags=["-e", f"ODD={value}"])
    if run.status == 125:
        assert "--env" in run.err and not value.isprintable(), run
    else:
        assert run.out == os.fsencode(value), run
    assert value == "" or len(value) < 5 or value not in json.dumps(run.result)


def test_a_variable_of_a_megabyte(box):
    """The kernel takes 128 KiB a string: from a policy file too long is a sentence, never a cut."""
    text = "version: 1\nenv: {set: {BIG: " + "x" * (1 << 20) + "}}\n"
    run = box.run("sh", "-c", "echo ${#BIG}", policy=text)
    assert run.text == f"{1 << 20}\n" or (run.status in (125, 126) and run.err.startswith("caisson: ")), run


def test_a_huge_environment_of_the_callers(box):
    run = box.run("env", env={f"V{n}": "x" * 1000 for n in range(900)})
    assert run.status == 0 and b"V1=" not in run.out, run


# ---- mounts ------------------------------------------------------------------------------------

MOUNTS = {"missing": "/no/such:/data", "dotdot": "{base}:/data/../../etc", "relative": "{base}:data", "proc": "{base}:/proc",
          "in proc": "{base}:/proc/sys", "sys": "{base}:/sys", "dev": "{base}:/dev", "etc": "{base}:/etc", "usr": "{base}:/usr",
          "root": "{base}:/", "all": "/:/data", "home": "{home}:/data", "host proc": "/proc:/data",
          "runs": "{runs}:/data", "double": "{base}:/data:ro:rw", "mode": "{base}:/data:rwx", "empty": ":/data", "link": "{base}/link:/data",
          "host sys": "/sys:/data", "host dev": "/dev:/data", "nothing": "{base}:"}


@pytest.mark.parametrize("mount", MOUNTS.values(), ids=MOUNTS)
def test_mounts_that_cannot_be(box, mount):
    box.runs.mkdir(parents=True)
    (box.base / "link").symlink_to("/")
    words = mount.format(base=box.base / "state", home=box.home, runs=box.runs).replace(f"{box.base}/state/link", f"{box.base}/link")
    run = box.run("ls", "/data", flags=["-m", words])
    assert run.status == 125 and run.err.startswith("caisson: ") and run.out == b"", run


def test_a_mount_onto_a_link_of_the_workspace(box):
    """A link inside the workspace must not lead a mount elsewhere."""
    (box.ws / "link").symlink_to("/etc")
    data = box.base / "data"
    data.mkdir()
    (data / "passwd").write_text("forged\n")
    run = box.run("cat", "/etc/passwd", flags=["-m", f"{data}:/workspace/link"])
    assert b"forged" not in run.out, run


@pytest.mark.parametrize("where", ["/", "/etc", "/usr", "/proc", "/dev", "/home", "/var", "home"])
def test_workspaces_that_cannot_be(box, where):
    where = box.home if where == "home" else where
    for flags in (["-w", where], ["-w", f"{where}:rw"]):
        run = box.run("true", flags=flags)
        assert run.status == 125 and str(where) in run.err, run


def test_a_workspace_behind_a_link(box):
    (box.base / "to-root").symlink_to("/")
    (box.base / "to-home").symlink_to(box.home)
    for name in ("to-root", "to-home"):
        assert box.run("true", flags=["-w", box.base / name]).status == 125


# ---- run roots ---------------------------------------------------------------------------------

def test_a_run_root_in_the_workspace_is_hidden(box):
    root = box.ws / "records"
    box.run("echo", "secret-of-another-run", flags=["--run-dir", root])
    assert list(root.iterdir())
    run = box.sh("ls -A records; grep -r secret-of . ; echo x >records/x; true", flags=["--run-dir", root, "--rw"])
    assert "secret-of" not in run.text and run.text.strip() == "", run
    assert not (root / "x").exists()


def test_a_run_root_that_is_a_file(box):
    path = box.file("file", "x")
    run = box.run("echo", "ran", flags=["--run-dir", path])
    assert run.status == 125 and str(path) in run.err and run.out == b"", run


def test_a_run_root_without_rights(user_box):
    path = user_box.base / "locked"
    path.mkdir()
    path.chmod(0o500)
    run = user_box.run("echo", "ran", flags=["--run-dir", path / "runs"])
    assert run.status == 125 and "locked" in run.err and run.out == b"", run


@pytest.fixture
def small_disk(root_box):
    """A tmpfs of 1 MiB."""
    place = root_box.base / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "csn-test", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_run_root_on_a_read_only_disk(root_box, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    run = root_box.run("echo", "ran", flags=["--run-dir", small_disk / "runs"])
    assert run.status == 125 and run.err.startswith("caisson: ") and run.out == b"", run


def test_a_run_root_on_a_full_disk(root_box, small_disk):
    fd = os.open(small_disk / "fill", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError):
        while True:
            os.write(fd, bytes(4096))
    os.close(fd)
    run = root_box.run("echo", "ran", flags=["--run-dir", small_disk / "runs"])
    assert run.status == 125 or (run.status == 0 and run.result["log_incomplete"]), run
    assert run.err or run.status == 0, run


def test_a_disk_that_fills_meanwhile(root_box, small_disk):
    """The record suffers and says so; the command's outcome does not."""
    run = root_box.sh("head -c 3000000 /dev/zero; exit 5", flags=["--run-dir", small_disk / "runs"])
    assert run.status == 5 and len(run.out) == 3000000, run
    assert run.result["termination"]["exit_code"] == 5 and run.result["log_incomplete"] is True, run.result
    assert run.result["error"] is None


def test_a_result_that_cannot_be_written(box):
    run = box.cli("run", "--result", "/no/such/folder/r", "--", "sh", "-c", "exit 3")
    assert run.status == 3 and "/no/such/folder/r" in run.err, run
    run = box.cli("run", "--result", "/dev/full", "--", "true")
    assert run.status == 125 and "/dev/full" in run.err, run


def test_two_runs_at_once_in_one_root(box):
    started = [box.start("sh", "-c", f"sleep 0.2; echo {n}", result=False) for n in range(8)]
    outs = [process.communicate(timeout=30) for process in started]
    assert sorted(int(out) for out, _ in outs) == list(range(8)), outs
    ids = [path.name for path in box.runs.iterdir() if path.is_dir() and path.name[0] != "."]
    assert len(ids) == 8
    for run_id in ids:
        assert box.cli("runs", "verify", run_id).status == 0
    assert len((box.runs / "heads.jsonl").read_text().splitlines()) >= 8


def test_run_ids_of_the_future(box):
    """A record dated after today (another clock, a stranger's folder) breaks no list and no run."""
    box.run("true", result=False)
    (box.runs / "29991231-235959-ffffffffffff").mkdir()
    (box.runs / "not-a-run").mkdir()
    (box.runs / "99999999-999999-zzzzzzzzzzzz").mkdir()
    run = box.run("echo", "ran")
    assert run.status == 0 and run.out == b"ran\n", run
    assert box.cli("runs", "ls").status == 0
    assert box.cli("runs", "show").status in (0, 1)
    assert box.cli("runs", "gc").status == 0
    assert (box.runs / "not-a-run").exists(), "what is no run is not ours to remove"


def test_a_home_that_is_not_there(box):
    for env in ({"HOME": "/nonexistent"}, {"HOME": ""}, {"XDG_STATE_HOME": "relative"}):
        run = box.run("echo", "ran", env=env, flags=["--run-dir", box.runs])
        assert run.status == 0 and run.out == b"ran\n", (env, run)


def test_a_folder_that_is_gone(box):
    gone = box.base / "gone"
    gone.mkdir()
    box.give()
    done = subprocess.run(["sh", "-c", 'rmdir "$PWD"; exec "$0" run -- true', box.caisson], cwd=gone, env=box.env, timeout=10,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **box.as_owner())
    assert done.returncode == 125 and b"folder" in done.stderr, done


def test_limits_of_the_callers(box):
    """Few descriptors, a small stack, a small file size: it runs, or it says why not."""
    for limit in ("-n 20", "-n 12", "-s 256", "-f 0", "-u 30"):
        done = subprocess.run(["bash", "-c", f'ulimit {limit}; exec "$0" run --no-record -- echo ran', box.caisson], cwd=box.ws,
                              env=box.env, timeout=20, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              **box.as_owner())
        assert done.stdout == b"ran\n" or (done.returncode not in (0, -signal.SIGSEGV) and done.stderr), (limit, done)


def test_a_thousand_open_descriptors_of_the_callers(box):
    """They do not reach the program."""
    with open("/etc/hostname", "rb") as file:
        fds = []
        try:
            for _ in range(500):
                fd = os.dup(file.fileno())
                os.set_inheritable(fd, True)
                fds.append(fd)
            run = box.run("ls", "/proc/self/fd", close_fds=False)
        finally:
            for fd in fds:
                os.close(fd)
    assert run.text.split() == ["0", "1", "2", "3"], run


def test_unreadable_output_of_a_program_is_only_output(box):
    """What looks like a frame, a log line or an error of ours is a program's output."""
    run = box.run("printf", r'\000\000\000\005\203h\001{"event":"RunExited"}\ncaisson: start failed\n')
    assert run.status == 0 and run.out.endswith(b"caisson: start failed\n") and run.reason == "exited", run


def test_time_that_jumps_is_not_ours(box):
    started = time.monotonic()
    run = box.run("sleep", "0.2", env={"FAKETIME": "+1y", "TZ": "/../../etc/passwd"})
    assert run.status == 0 and time.monotonic() - started < 3, run
