"""`caisson cp`: trees go both ways as they are, and nothing from inside leads the host astray."""
import contextlib
import hashlib
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from run_fixtures import *  # noqa: F403
from test_tty import Sandbox

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "agent"))
from etf import Atom, decode, encode  # noqa: E402

WAIT = 20


@pytest.fixture
def sh(box):
    made = Sandbox(box)
    yield made
    made("down", "w")


@pytest.fixture
def out(sh):
    """A folder on the host that no sandbox sees."""
    folder = sh.box.base / "out"
    folder.mkdir()
    sh.box.give()
    return folder


def inside(sh, text):
    done = sh("exec", "w", "-c", text)
    assert done.returncode == 0, done
    return done.stdout


def good(done):
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), done


def failed(done, *said):
    assert done.returncode == 1 and all(word in done.stderr for word in said), done
    assert len(done.stderr.splitlines()) == len(said), done


def tree(path):
    """Of a folder: what each is, its permissions and content."""
    found = {}
    for at in sorted(path.rglob("*")):
        st = at.lstat()
        kind = os.readlink(at) if at.is_symlink() else oct(st.st_mode & 0o7777)
        found[str(at.relative_to(path))] = (kind, at.read_bytes() if at.is_file() and not at.is_symlink() else None)
    return found


TREE = {"a/b/deep": ("0o644", b"deep\n"), "a/run": ("0o755", b"#!/bin/sh\n"), "a/secret": ("0o600", b"s"),
        "a/new\nline": ("0o644", b""), "a/-n": ("0o644", b"dash"), "a/q'uo\"te $x": ("0o644", b"q"),
        "a/empty": ("0o700", None), "a/b": ("0o755", None), "a/to": ("../b", None), "a/dang'ling": ("/no/such", None)}


def plant(top):
    for name, (kind, content) in sorted(TREE.items()):
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            path.write_bytes(content)
        elif kind.startswith("0o"):
            path.mkdir(exist_ok=True)
        else:
            path.symlink_to(kind)
        if kind.startswith("0o"):
            path.chmod(int(kind, 8))
    (top / "a").chmod(0o755)


def test_a_tree_there_and_back(sh, out):
    plant(sh.box.base / "made")
    sh.up()
    good(sh("cp", sh.box.base / "made/a", "w:/tmp"))
    assert inside(sh, "stat -c %a /tmp/a/secret /tmp/a/run /tmp/a/empty; readlink /tmp/a/to; cat /tmp/a/b/deep") == b"600\n755\n700\n../b\ndeep\n"
    good(sh("cp", "w:/tmp/a", out))
    assert tree(out) == TREE | {"a": ("0o755", None)}
    good(sh("cp", "w:/tmp/a", out / "other"))
    assert tree(out / "other") == tree(out / "a"), "a folder that is not there is made"
    good(sh("cp", "w:/tmp/a/.", out / "other"))
    good(sh("cp", f"{out}/other/", "w:/tmp/third"))
    assert inside(sh, "diff -r --no-dereference /tmp/a /tmp/third && echo same") == b"same\n"


def test_overwriting(sh, out):
    (out / "file").write_text("old\n")
    (out / "folder").mkdir()
    sh.up()
    inside(sh, "cd /tmp; echo new > f; chmod 640 f; mkdir d; echo in > d/x")
    good(sh("cp", "w:/tmp/f", out / "file"))
    assert (out / "file").read_text() == "new\n" and (out / "file").stat().st_mode & 0o777 == 0o640
    good(sh("cp", "w:/tmp/f", out / "folder"))
    good(sh("cp", "w:/tmp/f", f"{out}/folder/"))
    assert (out / "folder/f").read_text() == "new\n"
    failed(sh("cp", "w:/tmp/d", out / "file"), b"is no folder")
    (out / "folder/d").write_text("in the way")
    failed(sh("cp", "w:/tmp/d", out / "folder"), b"is no folder")
    (out / "d").mkdir()
    (out / "d/mine").write_text("stays")
    sh.box.give()
    good(sh("cp", "w:/tmp/d", out))
    assert sorted(os.listdir(out / "d")) == ["mine", "x"], "folders are joined"
    failed(sh("cp", "w:/tmp/f", f"{out}/nowhere/"), b"is no folder")
    failed(sh("cp", "w:/tmp/f", f"{out}/no/where"), b"No such file")
    failed(sh("cp", "w:/tmp/none", out), b"w:/tmp/none: ")
    good(sh("cp", out / "file", "w:/tmp/d/x"))
    good(sh("cp", out / "file", "w:/tmp/d"))
    assert inside(sh, "cat /tmp/d/x /tmp/d/file") == b"new\nnew\n"
    assert sh("cp", out / "d", "w:/tmp/f").returncode == 1
    assert inside(sh, "cat /tmp/f") == b"new\n"
    failed(sh("cp", out / "none", "w:/tmp"), b"No such file")


@pytest.mark.parametrize("words", [("a", "b"), ("w:a", "w:b"), ("/x:y", "z"), ("w:a",)])
def test_misuse(sh, words):
    sh.up()
    done = sh("cp", *words)
    assert done.returncode == 2 and done.stderr.startswith(b"caisson: "), done


def test_what_is_no_file_is_named_and_skipped(sh, out):
    source = sh.box.base / "source"
    source.mkdir()
    os.mkfifo(source / "pipe")
    (source / "file").write_text("x")
    sh.up()
    failed(sh("cp", source, "w:/tmp"), b"pipe: is a fifo, and skipped")
    inside(sh, "cd /tmp/source; mkfifo other; test ! -e pipe")
    failed(sh("cp", "w:/tmp/source", out), b"w:/tmp/source/other: is a fifo, and skipped")
    failed(sh("cp", "w:/dev/null", out), b"is a device, and skipped")
    assert tree(out) == {"source": ("0o755", None), "source/file": ("0o644", b"x")}


def test_each_failure_is_named_and_the_rest_is_copied(sh, out):
    sh.up()
    inside(sh, "mkdir /tmp/d; cd /tmp/d; for n in 1 2 3; do echo $n > $n; done; mkfifo p; chmod 0 2")
    done = sh("cp", "w:/tmp/d", out)
    assert done.returncode == 1 and b"w:/tmp/d/2: " in done.stderr and b"w:/tmp/d/p: " in done.stderr, done
    assert sorted(os.listdir(out / "d")) == ["1", "3"]


def test_no_set_id_bits_and_the_umask(sh, out):
    sh.box.file("suid", "x", 0o6755)
    sh.box.file("open", "x", 0o666)
    sh.up("--rw")
    for name, mode in (("suid", 0o755), ("open", 0o644)):
        (sh.box.ws / name).chmod(0o6755 if name == "suid" else 0o666)
        good(sh("cp", f"w:{name}", out))
        assert (out / name).stat().st_mode & 0o7777 == mode
        good(sh("cp", sh.box.ws / name, "w:/tmp"))
    assert inside(sh, "stat -c %a /tmp/suid") == b"755\n"


# ---- links that somebody inside has made ----------------------------------------------------------


def test_a_link_on_the_host_is_never_followed(sh, out):
    """The workspace may be written: a link stands where the caller is about to copy to."""
    away = sh.box.base / "away"
    away.mkdir()
    (away / "rc").write_text("mine\n")
    sh.box.give()
    sh.up("--rw")
    inside(sh, f"ln -s {away}/rc file; ln -s {away} folder; mkdir -p /tmp/d/folder; echo evil > /tmp/d/file; echo evil > /tmp/d/folder/rc")
    for words in (("w:/tmp/d/file", "file"), ("w:/tmp/d/file", "folder"), ("w:/tmp/d/file", "folder/rc"), ("w:/tmp/d/file", "./folder/"),
                  ("w:/tmp/d", "folder/new")):
        failed(sh("cp", *words), b"symbolic link")
    done = sh("cp", "w:/tmp/d/.", ".")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 2, done
    assert tree(away) == {"rc": ("0o644", b"mine\n")}


def test_a_link_on_the_host_is_not_read(sh, out):
    secret = sh.box.base / "secret"
    secret.mkdir()
    (secret / "key").write_text("key")
    sh.box.give()
    sh.up("--rw")
    inside(sh, f"mkdir d; ln -s {secret}/key d/key; ln -s {secret} d/all; ln -s {secret} top")
    good(sh("cp", "d", "w:/tmp"))
    good(sh("cp", "top", "w:/tmp"))
    assert inside(sh, "readlink /tmp/d/key /tmp/d/all /tmp/top; cat /tmp/d/key 2>/dev/null || echo not") == f"{secret}/key\n{secret}\n{secret}\nnot\n".encode()
    failed(sh("cp", "top/key", "w:/tmp"), b"symbolic link")
    failed(sh("cp", "top/", "w:/tmp/x"), b"symbolic link")


def test_links_replace_files_and_links_only(sh, out):
    (out / "l").write_text("old")
    sh.up()
    inside(sh, "cd /tmp; ln -s one l")
    good(sh("cp", "w:/tmp/l", out / "l"))
    assert os.readlink(out / "l") == "one"
    (out / "d").mkdir()
    (out / "d/l").mkdir()
    failed(sh("cp", "w:/tmp/l", out / "d"), b"File exists")


def test_a_copy_that_sees_itself(sh):
    sh.box.file("a/file", "x")
    sh.up("--rw")
    good(sh("cp", ".", "w:sub"))
    good(sh("cp", "w:.", "back"))  # what is protected stands there as a placeholder: nothing is missing
    assert not (sh.box.ws / "back/.envrc").exists()
    assert (sh.box.ws / "sub/a/file").read_text() == "x" and (sh.box.ws / "back/sub/a/file").read_text() == "x"
    assert not (sh.box.ws / "sub/sub").exists() and not (sh.box.ws / "back/back").exists()


def test_folders_without_end(sh, out):
    sh.up()
    inside(sh, "mkdir /tmp/d; cd /tmp/d; for i in $(seq 120); do mkdir d; cd d; done")
    failed(sh("cp", "w:/tmp/d", out), b"deeper than 100")


# ---- a monitor that lies --------------------------------------------------------------------------


class Liar:
    """Serves the frames of a sandbox whose folder holds whatever it says."""

    def __init__(self, sh, names, types=None):
        self.names, self.types = names, types or {}
        folder = sh.box.base / "runtime/caisson"
        folder.mkdir(mode=0o700, exist_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        ours = os.geteuid()
        if ours == 0:
            os.chown(folder, sh.box.uid, sh.box.uid)
            os.seteuid(sh.box.uid)
        self.listener.bind(str(folder / "liar.sock"))
        self.listener.listen()
        os.seteuid(ours)
        threading.Thread(target=self.serve, daemon=True).start()

    def reply(self, verb, path):
        if verb == "list":
            return {"entries": [{"name": name, "type": Atom("file"), "size": 1} for name in self.names], "truncated": False}
        if verb == "stat":
            name = path.rsplit(b"/", 1)[-1]
            kind = self.types.get(path, "directory" if name == b"top" else "file")
            return {"type": Atom(kind), "size": 4, "mode": 0o7777, "mtime_ms": 0} | ({"target": b"/etc/passwd"} if kind == "symlink" else {})
        return {"bytes": b"evil", "size": 4}

    def serve(self):
        peer, _ = self.listener.accept()

        def send(*frame):
            data = encode(frame)
            peer.sendall(struct.pack(">I", len(data)) + data)

        with peer.makefile("rb") as stream:
            send(Atom("ready"), {"version": 1, "verbs": [Atom(verb) for verb in ("stat", "list", "read")], "enforces": []})
            while head := stream.read(4):
                _, ref, verb, args = decode(stream.read(struct.unpack(">I", head)[0]))
                send(Atom("reply"), ref, self.reply(str(verb), args["path"]))


@pytest.mark.parametrize("name", [b"..", b".", b"../up", b"/etc/x", b"a/b", b"x" * 300])
def test_names_that_are_none(sh, out, name):
    (out / "to").mkdir()
    Liar(sh, [b"before", name, b"z"])
    sh.box.give()
    done = sh("cp", "liar:/top", out / "to")
    assert done.returncode == 1 and b"caisson: " in done.stderr, done
    found = tree(out)
    assert set(found) <= {"to", "to/top", "to/top/before", "to/top/z"}, found
    assert all(kind == "0o755" for kind, _ in found.values()), found


def test_escapes_in_names_are_not_shown(sh, out):
    Liar(sh, [b"\x1b[2J\nroot# "], types={b"/top/\x1b[2J\nroot# ": "socket"})
    sh.box.give()
    done = sh("cp", "liar:/top", out)
    assert done.returncode == 1 and b"\x1b" not in done.stderr and len(done.stderr.splitlines()) == 1, done


def test_a_name_that_is_a_link_and_then_a_folder(sh, out):
    """The second of two equal names does not go through the first."""
    away = sh.box.base / "away"
    away.mkdir()
    (out / "top").mkdir()
    (out / "top/twice").symlink_to(away)
    Liar(sh, [b"twice"], types={b"/top/twice": "directory"})
    sh.box.give()
    failed(sh("cp", "liar:/top", out), b"is no folder")
    assert tree(away) == {}


# ---- what would run on the host -----------------------------------------------------------------------

RUNS = [".git/hooks/pre-commit", ".git/config", ".git/info/attributes", ".envrc", ".vscode/tasks.json", "caisson.yaml",
        "sub/.Git/hooks/pre-commit", "sub/.ENVRC", "a/b/c/.vscode/tasks.json", "a/Caisson.YAML", ".git/modules/m/config",
        "sub/.git/config", ".idea/x", ".devcontainer/devcontainer.json"]
GOES = [".git/HEAD", ".git/objects/aa/b", "sub/.git/refs/heads/main", ".gitignore", "src/config", "hooks/x", "git/hooks/x"]


def test_what_would_run_here_comes_by_its_own_name_only(sh, out):
    sh.up()
    for name in RUNS + GOES:
        inside(sh, f"mkdir -p /tmp/o/{os.path.dirname(name)} && echo evil > /tmp/o/{name}")
    inside(sh, "ln -s .vscode /tmp/o/src/.git; ln -s x /tmp/o/src/.envrc")
    left = {b".git/hooks", b".git/config", b".git/info", b".envrc", b".vscode", b"caisson.yaml", b"sub/.Git/hooks",
            b"sub/.ENVRC", b"a/b/c/.vscode", b"a/Caisson.YAML", b".git/modules", b"sub/.git/config", b".idea",
            b".devcontainer", b"src/.git", b"src/.envrc"}
    for source, top in (("w:/tmp/o/.", out), ("w:/tmp/o/", out / "o"), ("w:/tmp/o", out / "made")):
        done = sh("cp", source, str(top if top.name == "made" else out))
        names = done.stderr.removeprefix(b"caisson: left out, because programs here would run it: ").split(b"; ")
        assert done.returncode == 1 and done.stderr.count(b"\n") == 1 and set(names[0].split(b", ")) == left, done
        assert {name for name in tree(top) if (top / name).is_file() and name.split("/")[0] not in ("o", "made")} == set(GOES)
        assert not list(top.rglob("*.[eE][nN][vV]rc")) and not list(top.rglob("hooks/pre-commit"))


def test_much_that_would_run_here_is_one_sentence(sh, out):
    sh.up()
    inside(sh, "mkdir -p /tmp/o/.idea /tmp/o/.vscode && cd /tmp/o && for i in $(seq 900); do mkdir d$i; echo x > d$i/.envrc; done; "
               "mkdir \"$(printf 'a\\nb')\"; cd a*; echo x > .envrc")
    done = sh("cp", "w:/tmp/o/.", out)
    assert done.returncode == 1 and done.stderr.count(b"\n") == 1 and b"a\\nb/.envrc, d1/.envrc, " in done.stderr, done
    assert b" and " in done.stderr and b".idea" not in done.stderr and len(done.stderr) < 16384, done


@pytest.mark.parametrize("source, made", [
    (".envrc", ".envrc"), (".vscode", ".vscode/tasks.json"), (".git/hooks", "hooks/pre-commit"),
    (".git", ".git/hooks/pre-commit"), (".git/config", "config"), ("caisson.yaml", "caisson.yaml"), (".git/.", "hooks/pre-commit")])
def test_what_is_named_comes(sh, out, source, made):
    sh.up()
    for name in RUNS:
        inside(sh, f"mkdir -p /tmp/o/{os.path.dirname(name)} && echo mine > /tmp/o/{name}")
    good(sh("cp", f"w:/tmp/o/{source}", str(out)))
    assert (out / made).read_text() == "mine\n"


# ---- size -----------------------------------------------------------------------------------------


def test_large_files_take_little_memory(sh, out):
    size = 96 << 20
    with open(sh.box.ws / "big", "wb") as big:
        big.truncate(size)
        big.seek(size - 3)
        big.write(b"end")
    sh.up("-l", "scratch=200MiB")
    for words in (["w:big", str(out)], [str(out / "big"), "w:/tmp"]):
        process, peak = sh.start("cp", *words), 0
        while process.poll() is None:
            with contextlib.suppress(OSError, IndexError):  # of this program, not of who forked it
                peak = max(peak, int(pathlib.Path(f"/proc/{process.pid}/status").read_text().split("VmHWM:")[1].split()[0]))
        assert process.returncode == 0 and 0 < peak < 32 << 10, (process.stderr.read(), peak)
    assert inside(sh, "stat -c %s /tmp/big; tail -c 3 /tmp/big") == b"%d\nend" % size
    assert inside(sh, "cmp /tmp/big big && echo same") == b"same\n"


HOLES = ["truncate -s 40M f", "printf x > f; truncate -s 40M f", "truncate -s 20M f; printf end >> f; truncate -s 40000001 f",
         "head -c 4096 /dev/zero > f", "head -c 4097 /dev/zero > f", "truncate -s 4095 f", ": > f",
         "truncate -s 70001 f; printf x >> f; truncate -s 140000 f; printf y >> f", "head -c 300000 /dev/urandom > f"]


@pytest.mark.parametrize("made", HOLES)
def test_zeros_take_no_room(sh, out, made):
    sh.up("-l", "scratch=200MiB")
    inside(sh, f"cd /tmp; {made}")
    (out / "f").write_bytes(b"old" * 100)
    good(sh("cp", "w:/tmp/f", str(out)))
    size, digest = inside(sh, "cd /tmp; stat -c %s f; sha256sum f").split()[:2]
    st = (out / "f").stat()
    assert st.st_size == int(size) and hashlib.sha256((out / "f").read_bytes()).hexdigest().encode() == digest
    assert st.st_blocks * 512 <= (32 << 10 if "urandom" not in made else 320 << 10), st


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_half_a_file(sh, out, number):
    sh.up()
    inside(sh, "truncate -s 100G /tmp/big")
    process = sh.start("cp", "w:/tmp/big", str(out))
    time.sleep(0.3)
    process.send_signal(number)
    assert process.wait(WAIT) == -number
    assert os.listdir(out) == []


def test_a_number_that_is_none(sh):
    sh.box.file("a", "x")
    sh.up()
    assert b"--offset takes a number, as --offset 100" in sh("read", "w", "a", "--offset", "x").stderr
