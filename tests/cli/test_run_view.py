"""What a program sees behind the process wall, to the letter of the contract."""
import json
import os
import subprocess
import time

import pytest

from run_fixtures import *

LOOK = """
import json, os, pwd, grp, resource, socket, sys
def read(path):
    try:
        return open(path).read()
    except OSError as error:
        return error.strerror
print(json.dumps({
    "env": dict(os.environ), "cwd": os.getcwd(), "uid": os.getuid(), "gid": os.getgid(), "groups": os.getgroups(),
    "hostname": socket.gethostname(), "user": pwd.getpwuid(os.getuid()).pw_name, "home": pwd.getpwuid(os.getuid()).pw_dir,
    "group": grp.getgrgid(os.getgid()).gr_name, "cpus": len(os.sched_getaffinity(0)),
    "core": resource.getrlimit(resource.RLIMIT_CORE), "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    "umask": os.umask(0), "pids": [int(p) for p in os.listdir("/proc") if p.isdigit()], "pid": os.getpid(),
    "etc": {n: read("/etc/" + n) for n in ("passwd", "group", "hosts", "hostname", "nsswitch.conf", "resolv.conf", "shadow")},
    "there": {p: os.path.lexists(p) for p in sys.argv[1:]},
    "fds": sorted(os.listdir("/proc/self/fd")),
}))
"""


def look(box, *paths, **more):
    run = box.python(LOOK, *paths, **more)
    assert run.status == 0, run
    assert run.facts == [], run
    return json.loads(run.out)


def test_environment_is_ours_alone(box):
    seen = look(box, env={"SECRET": "x", "LD_PRELOAD": "", "BASH_ENV": "/etc/profile", "NO_COLOR": "1", "TZ": "UTC"})["env"]
    expected = {"HOME": "/tmp/home", "USER": "sandbox", "LOGNAME": "sandbox", "TMPDIR": "/tmp", "SHELL": "/bin/bash",
                "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "NO_COLOR": "1", "TZ": "UTC",
                "GIT_OPTIONAL_LOCKS": "0", "PYTHONDONTWRITEBYTECODE": "1", "CAISSON": "1",
                "NO_UPDATE_NOTIFIER": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "npm_config_update_notifier": "false",
                "PIP_RETRIES": "0", "npm_config_fetch_retries": "0"}
    assert {name: seen.get(name) for name in expected} == expected
    others = set(seen) - set(expected) - {"PWD", "LC_CTYPE"}
    assert all(name.startswith("XDG_") and seen[name].startswith("/tmp/home/") for name in others), others


def test_nobody_waits_for_a_network_that_is_not_there(box):
    """npm tries again for longer than a command may last; where something may answer it still does."""
    names = {"PIP_RETRIES", "npm_config_fetch_retries"}
    assert names <= set(look(box)["env"]) and not names & set(look(box, flags=["--network", "loopback"])["env"])


def test_quieting_variables_only_while_read_only(box):
    seen = look(box, flags=["--rw"])["env"]
    assert "GIT_OPTIONAL_LOCKS" not in seen and "PYTHONDONTWRITEBYTECODE" not in seen


def test_identity(box):
    seen = look(box)
    assert (seen["uid"], seen["gid"], seen["user"], seen["group"], seen["home"]) == (
        1000, 1000, "sandbox", "sandbox", "/tmp/home")
    # A core limit of 1 keeps the host's core_pattern from being piped to; 0 does not.
    assert seen["groups"] in ([1000], []) and seen["hostname"] == "caisson"
    assert seen["umask"] == 0o022 and seen["core"] in ([0, 0], [1, 1]) and seen["files"] == [1024, 1024]
    assert seen["fds"] == ["0", "1", "2", "3"], "3 is the listing's own"


def test_etc_is_of_its_own(box):
    etc = look(box)["etc"]
    assert "sandbox:x:1000:1000:" in etc["passwd"] and "/tmp/home" in etc["passwd"]
    assert "sandbox:x:1000:" in etc["group"] and etc["hostname"] == "caisson\n"
    assert "127.0.0.1" in etc["hosts"] and "localhost" in etc["hosts"] and "caisson" in etc["hosts"]
    assert "files" in etc["nsswitch.conf"] and "attempts:1" in etc["resolv.conf"] and "timeout:1" in etc["resolv.conf"]
    assert len([line for line in etc["resolv.conf"].splitlines() if line.startswith("nameserver")]) == 1
    assert etc["shadow"] == "No such file or directory"


def test_what_is_absent(box):
    gone = ["/root", "/home", "/boot", "/mnt", "/media", "/srv", "/opt/none", str(box.home), "/dev/mem",
            "/dev/kmsg", "/dev/sda", "/dev/kvm", "/var/lib/dpkg", "/run/docker.sock", "/sys/kernel"]
    assert {path for path, there in look(box, *gone)["there"].items() if there} == set()


def test_what_is_there(box):
    there = ["/tmp", "/tmp/home", "/usr/bin/env", "/bin/sh", "/etc/localtime", "/dev/null", "/dev/zero", "/dev/full",
             "/dev/random", "/dev/urandom", "/dev/tty", "/dev/shm", "/dev/pts", "/dev/ptmx", "/dev/fd", "/dev/stdin",
             "/dev/stdout", "/dev/stderr", "/proc/self", "/proc/cpuinfo", "/workspace"]
    assert {path for path, is_there in look(box, *there)["there"].items() if not is_there} == set()


def test_processes_of_others_are_hidden(box):
    seen = look(box)
    assert seen["pids"] == [seen["pid"]] or set(seen["pids"]) <= {1, seen["pid"]}, seen["pids"]


PROC = ["/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity",
        "/proc/sys/kernel/hostname", "/proc/fs", "/proc/bus"]


@pytest.mark.parametrize("path", PROC)
def test_proc_cannot_be_written(box, path):
    run = box.run("sh", "-c", f"test -d {path} && touch {path}/x || : >{path}")
    assert run.status != 0, run


def test_devices_and_scratch_work(box):
    run = box.sh("""
        set -e
        echo '#!/bin/sh' >/tmp/x; echo 'echo executed' >>/tmp/x; chmod +x /tmp/x; /tmp/x
        echo shm >/dev/shm/x; cat /dev/shm/x
        head -c 16 /dev/urandom | wc -c
        echo x 2>/dev/null >/dev/full || echo full
        mkdir -p "$HOME/.config" && echo home >"$HOME/.config/x" && cat "$HOME/.config/x"
        script=$(mktemp) && test -f "$script" && echo mktemp
        readlink /etc/localtime >/dev/null; date >/dev/null
        exec 3</dev/fd/0
    """)
    assert (run.status, run.text.split()) == (0, ["executed", "shm", "16", "full", "home", "mktemp"]), run
    assert run.facts == [], run


def test_pty_inside(box):
    run = box.python("import os, pty; m, s = pty.openpty(); os.write(s, b'x'); print(os.read(m, 1), os.ttyname(s))")
    assert run.status == 0 and run.text.startswith("b'x' /dev/pts/"), run


def test_cwd_is_the_same_subdirectory(box):
    box.file("a/b/c", "")
    (box.ws / ".git").mkdir()
    run = box.run("pwd", cwd=box.ws / "a" / "b")
    assert run.text == "/workspace/a/b\n", run
    assert box.run("pwd", flags=["--at", "/srv/p"], cwd=box.ws / "a").text == "/srv/p/a\n"


def at_host(box):
    box.file("sub/x", "here\n")
    run = box.run("sh", "-c", "pwd; cat x", flags=["-w", box.ws, "--at", "host"], cwd=box.ws / "sub")
    assert run.text == f"{box.ws}/sub\nhere\n", run
    (box.home / "beside").write_text("secret")
    assert box.run("cat", box.home / "beside", flags=["-w", box.ws, "--at", "host"]).status == 1


def test_at_host(far_box):
    at_host(far_box)


def test_at_host_in_tmp(box):
    at_host(box)


@pytest.mark.parametrize("cpus", ["1", "2"])
def test_nproc_is_the_truth(box, cpus):
    if int(cpus) > (os.cpu_count() or 1):
        pytest.skip("processors: fewer than two")
    assert box.run("nproc", flags=["--cpus", cpus]).text == f"{cpus}\n"


def test_read_only_by_default(box):
    box.file("kept", "kept")
    run = box.sh("echo x >new; echo x >kept; rm -f kept; mkdir d; touch kept; chmod 777 kept; ln -s a b; true")
    assert run.status == 0 and sorted(p.name for p in box.ws.iterdir()) == ["kept"], run
    assert (box.ws / "kept").read_text() == "kept"
    assert run.events == {"FilesystemWriteViolation"}, run


def test_files_in_a_writable_workspace_are_the_callers(box):
    run = box.sh("umask; mkdir d; echo x >d/f; ln -s f d/l; mkfifo d/p; cp /bin/true d/true; d/true", flags=["--rw"])
    assert run.status == 0, run
    for name in ("d", "d/f", "d/l", "d/true"):
        stat = os.lstat(box.ws / name)
        assert (stat.st_uid, stat.st_gid) == (box.uid, box.uid), name
    assert os.stat(box.ws / "d/f").st_mode & 0o7777 == 0o644
    assert run.facts == [], run


def test_files_seem_the_programs_own(box):
    box.file("mine", "x")
    assert box.run("stat", "-c", "%u:%g", "mine").text == "1000:1000\n"


def git_project(box):
    box.file("a.txt", "one\n")
    for words in (["init", "-q", "-b", "main"], ["config", "user.email", "a@b.c"], ["config", "user.name", "A"],
                  ["add", "-A"], ["commit", "-q", "-m", "first"]):
        box.host("git", *words)


def test_git_reads(box):
    git_project(box)
    box.file("b.txt", "")
    run = box.sh("git status --short && git log --oneline | wc -l && git diff --stat && git stash list")
    assert (run.status, run.text) == (0, "?? b.txt\n1\n"), run
    assert run.facts == [], run


def test_git_commits_in_a_writable_workspace(box):
    git_project(box)
    run = box.sh("""
        set -e
        echo two >>a.txt; git add a.txt
        git -c user.email=x@y -c user.name=X commit -q -m second
        git checkout -q -b topic; git checkout -q main; git gc -q; git log --oneline | wc -l
    """, flags=["--rw"])
    assert (run.status, run.text) == (0, "2\n"), run
    assert run.facts == [], run
    assert box.host("git", "log", "--format=%s").split() == ["second", "first"]
    assert box.host("git", "status", "--short") == ""
    strangers = [p for p in (box.ws / ".git").rglob("*") if p.lstat().st_uid != box.uid]
    assert strangers == []


def test_hidden_names(box):
    for name in (".env", ".env.local", "sub/.env", "key.pem", "sub/deep/other.pem", "seen"):
        box.file(name, "secret\n")
    run = box.sh("cat .env .env.local sub/.env key.pem sub/deep/other.pem; cat seen")
    assert run.text == "secret\n", run
    assert sorted(run.result["hidden"]) == [".env", ".env.local", "key.pem", "sub/.env", "sub/deep/other.pem"]


def test_mounts(box):
    data = box.base / "data"
    data.mkdir()
    (data / "f").write_text("data\n")
    run = box.run("sh", "-c", "cat /data/f; echo x >/data/g", flags=["-m", f"{data}:/data"])
    assert run.text == "data\n" and run.status != 0 and not (data / "g").exists(), run
    assert {"host": str(data), "at": "/data", "mode": "ro"} in run.result["mounts"]
    run = box.run("sh", "-c", "echo x >/data/g", flags=["-m", f"{data}:/data:rw"])
    assert run.status == 0 and (data / "g").stat().st_uid == box.uid, run


PROTECTED = [".git/hooks/x", ".git/config", ".envrc", ".vscode/x"]


def poke(box, **more):
    words = "; ".join(f"(mkdir -p $(dirname {p}); echo bad >>{p}) 2>/dev/null && echo wrote {p}" for p in PROTECTED)
    return box.sh(words + "; mv .git/hooks .git/other 2>/dev/null && echo moved; true",
                  flags=["--rw"], **more)


def test_protected_names_that_exist(box):
    git_project(box)
    box.file(".envrc", "old\n")
    box.file(".vscode/settings.json", "{}\n")
    run = poke(box)
    assert run.text == "", run
    assert (box.ws / ".envrc").read_text() == "old\n" and "bad" not in (box.ws / ".git/config").read_text()
    assert run.result["protect_not_enforced"] == [] and "FilesystemWriteViolation" in run.events, run


def test_protected_names_are_not_replaced_from_above(box):
    git_project(box)
    run = box.sh("mv .git other && mkdir -p .git/hooks && echo bad >.git/hooks/pre-commit", flags=["--rw"])
    assert run.status != 0 and not (box.ws / ".git/hooks/pre-commit").exists(), run


DETOURS = """
import os, sys
def tried(what, *arguments):
    try:
        what(*arguments)
    except OSError as error:
        return error.strerror
    return "done"
def write(path):
    with open(path, "w") as file:
        file.write("gitdir: evil")
os.mkdir("evil")
os.symlink("evil", "new")
for path in sys.argv[1:]:
    ways = {"write": tried(write, path), "unlink": tried(os.unlink, path), "rename": tried(os.rename, path, path + "-old"),
            "replace": tried(os.rename, "new", path), "above": tried(os.rename, os.path.dirname(path) or path, "away")}
    print(path, *(f"{way} {how}" for way, how in ways.items() if how == "done"), sep=", ")
"""


def detours(box, *paths):
    """What can be done to the paths, of a run whose names are all enforced."""
    run = box.python(DETOURS, *paths, flags=["--rw"])
    assert run.status == 0 and run.result["protect_not_enforced"] == [], run
    return run.text.splitlines()


def test_hooks_behind_a_link(box):
    """The link stays, and what it leads to is not written: git runs that on the host."""
    box.file("tools/hooks/pre-commit", "")
    box.file("tools/plain", "")
    (box.ws / ".git").mkdir()
    (box.ws / ".git" / "hooks").symlink_to("../tools/hooks")
    (box.ws / ".git" / "config").symlink_to(box.ws / "tools" / "config")
    paths = [".git/hooks", ".git/hooks/pre-commit", "tools/hooks/pre-commit", "tools/hooks", ".git/config", "tools/config"]
    assert detours(box, *paths) == paths
    assert not (box.ws / "tools" / "config").exists() and (box.ws / ".git" / "config").is_symlink(), "the placeholder is gone"


def test_a_git_that_is_a_file(box):
    """Of a worktree whose repository lies in the workspace, too."""
    box.host("git", "init", "-q", "main")
    box.host("git", "-C", "main", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
    box.host("git", "-C", "main", "worktree", "add", "-q", str(box.ws / "tree"))
    (box.ws / "tree" / ".git").rename(box.ws / ".git")
    assert box.host("git", "rev-parse", "--git-path", "hooks").strip().endswith("main/.git/hooks")
    box.file(".git", "gitdir: main/.git/worktrees/tree\n")  # the host's own path means nothing inside
    paths = [".git", "main/.git/hooks/pre-commit", "main/.git/config", "main/.git/worktrees/tree/commondir"]
    assert detours(box, *paths) == paths
    assert box.sh("git status --short >/dev/null && touch main/.git/index.lock", flags=["--rw"]).status == 0, "git works"


def test_a_git_file_of_a_repository_elsewhere(box):
    (box.base / "repo").mkdir()
    box.file(".git", f"gitdir: {box.base}/repo/modules/x\n")
    assert detours(box, ".git") == [".git"]


def test_a_protected_file_that_the_user_replaces(box):
    """A rename over a mount point takes the mount away everywhere: it cannot be held, so it is said."""
    git_project(box)
    box.file(".envrc", "old\n")
    process = box.start("sh", "-c", "echo up; cat", flags=["--rw"], stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    box.file("saved", "new\n").rename(box.ws / ".envrc")
    run = box.finish(process, time.monotonic(), input=b"")
    assert run.status == 0 and run.result["protect_not_enforced"] == [".envrc"], run


def test_protected_names_that_do_not(box):
    box.file("f", "")
    run = poke(box)
    assert run.text == "", run
    assert sorted(p.name for p in box.ws.iterdir()) == ["f"], "a placeholder was left"
    assert "FilesystemWriteViolation" in run.events, run


def test_placeholders_go_after_a_kill(box):
    process = box.start("sh", "-c", "echo up; sleep 60", flags=["--rw"])
    assert process.stdout.readline() == b"up\n"
    assert (box.ws / ".envrc").exists()
    process.kill()
    process.communicate()
    assert wait_for(lambda: list(box.ws.iterdir()) == [], 1.0), list(box.ws.iterdir())


def test_stdin_stdout_are_pipes_of_its_own(box):
    """Descriptors of the caller's do not cross: what they name outside is no program's business."""
    run = box.python("import os\nprint([os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in range(3)])")
    assert run.text in ("['/dev/null', 'pipe', 'pipe']\n", "['pipe', 'pipe', 'pipe']\n"), run


@pytest.mark.parametrize("policy", [LANDLOCK, LOCAL], ids=["landlock", "local"])
def test_walls_without_a_view(box, policy):
    """What holds behind them too: the environment, the status, the folder."""
    box.file("f", "x\n")
    run = box.sh("pwd; cat f; echo $HOME; exit 3", policy=policy, env={"SECRET": "x"})
    assert run.status == 3 and run.text.startswith(f"{box.ws}\nx\n"), run
    if policy == LANDLOCK:
        assert box.sh("echo x >f", policy=policy).status != 0 and (box.ws / "f").read_text() == "x\n"
        assert run.text.splitlines()[2] != str(box.home), run


def test_no_toolchain_beneath_home_lends_home(far_box):
    """A program of the caller's own prefix runs; nothing else of his home is there."""
    box, prefix = far_box, far_box.home / "tool"
    box.file(prefix / "bin" / "greet", "#!/bin/sh\necho hello; ls $(dirname $(dirname $0)); ls -A $(dirname $(dirname $0))/..\n", 0o755)
    box.file(prefix / "lib" / "x", "")
    (box.home / "private").write_text("x")
    run = box.run("greet", env={"PATH": f"{prefix}/bin:/usr/bin:/bin"})
    assert run.text.startswith("hello\n"), run
    assert "private" not in run.text, run
    assert subprocess.run(["ls", str(prefix)], stdout=subprocess.PIPE, check=True).stdout == b"bin\nlib\n"


HIDES = "version: 1\n%sworkspace: {path: %s, mode: rw%s, hide: [\"secrets/key\", \".env\"]}\n"


def hidden_box(box, wall):
    for name in ("secrets/key", "a/b/.env"):
        (box.ws / name).parent.mkdir(parents=True, exist_ok=True)
        box.file(name, "SECRET")
    (box.ws / "data").mkdir(exist_ok=True)
    tier, at = ("tier: auto\nbackend: landlock\n", ", at: host") if wall == "landlock" else ("", "")
    return HIDES % (tier, box.ws, at)


@pytest.mark.parametrize("wall", ["process", "landlock"])
def test_what_is_hidden_cannot_change_its_name(box, wall):
    """Or nobody would know it at the next start."""
    policy = hidden_box(box, wall)
    run = box.sh("mv secrets s2; mv a data/; mv a/b a/c; mv secrets/key k; ls secrets a", policy=policy)
    assert run.status == 0 and (box.ws / "secrets/key").exists() and (box.ws / "a/b/.env").exists(), run
    assert not (box.ws / "s2").exists() and not (box.ws / "data/a").exists()


@pytest.mark.parametrize("wall", ["process", "landlock"])
@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_what_is_hidden_is_hidden_in_mounts(box, wall, mode):
    policy = hidden_box(box, wall)
    for lent, seen in ((box.ws / "a", "b/.env"), (box.ws / "secrets", "key")):
        at = lent if wall == "landlock" else "/mnt/x"
        run = box.sh(f"cat {at}/{seen}; ls {at}", policy=policy + f"mounts: [{{host: {lent}, at: {at}, mode: {mode}}}]\n")
        assert run.status == 0 and "SECRET" not in run.text and "SECRET" not in run.err, run


def test_what_is_lent_by_its_own_name_is_meant(box):
    policy = hidden_box(box, "process")
    run = box.sh("cat /mnt/key", policy=policy + f"mounts: [{{host: {box.ws}/secrets/key, at: /mnt/key}}]\n")
    assert run.text == "SECRET", run
