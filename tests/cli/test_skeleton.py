"""The skeleton of the root tree: what is seen with it and without it, when it is made, used and removed."""
import os
import pathlib
import re
import subprocess
import time

import pytest

from run_fixtures import *  # noqa: F403

# One line a name of the root's own mount: kind, mode, owner, where a link leads; the text of /etc.
LOOK = """
    import hashlib, os, stat, sys
    points = {line.split()[4] for line in open('/proc/self/mountinfo')} - {'/'}
    def look(path):
        st = os.lstat(path)
        line = [path, oct(st.st_mode), st.st_uid, st.st_gid]
        if stat.S_ISLNK(st.st_mode): line.append(os.readlink(path))
        if path in points: line[1:] = ['mounted', stat.S_IFMT(st.st_mode)]
        elif stat.S_ISREG(st.st_mode) and os.access(path, os.R_OK):
            line.append(hashlib.sha256(open(path, 'rb').read()).hexdigest())
        print(*line)
        if stat.S_ISDIR(st.st_mode) and path not in points and os.access(path, os.R_OK):
            for name in sorted(os.listdir(path)): look(os.path.join(path, name))
    look('/')
    options = next(l.split()[5] for l in open('/proc/self/mountinfo') if l.split()[4] == '/')
    print(sorted({*options.split(',')} - {'idmapped'}))  # root's
"""


def roots(box):
    """Names of the skeletons that are there."""
    folder = box.runs / ".roots"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def source(run):
    """Which skeleton was the root of a run that printed its mountinfo; None: a tmpfs."""
    assert run.status == 0, run
    root = next(line.split() for line in run.text.splitlines() if line.split()[4] == "/")
    found = re.search(r"/\.roots/([0-9a-f]{16})/tree$", root[3])
    assert found or root[root.index("-") + 1] == "tmpfs", root
    return found and found[1]


def used(box, **more):
    return source(box.run("cat", "/proc/self/mountinfo", **more))


@pytest.fixture
def ready(box):
    """A box with one skeleton, which the tests use. The very first run has no run root yet."""
    assert used(box) is None and roots(box) == []
    (box.base / "lent").mkdir()
    box.skeleton = used(box)
    assert box.skeleton and roots(box) == [box.skeleton]
    assert used(box) == box.skeleton
    return box


def folder_of(box, name=None):
    return box.runs / ".roots" / (name or box.skeleton)


def age(path, days):
    then = time.time() - days * 24 * 3600
    os.utime(path, (then, then))


def sweep(box):
    assert box.cli("runs", "gc").status == 0


# ---- the view --------------------------------------------------------------------------------


@pytest.mark.parametrize("access", ["ro", "rw", "cow"])
def test_the_view_is_the_same(ready, access):
    """Owners too: what is made ahead belongs inside to the sandbox's user, whoever started it."""
    more = ready.base / "more"
    more.mkdir()
    (more / "file").write_text("lent\n")
    ready.file(".env", "secret")
    ready.file("sub/dir/x", "x")
    flags = ["-w", f"{ready.ws}:{access}", "-m", f"{more}:/data/deep", "-m", f"{more}/file:/data/file",
             "-m", f"{more}:/tmp/within:rw", "-m", f"{more}:/workspace/sub/dir"]
    ready.file("look.py", LOOK)
    for _ in range(2):
        with_it = ready.run(PYTHON, "/workspace/look.py", flags=flags)
    os.rename(ready.runs / ".roots", ready.base / "roots")
    (ready.runs / ".roots").write_text("no folder: no skeleton")
    without = ready.run(PYTHON, "/workspace/look.py", flags=flags)
    assert with_it.status == without.status == 0, (with_it, without)
    assert len(with_it.text.splitlines()) > 50 and "/data/file mounted" in with_it.text
    assert with_it.text == without.text
    assert "/run/caisson/hidden-file 0o100000 1000 1000\n" in with_it.text
    assert len(list((ready.base / "roots").iterdir())) == 2 and not (more / "deep").exists()


def test_without_a_record_too(ready):
    """The other way to be without."""
    ready.file("look.py", LOOK)
    with_it = ready.run(PYTHON, "look.py")
    assert used(ready) == ready.skeleton
    without = ready.run(PYTHON, "look.py", flags=["--no-record"])
    assert with_it.status == 0 and with_it.text == without.text
    assert used(ready, flags=["--no-record"]) is None


def test_nothing_is_made_in_a_lent_folder(ready):
    """The skeleton may lie on the workspace's file system: a mount point is still no business of ours there."""
    run = ready.run("true", flags=["-w", f"{ready.ws}:rw", "-m", f"{ready.base}/lent:/workspace/missing"])
    assert run.status == 125 and "/workspace/missing" in run.err, run
    assert not (ready.ws / "missing").exists()


def test_nothing_inside_changes_it(ready):
    before = sorted((str(p), p.lstat().st_mtime_ns, p.lstat().st_mode) for p in folder_of(ready).rglob("tree/**/*"))
    ready.python("""
        import os
        for call in (lambda p: open(p, 'a'), os.unlink, lambda p: os.chmod(p, 0o777), lambda p: os.rename(p, '/tmp/x'),
                     lambda p: os.utime(p), lambda p: os.link(p, '/tmp/y'), lambda p: os.setxattr(p, 'user.x', b'x')):
            for path in ('/etc/passwd', '/etc', '/run/caisson/hidden-file', '/'):
                try: call(path)
                except OSError: pass
                else: raise SystemExit(f'{path} changed')
    """)
    after = sorted((str(p), p.lstat().st_mtime_ns, p.lstat().st_mode) for p in folder_of(ready).rglob("tree/**/*"))
    assert before == after and len(before) > 40
    assert used(ready) == ready.skeleton


# ---- which one -------------------------------------------------------------------------------


def test_other_mounts_have_another(ready):
    assert used(ready, flags=["-m", f"{ready.base}/lent:/data"]) != ready.skeleton
    assert len(roots(ready)) == 2
    # Where a workspace comes from makes no difference to an empty folder.
    other = ready.base / "other"
    other.mkdir()
    assert used(ready, flags=["-w", f"{other}:ro"]) == ready.skeleton


def private(box, script, *argv):
    """Runs caisson in a mount namespace that `script` changed before."""
    if os.geteuid() != 0:
        pytest.skip("root: only root can mount over /etc")
    ids = ["setpriv", f"--reuid={box.uid}", f"--regid={box.uid}", "--clear-groups"] if box.uid else ["env"]
    done = subprocess.run(["unshare", "-m", "sh", "-c", f'{script} && exec "$@"', "sh", *ids, box.caisson, "run", "--", *argv],
                          cwd=box.ws, env=box.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=30)
    return Run(done.returncode, done.stdout, done.stderr, None, 0)


def test_a_changed_host_file_has_another(ready):
    mine = ready.base / "timezone"
    mine.write_text("Nowhere/Else\n")
    over = f"mount --bind {mine} /etc/timezone"
    young = private(ready, over, "sh", "-c", "cat /proc/self/mountinfo; cat /etc/timezone >&2")
    assert source(young) is None and "Nowhere/Else" in young.err  # it may still change within one tick
    time.sleep(2.1)
    old = private(ready, over, "sh", "-c", "cat /proc/self/mountinfo; cat /etc/timezone >&2")
    assert source(old) not in (None, ready.skeleton) and "Nowhere/Else" in old.err
    mine.write_text("Nowhere/Here\n")
    new = private(ready, over, "sh", "-c", "cat /proc/self/mountinfo; cat /etc/timezone >&2")
    assert source(new) is None and "Nowhere/Here" in new.err
    assert used(ready) == ready.skeleton


def test_a_private_host_file_is_not_copied(ready):
    """Root's monitor can read what the sandbox's id cannot."""
    mine = ready.base / "timezone"
    mine.write_text("secret\n")
    mine.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(mine, 0, 0)
    time.sleep(2.1)
    run = private(ready, f"mount --bind {mine} /etc/timezone", "sh", "-c",
                  "cat /proc/self/mountinfo; test ! -e /etc/timezone")
    assert "secret" not in run.text and source(run) not in (None, ready.skeleton), run
    for tree in (ready.runs / ".roots").iterdir():
        zone = tree / "tree/etc/timezone"
        assert not zone.exists() or zone.read_text() != "secret\n"


def test_two_at_once_make_one(box):
    box.run("true")
    box.give = lambda: None  # it would walk over what the others are making
    runs = [box.start("cat", "/proc/self/mountinfo", result=False) for _ in range(6)]
    texts = [process.communicate(timeout=30)[0].decode() for process in runs]
    assert len({line for text in texts for line in re.findall(r"\.roots/(\w+)/tree / ", text)}) == 1
    assert len(roots(box)) == 1 and used(box) == roots(box)[0]


def test_a_run_root_inside_the_workspace_has_none(box):
    """It is hidden; and who may write around it could change what others are to use."""
    for _ in range(2):
        assert used(box, flags=["--run-dir", box.ws / "runs", "-w", f"{box.ws}:rw"]) is None
    assert (box.ws / "runs").exists() and not (box.ws / "runs/.roots").exists()


# ---- not as it should be -----------------------------------------------------------------------


TAMPERED = {
    "mode of the tree": "chmod 0775 tree", "mode of the folder": "chmod 0750 .", "mode of the lock": "chmod 0644 lock",
    "mode of all": "chmod 0777 ..", "no lock": "rm lock", "no tree": "rm -r tree", "another key": "echo x >> lock",
    "a link for a tree": "mv tree ../../tree && ln -s ../../tree tree", "a second name": "ln lock lock2",
    "a link for a lock": "mv lock ../../lock && ln -s ../../lock lock", "a pipe for a lock": "rm lock && mkfifo lock",
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_tampered(ready, change):
    ready.host("sh", "-c", f"cd {folder_of(ready)} && {change}")
    assert used(ready) is None


def test_not_the_callers(ready):
    if os.geteuid() != 0:
        pytest.skip("root: only root can give files away")
    ready.give = lambda: None
    for name in ("tree", "lock", "."):
        path = folder_of(ready) / name
        was = path.stat()
        os.chown(path, 4242, was.st_gid)
        assert used(ready) is None, name
        os.chown(path, was.st_uid, was.st_gid)
    os.chown(folder_of(ready) / "tree", was.st_uid, 4242)
    assert used(ready) is None


def test_full_disk(root_box):
    """No room for names: a run is still a run."""
    state = root_box.base / "state"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=60", "csn-test", str(state)], check=True)
    try:
        for _ in range(3):
            assert used(root_box) is None
        assert roots(root_box) == []
    finally:
        subprocess.run(["umount", "-l", str(state)], check=True)


def test_read_only_disk(ready):
    if os.geteuid() == 0 and not ready.is_root:
        ready.runs.chmod(0o555)
        (ready.runs / ".roots").chmod(0o500)
        assert used(ready, flags=["--no-record"]) is None
        ready.runs.chmod(0o755)
        (ready.runs / ".roots").chmod(0o700)
    assert used(ready) == ready.skeleton


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o777])
def test_modes_do_not_depend_on_the_umask(ready, mask):
    def modes():
        return [(p.name, p.lstat().st_mode) for p in sorted(folder_of(ready).rglob("*"))]

    before = modes()
    ready.host("sh", "-c", f"chmod -R u+rwx {folder_of(ready)}/tree && rm -r {folder_of(ready)}")
    assert used(ready, preexec_fn=lambda: os.umask(mask)) == ready.skeleton if mask != 0o777 else True
    if mask != 0o777:
        assert modes() == before


# ---- removing ----------------------------------------------------------------------------------


def test_unused_ones_go(ready):
    lock = folder_of(ready) / "lock"
    age(lock, 6)
    sweep(ready)
    assert roots(ready) == [ready.skeleton]
    age(lock, 8)
    sweep(ready)
    assert roots(ready) == []
    assert used(ready) == ready.skeleton


def test_use_is_noted(ready):
    """Seldom: not within an hour."""
    lock = folder_of(ready) / "lock"
    age(lock, 0.5 / 24)
    before = lock.stat().st_mtime
    used(ready)
    assert lock.stat().st_mtime == before
    age(lock, 6)
    used(ready)
    assert time.time() - lock.stat().st_mtime < 60


def test_eight_stay(ready):
    for i in range(10):
        assert used(ready, flags=["-m", f"{ready.base}/lent:/data{i}"])
        for name in roots(ready):
            lock = folder_of(ready, name) / "lock"
            os.utime(lock, (lock.stat().st_mtime - 60,) * 2)
    sweep(ready)
    assert len(roots(ready)) == 8 and ready.skeleton not in roots(ready)


def test_one_in_use_stays(ready):
    """Its removal would take the mounts of a living sandbox away."""
    process = ready.start("sh", "-c", "echo up; read line; cat /workspace/file /etc/hostname", stdin=subprocess.PIPE)
    ready.file("file", "still there\n")
    ready.give()
    assert process.stdout.readline() == b"up\n"
    age(folder_of(ready) / "lock", 30)
    sweep(ready)
    assert roots(ready) == [ready.skeleton]
    assert process.communicate(b"go\n", timeout=20)[0] == b"still there\ncaisson\n"
    sweep(ready)
    assert roots(ready) == []


def test_what_a_crash_leaves_goes(ready):
    folder = ready.runs / ".roots"
    for name in (".new-0123456789abcdef", ".new-now", ".gone-0123456789abcdef"):
        (folder / name / "tree/run/caisson/hidden-folder").mkdir(parents=True)
        (folder / name / "tree/run/caisson/hidden-folder").chmod(0)
    (folder / ".new-0123456789abcdef/lock").write_text("half a k")
    ready.give()
    age(folder / ".new-0123456789abcdef", 0.1)
    sweep(ready)
    assert roots(ready) == [".new-now", ready.skeleton]


def test_a_killed_maker_leaves_nothing_whole(box):
    """At whatever call: the next run has a whole tree or makes one."""
    box.run("true")
    strace = pathlib.Path("/usr/bin/strace")
    if not strace.exists():
        pytest.skip("strace")
    for nth in (1, 5, 20):
        subprocess.run([str(strace), "-qq", "-o", "/dev/null", "-e", f"inject=mkdirat:signal=KILL:when={nth}", box.caisson,
                        "run", "--", "true"], cwd=box.ws, env=box.env, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30, **box.as_owner())
    assert any(name.startswith(".new-") for name in roots(box))
    name = used(box)
    assert name and name in roots(box)
    for left in (box.runs / ".roots").glob(".new-*"):
        age(left, 1)
    sweep(box)
    assert roots(box) == [name]


def test_runs_do_not_list_it(ready):
    ids = {path.name for path in ready.runs.iterdir() if path.is_dir() and path.name[0] != "."}
    listed = ready.cli("runs", "ls", "--json")
    assert listed.status == 0 and ".roots" not in listed.text and all(name in listed.text for name in ids)
    assert ready.cli("runs", "verify").status == 0
    assert ready.cli("runs", "rm", ".roots").status != 0
    assert ready.cli("runs", "gc", "--runs", "0").status == 0
    assert [path.name for path in ready.runs.iterdir() if path.is_dir()] == [".roots"]
    assert used(ready) == ready.skeleton


def test_a_run_without_a_record_sees_no_run_root(box):
    """What it could write there another run would take its root from."""
    inside = box.ws / "runs"
    flags = ["--rw", "--run-dir", str(inside)]
    assert box.sh("true", flags=flags).status == 0 and box.sh("true", flags=flags).status == 0
    assert (inside / ".roots").exists() or any(inside.iterdir())
    run = box.sh("ls -A runs; echo x >runs/x", flags=[*flags, "--no-record"])
    assert run.text == "" and not (inside / "x").exists(), run
