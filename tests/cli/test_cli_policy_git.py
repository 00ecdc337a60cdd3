"""The commit of a policy file and whether it is modified, read without running git."""
import os
import shutil
import subprocess

import pytest

POLICY = "version: 1\n"


@pytest.fixture
def git(project, env):
    """git(…) in the project; skips where there is none."""
    if not shutil.which("git"):
        pytest.skip("git: not installed")

    def run(*argv, cwd=project):
        who = {name: "x@example.org" for name in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL")}
        who |= {name: "x" for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME")}
        return subprocess.run(["git", *argv], cwd=cwd, env=env | who, check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8").stdout.strip()

    return run


@pytest.fixture
def said(cli, project):
    """said() -> (commit, modified) as `policy show` has them."""
    def show(*argv, cwd=project):
        told = cli("policy", "show", "--json", *argv, cwd=cwd).json()
        return told["commit"], told["modified"]

    return show


@pytest.fixture
def repository(git, project):
    git("init", "-q", "-b", "main")
    (project / "caisson.yaml").write_text(POLICY)
    git("add", ".")
    git("commit", "-q", "-m", "x")
    return git("rev-parse", "HEAD")


def test_clean_and_modified(said, repository, project, git):
    assert said() == (repository, False)
    (project / "caisson.yaml").write_text(POLICY + "# more\n")
    assert said() == (repository, True)
    git("add", ".")
    assert said() == (repository, False), "as in the index"
    git("commit", "-q", "-m", "y")
    assert said() == (git("rev-parse", "HEAD"), False) and said()[0] != repository


def test_a_file_that_git_does_not_have(said, cli, repository, project, git):
    (project / "sub").mkdir()
    (project / "sub" / "caisson.yaml").write_text(POLICY)
    assert said(cwd=project / "sub") == (repository, True)
    shown = cli("policy", "show", cwd=project / "sub").out
    assert "git does not track the file" in shown and "modified" not in shown, shown
    git("add", ".")
    assert said(cwd=project / "sub") == (repository, False)
    (project / "link.yaml").symlink_to("sub/caisson.yaml")
    assert said("--policy", "link.yaml") == (repository, False)


def test_where_git_keeps_a_commit(said, repository, project, git):
    git("pack-refs", "--all")
    assert not (project / ".git" / "refs" / "heads" / "main").exists()
    assert said() == (repository, False)
    git("checkout", "-q", "--detach")
    assert said() == (repository, False)
    git("symbolic-ref", "refs/heads/other", "refs/heads/main")
    git("symbolic-ref", "HEAD", "refs/heads/other")
    assert said() == (repository, False)


def test_a_linked_work_tree(said, repository, project, git, home):
    git("worktree", "add", "-q", "-b", "side", str(home / "side"))
    (home / "side" / "caisson.yaml").write_text(POLICY + "# side\n")
    git("commit", "-q", "-a", "-m", "side", cwd=home / "side")
    head = git("rev-parse", "side")
    assert said(cwd=home / "side") == (head, False) and head != repository
    assert said() == (repository, False)


def test_no_repository_no_commit_yet(said, project, git):
    (project / "caisson.yaml").write_text(POLICY)
    assert said() == (None, None)
    git("init", "-q")
    git("add", ".")
    assert said() == (None, None)


@pytest.mark.parametrize("how", [["--index-version", "4"], ["--split-index"]])
def test_an_index_that_is_not_read(said, repository, git, how):
    git("update-index", *how)
    assert said() == (repository, None)


def test_git_is_not_run(cli, said, repository, project, git, tmp_path):
    """Neither is anything that a repository's configuration names."""
    mark = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "core.hooksPath", "filter.x.clean", "core.pager"):
        git("config", key, str(program))
    (project / ".gitattributes").write_text("* filter=x\n")
    (project / "git").symlink_to(program)
    assert said() == (repository, False)
    assert cli("policy", "explain", "--", "true", env={"PATH": f"{project}:{os.environ['PATH']}"}).status == 0
    assert not mark.exists()


def hostile(project):
    """What a sandbox with a writable workspace could leave in .git."""
    head, index, git = project / ".git" / "HEAD", project / ".git" / "index", project / ".git"

    def replace(path, make):
        path.unlink()
        make(path)

    return {
        "a pipe": lambda: replace(head, os.mkfifo),
        "a link": lambda: replace(head, lambda path: path.symlink_to("/etc/passwd")),
        "a folder": lambda: replace(head, os.mkdir),
        "nothing": lambda: head.write_text(""),
        "no hash": lambda: head.write_text("g" * 40 + "\n"),
        "an escape": lambda: head.write_text("\x1b[2J" + "0" * 40),
        "another file": lambda: head.write_text("ref: /etc/passwd\n"),
        "a climb": lambda: head.write_text("ref: refs/../../secret\n"),
        "a loop": lambda: head.write_text("ref: refs/heads/x\n") and (git / "refs/heads/x").write_text("ref: refs/heads/x\n"),
        "a ref that is long": lambda: head.write_text("ref: refs/" + "x" * 3000),
        "a line that is long": lambda: head.write_text("0" * 100000),
        "a commondir pipe": lambda: os.mkfifo(git / "commondir"),
        "an index pipe": lambda: replace(index, os.mkfifo),
        "an index that is huge": lambda: os.truncate(index, 1 << 40),
        "an index that is cut": lambda: os.truncate(index, 40),
    }


@pytest.mark.parametrize("name", list(hostile(__import__("pathlib").Path("/"))))
def test_what_is_odd_is_unknown(said, repository, project, name):
    (project / "secret").write_text("0" * 40 + "\n")
    hostile(project)[name]()
    commit, modified = said()
    assert modified is None and commit == (repository if "index" in name else None)


def test_a_stranger_s_repository_says_nothing(said, repository, project):
    if os.geteuid() != 0:
        pytest.skip("root: a folder must be given away")
    os.chown(project / ".git", 1234, 1234)
    assert said("--policy", "caisson.yaml") == (None, None)
