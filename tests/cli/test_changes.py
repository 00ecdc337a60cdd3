"""diff and commit of a sandbox that lives: every kind of change, while its commands go on."""
import fcntl
import json
import os
import pathlib
import signal
import stat
import subprocess
import time

import pytest
from run_fixtures import *  # noqa: F403
from test_stay import Atom, children, stay  # noqa: F401

WAIT = 30


class Shell:
    """caisson, typed in the workspace; `up` names sandboxes that end with the test."""

    def __init__(self, box):
        self.box, self.names = box, []
        self.env = box.env | {"XDG_RUNTIME_DIR": str(box.base / "runtime")}
        (box.base / "runtime").mkdir(mode=0o700)

    def start(self, *words, **more):
        return subprocess.Popen([self.box.caisson, *map(str, words)], cwd=self.box.ws, env=self.env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **self.box.as_owner(), **more)

    def __call__(self, *words):
        process = self.start(*words)
        out, err = process.communicate(timeout=WAIT)
        return subprocess.CompletedProcess(words, process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def up(self, *flags, name="w"):
        self.box.give()  # not later: a changed owner is a changed file
        self.names.append(name)
        done = self("up", name, *flags)
        assert done.returncode == 0, done
        return name

    def sh(self, text, name="w"):
        done = self("exec", name, "-q", "-c", text)
        assert done.returncode == 0, done
        return done.stdout

    def changes(self, *words, name="w"):
        done = self("diff", name, "--json", *words)
        assert done.returncode == 0, done
        return json.loads(done.stdout)["changes"]

    def listed(self, *words, name="w"):
        return [(change["change"][0].upper(), change["path"]) for change in self.changes(*words, name=name)]

    def commit(self, *words, name="w"):
        done = self("commit", name, "--json", *words)
        told = json.loads(done.stdout)
        assert done.returncode == (1 if told["left_out"] else 0), done
        return {c["path"] for c in told["applied"]}, {c["path"]: c["reason"] for c in told["left_out"]}

    def monitor(self, name="w"):
        told = json.loads(self("ps", "--json").stdout)["sandboxes"]
        return next(sandbox["pid"] for sandbox in told if sandbox["name"] == name)


@pytest.fixture
def sh(box):
    shell = Shell(box)
    yield shell
    for name in shell.names:  # some are down already
        shell("down", name)


def fill(ws):
    for name, text in {"text": "".join(f"line {n}\n" for n in range(30)), "binary": b"\0\1\2", "moved": "moved\n", "mode": "x\n",
                       "gone": "gone\n", "folder/in": "in\n", "folder/deep/er": "er\n", "old link target": "t\n",
                       "closed": "secret\n", "kept": "kept\n"}.items():
        path = ws / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    (ws / "link").symlink_to("old link target")


# What a command does, and the lines and texts that diff shows for it.
KINDS = {
    "text": ("sed -i 's/line 15/another/' text", [("M", "text")], ["-line 15\n+another\n", "--- a/text\n+++ b/text\n"]),
    "binary": ("printf '\\0\\7\\7\\7' >binary", [("M", "binary")], ["M binary\n  not text, 4 bytes\n"]),
    "added": ("mkdir -p new/er; echo hi >new/er/file", [("A", "new/"), ("A", "new/er/"), ("A", "new/er/file")], ["+hi\n"]),
    "rename": ("mv moved there", [("D", "moved"), ("A", "there")], ["D moved (now there)\n", "rename from moved\nrename to there\n"]),
    "folder rename": ("mv folder other", [("D", "folder/deep/er"), ("D", "folder/deep/"), ("D", "folder/in"), ("D", "folder/"),
                                          ("A", "other/"), ("A", "other/deep/"), ("A", "other/deep/er"), ("A", "other/in")],
                      ["R other/in (was folder/in)\n", "R other/deep/er (was folder/deep/er)\n"]),
    "mode": ("chmod 755 mode", [("M", "mode")], ["M mode (mode 755, was 644)\n"]),
    "deleted": ("rm gone", [("D", "gone")], ["-gone\n", "+++ /dev/null\n"]),
    "folder deleted": ("rm -r folder", [("D", "folder/deep/er"), ("D", "folder/deep/"), ("D", "folder/in"), ("D", "folder/")], ["D folder/\n"]),
    "link": ("ln -sf kept link", [("M", "link")], ["M link -> kept\n"]),
    "folder by file": ("rm -r folder; echo f >folder", [("D", "folder/deep/er"), ("D", "folder/deep/"), ("D", "folder/in"),
                                                        ("D", "folder/"), ("A", "folder")], ["A folder\n", "+f\n"]),
    "file by folder": ("rm gone; mkdir gone; echo f >gone/in", [("D", "gone"), ("A", "gone/"), ("A", "gone/in")], ["A gone/\n"]),
    "file by link": ("ln -sf kept gone", [("M", "gone")], ["M gone -> kept\n"]),
    "made anew": ("rm -r folder; mkdir folder; echo n >folder/new", [("D", "folder/deep/er"), ("D", "folder/deep/"), ("D", "folder/in"),
                                                                     ("A", "folder/new")], ["+n\n"]),
    "mode 000": ("echo s >shut; chmod 0 shut; mkdir cell; echo in >cell/in; chmod 0 cell; chmod 0 closed",
                 [("A", "cell/"), ("A", "cell/in"), ("M", "closed"), ("A", "shut")], ["M closed (mode 000, was 644)\n", "+in\n", "+s\n"]),
    "newline": ("echo n >'a\nb'", [("A", "a\\nb")], ["A a\\nb\n", "+++ b/a\\nb\n"]),
    "not utf-8": ("printf x >\"$(printf 'a\\377')\"", [("A", "a\\xff")], ["A a\\xff\n"]),
    "huge": ("truncate -s 1T huge; echo end >>huge", [("A", "huge")], ["A huge\n  too long for a diff, 1099511627780 bytes\n"]),
    "touched": ("touch text; cp kept k; mv k kept", [], []),
}


def state(folder):
    """Names, kinds, permissions and contents, small ones; as root sees them."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        at = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() and at.st_size < 1 << 20 else at.st_size
        found[str(path.relative_to(folder))] = (stat.S_IFMT(at.st_mode), at.st_mode & 0o777, content if not path.is_dir() else None)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_change(sh, kind):
    """Listed, shown, committed; then nothing is left to do and the sandbox sees what it saw."""
    command, listed, shown = KINDS[kind]
    fill(sh.box.ws)
    sh.up("--cow")
    before = state(sh.box.ws)
    sh.sh(command)
    assert sh.listed() == listed
    text = sh("diff", "w").stdout
    assert [part for part in shown if part not in text] == [], text
    assert state(sh.box.ws) == before
    inside = sh.sh("ls -lAR --time-style=+ . | grep -v ^total; true")
    applied, left = sh.commit()
    assert left == {} and applied == {path for _, path in listed}
    assert sh.listed() == [] and sh.commit() == (set(), {})
    assert sh.sh("ls -lAR --time-style=+ . | grep -v ^total; true") == inside
    after = state(sh.box.ws) if os.geteuid() == 0 else {}
    if after:
        assert (after != before) is bool(listed)
        assert all(path.lstat().st_uid == sh.box.uid for path in sh.box.ws.rglob("*"))
    if kind == "huge":
        assert (sh.box.ws / "huge").stat().st_blocks * 512 < 1 << 20
    if kind == "mode 000" and after:
        assert after["cell"][1] == after["shut"][1] == after["closed"][1] == 0 and after["cell/in"][2] == b"in\n"
    assert sh("down", "w").returncode == 0 and json.loads(sh("diff", sh.box.record().name, "--json").stdout)["changes"] == []


def mode_of(path):
    return f"{stat.S_IMODE(path.lstat().st_mode):04o}"


def test_modes_that_let_others_in_stay_inside(sh):
    """Who could write a committed file could put there what the caller runs next; set-user-id would run as the caller."""
    ws = sh.box.ws
    for name, mode in {"plain": 0o644, "ours": 0o664, "open": 0o666, "was-set": 0o4755}.items():
        (ws / name).write_text("x\n")
        (ws / name).chmod(mode)
    for name, mode in {"drop": 0o1777, "shared": 0o2775, "folder": 0o755}.items():
        (ws / name).mkdir()
        (ws / name).chmod(mode)
    sh.up("--cow")
    (ws / "drop").chmod(0o1777)  # an owner's change may have dropped it
    sh.sh("""
        for mode in 0777 0666 0622 4755 2755 6777 1777 0700 0000; do echo s >new-$mode; chmod $mode new-$mode; done
        for mode in 0777 2777 1777; do mkdir dir-$mode; chmod $mode dir-$mode; done
        chmod 0777 plain; chmod 0775 ours; echo y >>open; echo y >>was-set
        chmod 0777 folder; chmod 00770 shared; mv ours moved; rm plain; mkdir plain; chmod 0777 plain
        """)
    # A chmod to set-user-id is denied inside. Suppose that somebody finds a way.
    for name, mode in {"new-4755": 0o4755, "new-2755": 0o2755, "new-6777": 0o6777, "dir-2777": 0o2777, "open": 0o6777,
                       "was-set": 0o6777, "shared": 0o2770}.items():
        next(sh.box.runs.glob("*/cow/upper")).joinpath(name).chmod(mode)
    applied, left = sh.commit()
    assert not left and {"open", "moved", "dir-2777"} <= {path.rstrip("/") for path in applied}
    landed = {path.name: mode_of(path) for path in ws.iterdir()}
    assert landed == {
        "new-0777": "0755", "new-0666": "0644", "new-0622": "0600", "new-4755": "0755", "new-2755": "0755", "new-6777": "0755",
        "new-1777": "0755", "new-0700": "0700", "new-0000": "0000", "dir-0777": "0755", "dir-2777": "0755", "dir-1777": "0755",
        "moved": "0755", "open": "0777", "was-set": "0755", "folder": "0755", "plain": "0755", "drop": "1777", "shared": "2770"}
    for flags in ([], ["--force"]):  # what landed once is no reason to let more over
        assert not sh.commit(*flags)[1] and landed == {path.name: mode_of(path) for path in ws.iterdir()}


def test_paths_and_flags(sh):
    fill(sh.box.ws)
    sh.up("--cow")
    sh.sh("echo a >text; echo b >kept; mkdir new; echo c >new/c")
    assert sh.listed("kept", "/workspace/new/c") == [("M", "kept"), ("A", "new/"), ("A", "new/c")]
    assert sh("diff", "w", "--names-only").stdout == "M kept\nA new/\nA new/c\nM text\n"
    assert sh.commit("--dry-run")[0] == {"kept", "new/", "new/c", "text"} and (sh.box.ws / "kept").read_text() == "kept\n"
    assert sh.commit("new", "./text") == ({"new/", "new/c", "text"}, {})
    assert sh.listed() == [("M", "kept")] and (sh.box.ws / "text").read_text() == "a\n"
    assert sh("diff", "w", "text").stderr == "nothing changed\n"


def test_committed_again_and_again(sh):
    """What we wrote is no change of somebody else's; after his, we refuse, in the record's diff too."""
    fill(sh.box.ws)
    sh.up("--cow")
    for turn in ("one", "two", "three"):
        sh.sh(f"echo {turn} >text; echo {turn} >fresh; ln -sfn {turn} link")
        assert sh.commit() == ({"text", "fresh", "link"}, {})
        assert (sh.box.ws / "text").read_text() == (sh.box.ws / "fresh").read_text() == f"{turn}\n"
        assert os.readlink(sh.box.ws / "link") == turn
    sh.sh("echo four >text; echo four >fresh; rm gone kept")
    time.sleep(0.02)
    for name in ("text", "kept"):
        with open(sh.box.ws / name, "a") as file:
            file.write("mine\n")
        os.utime(sh.box.ws / name, (1, 1))
    applied, left = sh.commit()
    assert applied == {"fresh", "gone"} and set(left) == {"text", "kept"} and "changed in the workspace" in left["text"]
    assert (sh.box.ws / "text").read_text() == "three\nmine\n"
    assert sh("down", "w").returncode == 0
    run = sh.box.record().name
    assert "text left out" in sh("commit", run).stdout
    assert sh("commit", run, "--force", "text").returncode == 0 and (sh.box.ws / "text").read_text() == "four\n"


def test_added_on_both_sides(sh):
    sh.up("--cow")
    sh.sh("echo theirs >new")
    sh.box.file("new", "mine\n")
    assert set(sh.commit()[1]) == {"new"} and (sh.box.ws / "new").read_text() == "mine\n"
    assert sh.commit("--force")[1] == {} and (sh.box.ws / "new").read_text() == "theirs\n"


@pytest.mark.parametrize("name,why", [(".git/hooks/post-commit", "git runs"), (".envrc", "direnv"), (".vscode/tasks.json", "editor"),
                                      ("sub/caisson.yaml", "policy file"), ("conf/keys", "protects")])
def test_what_would_run_or_is_protected_stays_out(sh, name, why):
    policy = sh.box.policy("version: 1\nworkspace: {mode: cow, protect: [conf/keys]}\n")
    sh.up(*policy)
    sh.sh(f"mkdir -p $(dirname {name}); echo bad >{name}; echo fine >fine")
    guarded = {change["path"]: change["guarded"] for change in sh.changes()}
    applied, left = sh.commit()
    assert "fine" in applied and why in left[name] and not (sh.box.ws / name).exists()
    assert guarded["fine"] is False and (guarded[name] or "policy" in why)
    applied, left = sh.commit(name)
    assert (name in left) is ("policy file" in why) and (sh.box.ws / name).exists() is ("policy file" not in why)


def test_no_folder_becomes_a_repository(sh):
    sh.up("--cow")
    sh.sh("mkdir -p docs/objects docs/refs docs/hooks; cd docs; echo ref: refs/heads/x >HEAD; cp HEAD hooks/x; cp HEAD fine;"
          " printf '[core]\\nbare = true\\nfsmonitor = touch pwned\\n' >config")
    applied, left = sh.commit()
    assert "docs/fine" in applied and {"docs/config", "docs/hooks/x", "docs/HEAD"} <= set(left), (applied, left)
    assert "git takes" in left["docs/config"] and not (sh.box.ws / "docs/config").exists()
    assert sh.commit("docs/config")[1] == {} and (sh.box.ws / "docs/config").exists()


def test_only_copies_have_changes(sh):
    sh.up("--rw")
    for verb in ("diff", "commit"):
        done = sh(verb, "w")
        assert done.returncode != 0 and "--cow" in done.stderr and "does not have" in done.stderr, done
    done = sh("diff", "nobody")
    assert done.returncode != 0 and "nobody" in done.stderr, done


def test_it_is_in_the_record(sh):
    sh.up("--cow")
    sh.sh("for n in $(seq 450); do echo $n >f$n; done; ln -s /etc/passwd away")
    applied, left = sh.commit()
    assert len(applied) == 450 and set(left) == {"away"}
    sh("down", "w")
    events = [json.loads(line) for line in (sh.box.record() / "logs/events.jsonl").read_text().splitlines()]
    told = [event["payload"] for event in events if event["event"] == "Committed"]
    assert sum(p["applied"] for p in told) == 450 and sum(p["left_out"] for p in told) == 1
    assert {path for p in told for path in p["paths"]} == {f"f{n}" for n in range(1, 451)}
    assert sh("runs", "verify").returncode == 0


WRITERS = """
cd /workspace
while :; do
  for n in 1 2 3; do (seq 20000; echo end) >w$n.new; mv w$n.new w$n; done
  mkdir -p d/e; echo x >d/e/f; rm -rf d; ln -sfn /etc/passwd swap; rm -f swap; mkdir swap; rmdir swap
done
"""


def test_while_commands_write(sh):
    """Files are those of one moment, and names that come and go are no error."""
    whole = "".join(f"{n}\n" for n in range(1, 20001)) + "end\n"
    sh.up("--cow")
    done = sh("exec", "w", "--detach", "--tag", "writers", "-c", WRITERS)
    assert done.returncode == 0, done
    for _ in range(8):
        assert sh("diff", "w").returncode == 0
        sh.commit()
        for name in ("w1", "w2", "w3"):
            if (sh.box.ws / name).exists():
                assert (sh.box.ws / name).read_text() == whole
        assert not (sh.box.ws / "swap").is_symlink()
    sh("kill", "w", "writers")
    assert not [name for name in os.listdir(sh.box.ws) if name.startswith(".caisson")]


def test_a_file_that_never_rests_is_named(sh):
    sh.up("--cow")
    sh.sh("head -c 30000000 /dev/zero >log")
    assert sh("exec", "w", "--detach", "--tag", "log", "-c", "while :; do echo x >>log; done").returncode == 0
    applied, left = sh.commit()
    assert applied == set() and left["log"].startswith("it is written to"), left
    assert not (sh.box.ws / "log").exists()


def test_links_lead_nowhere(sh):
    outside = sh.box.base / "outside"
    outside.mkdir()
    (outside / "in").write_text("precious\n")
    fill(sh.box.ws)
    sh.up("--cow")
    sh.sh("echo evil >folder/in")
    os.rename(sh.box.ws / "folder", sh.box.ws / "away")
    (sh.box.ws / "folder").symlink_to(outside)
    assert (outside / "in").read_text() == "precious\n"
    sh.commit("--force")
    assert (outside / "in").read_text() == "precious\n" and os.listdir(outside) == ["in"]


@pytest.mark.parametrize("victim", ["monitor", "worker"])
def test_killed_while_it_commits(sh, victim):
    """Old or new, and no temporary: ended at any moment."""
    names = [f"f{n}" for n in range(120)]
    for name in names:
        sh.box.file(name, "old\n" * 2000)
    cut = 0
    for turn in range(4):
        sh.up("--cow", name=f"w{turn}")
        sh.sh(f"for f in f*; do yes new{turn} | head -n 3000 >$f; done", name=f"w{turn}")
        old = {name: (sh.box.ws / name).read_text() for name in names}
        monitor = sh.monitor(f"w{turn}")
        process = sh.start("commit", f"w{turn}", "--force")
        time.sleep(0.01 + 0.015 * turn)
        workers = [int(pid) for pid in open(f"/proc/{monitor}/task/{monitor}/children").read().split()
                   if open(f"/proc/{pid}/comm").read() == "caisson-worker\n"]
        if victim == "monitor":
            os.kill(monitor, signal.SIGKILL)
        elif workers:
            os.kill(workers[0], signal.SIGTERM)
        process.communicate(timeout=WAIT)
        assert wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers), 5)
        now = {name: (sh.box.ws / name).read_text() for name in names}
        new = f"new{turn}\n" * 3000
        assert all(now[name] in (old[name], new) for name in names)
        cut += 0 < sum(now[name] == new for name in names) < 120
        assert sorted(os.listdir(sh.box.ws)) == sorted(names)
        sh("down", f"w{turn}")
    assert cut > 0, "no commit was met in its middle"


def test_the_example(sh):
    """examples/edit.c: edits in a copy, runs the tests, shows the diff, commits."""
    build = pathlib.Path(os.environ.get("CAISSON", sh.box.caisson)).resolve().parents[2]
    example = build / "tests/client/example-edit-static"
    assert os.access(example, os.X_OK), f"{example} is not built"
    sh.box.file("main.c", "int a;\n")
    sh.box.give()
    env = sh.env | {"PATH": f"{os.path.dirname(sh.box.caisson)}:{sh.env['PATH']}"}
    words = ["main.c", "int a", "int b"]

    def run(command):
        return subprocess.run([example, *words, command], cwd=sh.box.ws, capture_output=True, text=True, timeout=WAIT, env=env,
                              **sh.box.as_owner())

    failed = run("grep -q absent main.c")
    assert failed.returncode == 1 and "-int a;\n+int b;\n" in failed.stdout and (sh.box.ws / "main.c").read_text() == "int a;\n"
    done = run("grep int main.c")
    assert done.returncode == 0 and "exited, status 0, 0 violations" in done.stdout and "+int b;\n" in done.stdout, done
    assert (sh.box.ws / "main.c").read_text() == "int b;\n"


# ---- snapshot and fork ---------------------------------------------------------------------------

LAYER = """
sed -i 's/line 15/another/' text; rm gone; rm -r folder; mkdir folder; echo n >folder/new; ln -sf kept link; chmod 755 mode
mkdir cell; echo in >cell/in; chmod 600 cell/in; chmod 0 cell; truncate -s 1T huge; touch -d 2001-01-01 old; mv moved there
echo n >'a
b'
"""
LOOK = "chmod 700 cell 2>/dev/null; ls -lAR --time-style=full-iso . | grep -v ^total | grep -v ' cell$'; cat text folder/* there cell/in; readlink link"


def test_a_fork_has_the_files_and_goes_its_own_way(sh):
    fill(sh.box.ws)
    sh.up("--cow", "-n", "loopback", "-l", "processes=77", "-e", "NAME=value")
    sh.sh(LAYER)
    listed = sh.listed()
    sh.names += ["x", "y"]
    done = sh("fork", "w", "x")
    assert (done.returncode, done.stdout, done.stderr) == (0, "x\n", ""), done
    told = {s["name"]: s for s in json.loads(sh("ps", "--json").stdout)["sandboxes"]}
    assert {"w", "x"} <= set(told) and told["w"]["pid"] != told["x"]["pid"]
    assert sh.listed(name="x") == listed and sh.sh(LOOK, "x") == sh.sh(LOOK)
    sh.sh("echo x >text; test $NAME = value", "x")
    sh.sh("echo w >kept")
    assert sh.sh("cat kept", "x") == "kept\n" and "another" in sh.sh("cat text")
    assert sh("down", "w").returncode == 0
    assert sh.sh("cat text", "x") == "x\n", "it outlives its origin"
    assert sh("fork", "x", "y").returncode == 0 and sh.sh("cat text", "y") == "x\n"
    assert sh("fork", "x", "y").returncode != 0 and "y is up" in sh("fork", "x", "y").stderr
    for run in (sh.box.runs / name for name in sh("runs", "ls", "-q").stdout.split()):
        assert not [name for name in os.listdir(run / "cow") if name.startswith(".")]


def test_snapshots_are_what_was(sh):
    fill(sh.box.ws)
    sh.up("--cow")
    sh.names += ["x"]
    sh.sh("echo one >text")
    assert sh("snapshot", "w", "first").stdout == "first\n"
    sh.sh("echo two >text; echo more >more")
    told = json.loads(sh("snapshot", "w", "second", "--json").stdout)
    assert told["tag"] == "second" and told["entries"] == 2 and told["torn"] == 0 and told["bytes"] == 9
    for words, why in ((("snapshot", "w", "first"), "there is a snapshot first already"), (("snapshot", "w", "../x"), "a tag has"),
                       (("fork", "w", "x", "third"), "no snapshot third"), (("fork", "w", "../x"), "no name of a sandbox")):
        done = sh(*words)
        assert done.returncode != 0 and why in done.stderr, done
    assert sh("fork", "w", "x", "first").returncode == 0
    assert sh.sh("cat text; ls more || true", "x") == "one\n" and sh.listed(name="x") == [("M", "text")]
    assert sh.commit(name="x") == ({"text"}, {}) and (sh.box.ws / "text").read_text() == "one\n"


def test_a_fork_commits_as_its_origin_would(sh):
    """Changes of the workspace count from when the origin began; what the origin committed is ours."""
    fill(sh.box.ws)
    sh.up("--cow")
    sh.names += ["x"]
    sh.sh("echo first >text; echo theirs >kept; echo first >fresh")
    sh.commit("text", "fresh")
    time.sleep(0.02)
    sh.box.file("kept", "mine\n")
    sh.sh("echo second >text; echo second >fresh")
    assert sh("fork", "w", "x").returncode == 0
    applied, left = sh.commit(name="x")
    assert applied == {"text", "fresh"} and "changed in the workspace" in left["kept"]
    assert (sh.box.ws / "kept").read_text() == "mine\n" and (sh.box.ws / "text").read_text() == "second\n"


def test_their_number_is_bounded_and_they_go_with_the_record(sh):
    sh.up("--cow")
    sh.sh("echo x >x")
    for n in range(32):
        assert sh("snapshot", "w", f"s{n}").returncode == 0
    done = sh("snapshot", "w", "one-more")
    assert done.returncode != 0 and "at most 32" in done.stderr
    sh("down", "w")
    run = sh.box.record()
    assert sh("runs", "rm", run.name).returncode == 0 and not run.exists()


def test_snapshots_while_commands_write(sh):
    whole = "".join(f"{n}\n" for n in range(1, 20001)) + "end\n"
    sh.up("--cow")
    sh.names += ["f0", "f1", "f2"]
    assert sh("exec", "w", "--detach", "--tag", "writers", "-c", WRITERS).returncode == 0
    for n in range(3):
        done = sh("fork", "w", f"f{n}")
        assert done.returncode == 0, done
        for name in ("w1", "w2", "w3"):
            text = sh.sh(f"cat {name} 2>/dev/null; true", f"f{n}")
            assert text in ("", whole)


def test_what_never_rests_is_named(sh):
    sh.up("--cow")
    sh.sh("head -c 30000000 /dev/zero >log")
    assert sh("exec", "w", "--detach", "--tag", "log", "-c", "while :; do echo x >>log; done").returncode == 0
    sh.sh("until [ $(stat -c %s log) -gt 30000100 ]; do sleep 0.01; done")
    for tag in ("one", "two", "three", "four", "five"):  # on a busy machine its writer may rest while it is copied
        done = sh("snapshot", "w", tag)
        assert done.returncode == 0, done
        if "log changed all the time" in done.stderr:
            break
    else:
        pytest.fail(done)


def test_only_copies_are_forked(sh):
    sh.up("--rw")
    for words in (("snapshot", "w", "t"), ("fork", "w", "x")):
        done = sh(*words)
        assert done.returncode != 0 and "--cow" in done.stderr, done


def test_killed_while_it_forks(sh):
    """A fork stands whole or not at all; nothing of it holds on to its origin."""
    fill(sh.box.ws)
    for turn in range(4):
        sh.up("--cow", name=f"w{turn}")
        sh.names += [f"x{turn}"]
        sh.sh("for n in $(seq 300); do echo $n >f$n; done", name=f"w{turn}")
        monitor = sh.monitor(f"w{turn}")
        process = sh.start("fork", f"w{turn}", f"x{turn}")
        time.sleep(0.005 + 0.03 * turn)
        os.kill(monitor, signal.SIGKILL)
        process.communicate(timeout=WAIT)
        wait_for(lambda: f'"x{turn}"' not in sh("ps", "--json").stdout or sh("exec", f"x{turn}", "-c", "true").returncode == 0, 5)
        def alive():
            return [s["name"] for s in json.loads(sh("ps", "--json").stdout)["sandboxes"]]

        assert wait_for(lambda: f"w{turn}" not in alive(), 3)
        if f"x{turn}" in alive():
            assert sh.sh("ls | grep -c ^f", f"x{turn}") == "301\n"


def test_a_finished_run_is_forked(sh):
    fill(sh.box.ws)
    (sh.box.ws / "caisson.yaml").write_text('version: 1\nworkspace: {hide: [".env", ".env.*", "*.pem", closed]}\n')
    sh.up("--cow")
    sh.sh("echo one >text; rm gone")
    sh("snapshot", "w", "early")
    sh.sh("echo two >text")
    assert sh("down", "w").returncode == 0
    run = sh.box.record().name
    assert "snapshots early\n" in " ".join(sh("runs", "show").stdout.split(" ")).replace("  ", " ")
    sh.names += ["x", "y"]
    assert sh("fork", run[-6:], "x").stdout == "x\n" and sh("fork", run, "y", "early").stdout == "y\n"
    assert sh.sh("cat text; test ! -e gone; cat closed 2>&1; true", "x").startswith("two\n") and sh.sh("cat text", "y") == "one\n"
    assert "secret" not in sh.sh("cat closed 2>/dev/null; true", "x"), "the policy file of the workspace counts"
    assert sh.listed(name="x") == [("D", "gone"), ("M", "text")]
    assert sh.commit(name="x") == ({"gone", "text"}, {}) and (sh.box.ws / "text").read_text() == "two\n"
    for words, why in ((("fork", run, "z", "none"), "no snapshot none"), (("fork", run, "x"), "x is up"), (("fork", "nobody", "z"), "nobody"),
                       (("fork", run, "../z"), "no name")):
        done = sh(*words)
        assert done.returncode != 0 and why in done.stderr, done
    assert not [name for name in os.listdir(sh.box.runs / run / "cow") if name.startswith(".")]


def test_files_of_others_are_named(sh):
    """They cannot be copied: the kernel tells the command EOVERFLOW, and we tell the caller why."""
    if os.geteuid() != 0:
        pytest.skip("root: makes files of others")
    fill(sh.box.ws)
    sh.up("--cow")
    assert sh("diff", "w").stderr == "nothing changed\n" and json.loads(sh("diff", "w", "--json").stdout)["foreign"] == 0
    for name in ("text", "folder/in"):
        os.chown(sh.box.ws / name, 54321, 54321)
    sh.sh("echo x 2>/dev/null >>text; echo x >kept")
    done = sh("diff", "w")
    assert "caisson: 2 files of another owner or group cannot be changed in the copy: " in done.stderr, done
    assert {"folder/in", "text"} == set(done.stderr.split("copy: ")[1].strip().split(", "))
    assert sh.commit() == ({"kept"}, {}) and (sh.box.ws / "text").exists()
    sh("down", "w")
    assert json.loads(sh("diff", sh.box.record().name, "--json").stdout)["foreign"] == 2


def test_a_fork_outlives_an_owner(sh):
    """A sandbox of csn_open() ends with its owner's stream; its forks have none."""
    import socket
    from test_stay import Client
    ours, theirs = socket.socketpair()
    sh.box.file("a", "old\n")
    sh.box.give()
    process = sh.start("monitor", "--cow", "--fd", theirs.fileno(), pass_fds=[theirs.fileno()])
    theirs.close()
    client = Client.__new__(Client)
    client.socket = ours
    ours.settimeout(WAIT)
    client.ready = client.frame()[1]
    assert {"diff", "commit", "snapshot", "fork"} <= {str(verb) for verb in client.ready["verbs"]}
    assert client.sh("echo new >a")["exit_code"] == 0
    frame, _, _ = client.call("fork", 2, name=b"x")
    assert frame[0] == "reply" and frame[2]["entries"] == 1, frame
    sh.names.append("x")
    ours.close()
    process.communicate(timeout=WAIT)
    assert sh.sh("cat a", "x") == "new\n"
    pid = sh.monitor("x")
    assert {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (0, 1, 2)} == {"/dev/null"}
    assert os.getsid(pid) == pid


def lost(sh, text, *flags):
    """A sandbox that wrote something, and whose monitor was killed: its run, once nobody holds it."""
    sh.box.give()
    assert sh("policy", "trust", "--yes").returncode == 0
    sh.up("--cow", *flags)
    sh.sh(text)
    os.kill(sh.monitor(), signal.SIGKILL)
    run = sh.box.record().name
    assert wait_for(lambda: json.loads(sh("runs", "ls", "--json").stdout)[0]["status"] == "lost", 10)
    return run


def test_work_of_a_killed_monitor_can_be_had(sh):
    fill(sh.box.ws)
    (sh.box.ws / "caisson.yaml").write_text("version: 1\nworkspace: {protect: [kept], hide: ['.env', '.env.*', '*.pem', closed]}\n")
    run = lost(sh, "echo mine >text; rm gone; mkdir -p .vscode; echo x >.vscode/tasks.json; echo 'version: 1' >caisson.yaml; true")
    assert run[-6:] in sh("runs", "show", run).stderr and "caisson diff" in sh("why", run).stderr
    for words in (("diff", run), ("runs", "diff", run), ("runs", "diff")):
        done = sh(*words)
        assert done.returncode == 0 and "+mine\n" in done.stdout and "-gone\n" in done.stdout, done
    sh.names.append("x")
    assert sh("fork", run, "x").stdout == "x\n" and sh.sh("cat text", "x") == "mine\n"
    assert sh("commit", run, "--dry-run").returncode == 1 and (sh.box.ws / "gone").exists()
    done = sh("commit", run, "text")
    assert (done.returncode, done.stdout) == (0, "M text\n") and (sh.box.ws / "text").read_text() == "mine\n", done
    told = json.loads(sh("runs", "ls", "--json").stdout)
    assert [r["status"] for r in told if r["run_id"] == run] == ["lost"], "or retention takes what is not committed yet"
    done = sh("runs", "commit", run)
    assert done.returncode == 1 and "D gone\n" in done.stdout and ".vscode/tasks.json left out" in done.stdout, done
    assert not (sh.box.ws / "gone").exists() and not (sh.box.ws / ".vscode" / "tasks.json").exists()
    assert sum('"event":"Committed"' in line for line in (sh.box.runs / run / "logs/events.jsonl").read_text().splitlines()) == 2
    assert sh("runs", "rm", run).returncode == 0


def test_a_killed_monitors_policy_still_guards(sh):
    """What it protected and hid is judged as it was at the start, whatever the workspace says now."""
    fill(sh.box.ws)
    (sh.box.ws / "caisson.yaml").write_text("version: 1\nworkspace: {protect: [kept], hide: ['.env', '.env.*', '*.pem', closed]}\n")
    run = lost(sh, "true")
    (sh.box.ws / "caisson.yaml").write_text("version: 1\n")
    upper = sh.box.runs / run / "cow" / "upper"
    (upper / "kept").write_text("changed\n")
    (upper / "closed").write_text("changed\n")
    done = sh("commit", run)
    assert done.returncode == 1 and "the policy protects it" in done.stdout and "the policy hides it" in done.stdout, done
    state = sh.box.runs / run / "state.json"
    told = json.loads(state.read_text())
    del told["cow"]["protect"]
    state.write_text(json.dumps(told))
    assert "before it wrote down what its policy protects" in sh("commit", run).stderr


def test_a_run_without_a_result_says_what_it_is(sh):
    sh.up("--cow")
    run = sh.box.record().name
    done = sh("diff", run)
    assert done.returncode == 1 and "it still runs, as the sandbox w; `caisson diff w`" in done.stderr, done
    assert "is still running" in sh("runs", "rm", run).stderr
    monitor = sh.monitor()
    # Its lock is held, by us, when it is gone: as its processes would while they end.
    os.kill(monitor, signal.SIGKILL)
    folder = os.open(sh.box.runs / run, os.O_RDONLY)

    def held():
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False

    assert wait_for(held, 10)
    done = sh("commit", run)
    assert "just ending" in done.stderr, done
    assert "just ending" in sh("runs", "rm", run).stderr
    os.close(folder)
    assert wait_for(lambda: sh("runs", "rm", run).returncode == 0, 10)


def test_a_sandbox_that_ended_is_listed_by_its_name(sh):
    sh.up("--cow")
    assert "running, cow" in sh("runs", "ls").stdout and sh("runs", "ls").stdout.endswith("  (sandbox w)\n")
    assert sh("down", "w").returncode == 0
    line = sh("runs", "ls").stdout
    assert "  ended, cow" in line and line.endswith("  (sandbox w)\n") and "cancelled" not in line, line
    assert sh("why").stdout.splitlines()[0].endswith(" ago: (sandbox w), ended")
    told = json.loads(sh("runs", "show", "--json").stdout)
    assert told["termination"]["reason"] == "cancelled" and told["sandbox"] == "w"


def test_a_run_by_the_name_that_its_sandbox_had(sh):
    """Killed or finished: the last one of that name, and never one of two."""
    killed = sh.up("--cow")
    sh.sh("echo one > one")
    os.kill(sh.monitor(), signal.SIGKILL)
    wait_for(lambda: sh("diff", "w", "--names-only").returncode == 0, 10)
    assert sh("diff", "w", "--names-only").stdout == "A one\n"
    sh.up("--cow", name=killed)
    sh.sh("echo two > two")
    assert sh("down", "w").returncode == 0
    assert sh("diff", "w", "--names-only").stdout == "A two\n", "the last one of that name"
    assert sh("commit", "w").returncode == 0 and (sh.box.ws / "two").read_text() == "two\n" and not (sh.box.ws / "one").exists()
    done = sh("diff", "nosuch")
    assert done.returncode == 1 and "no run ends in nosuch" in done.stderr, done
    end = max(path.name for path in sh.box.runs.glob("2*"))[-4:]
    sh.up(name=end)
    sh("down", end)
    done = sh("commit", end)
    assert done.returncode == 1 and "the end of a run's id and the name of the sandbox of run" in done.stderr, done


def test_a_commit_that_has_answered_is_over(stay):
    """Whoever was told that it is done may begin the next one."""
    stay.started("--cow")
    client = stay.client()
    client.sh("echo x > f")
    for ref in range(10, 510):
        frame, _, _ = client.call("commit", ref)
        assert frame[0] == "reply", frame


def test_workers_share_a_bounded_memory(stay):
    """Untrusted code decides how much there is to compare: many comparisons at once take no more than the table says."""
    stay.started("--cow")
    client, monitor = stay.client(), stay.monitor()
    client.sh("for i in 1 2 3 4; do head -c 100000 /dev/zero | tr '\\0' 'x' | fold -w 500 > big$i; done")
    for ref in range(10, 17):  # more than a window of text, and none is granted: each waits
        client.send("call", ref, Atom("diff"), {})
        assert wait_for(lambda: len(workers(monitor)) == ref - 9, 5)
    limits = sorted((data_limit(pid) / (1 << 20) for pid in workers(monitor)), reverse=True)
    wanted = [512, 256, 128, 64, 32, 32, 32]
    assert all(want <= limit <= want + 40 for limit, want in zip(limits, wanted)), limits
    for ref in range(10, 17):
        client.send("cancel", ref)
    assert wait_for(lambda: not workers(monitor), 5)
    ours = data_limit(monitor)
    frame, _, _ = stay.client().call("fork", 1, name=b"young")
    assert frame[0] == "reply", frame
    try:
        assert data_limit(stay.monitor("young")) == ours, "what a worker starts has the monitor's own limit"
    finally:
        stay.down("young")


def workers(monitor):
    return [pid for pid in children(monitor) if name_of(pid) == "caisson-worker\n"]


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""  # it has just ended


def data_limit(pid):
    line = next(line for line in pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines() if line.startswith("Max data size"))
    return float("inf") if line.split()[3] == "unlimited" else int(line.split()[3])
