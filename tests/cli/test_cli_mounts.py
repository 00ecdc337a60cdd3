"""Every host path of a plan is judged and lent as what it is behind its links."""
import os
import socket
import subprocess
import sys

import pytest

# As a program in a writable workspace would: a folder and a link change places again and again.
SWAP = """
import ctypes, os, sys
rename, (a, b), here, exchange = ctypes.CDLL(None).renameat2, map(os.fsencode, sys.argv[1:]), -100, 2
while True:
    rename(here, a, here, b, exchange)
"""


@pytest.fixture
def outside(tmp_path):
    """A folder that is neither home nor the project."""
    path = tmp_path / "outside"
    path.mkdir()
    return path


def lent(cli, *flags):
    """What `policy explain` says is mounted, or its refusal."""
    answer = cli("policy", "explain", *flags, "--", "true")
    if answer.status:
        return answer.err
    return next(line for line in answer.out.splitlines() if line.startswith("mounts: "))


@pytest.fixture(params=["flag", "file"])
def mount(cli, project, request):
    """mount(host) -> what the plan says, asked for by a flag or by a trusted policy file."""
    def by(host):
        if request.param == "flag":
            return lent(cli, "-m", f"{host}:/x")
        (project / "caisson.yaml").write_text(f'version: 1\nmounts: [{{host: "{host}", at: /x}}]\n')
        return lent(cli, "--policy", "caisson.yaml")

    return by


@pytest.mark.parametrize("target,why", [
    ("/", "root of the file system"), ("{home}", "home directory"), ("{home}/..", "home directory"),
    ("{runs}", "run root"), ("{runs}/r1", "run root"), ("/proc/self/root", "root of the file system"),
    ("/proc/self/cwd/..", "home directory"), ("/dev/null", "a device"), ("/sys/kernel", "kernel"),
    ("{home}/nothing", "does not exist")])
def test_a_link_is_what_it_leads_to(mount, home, runs, outside, target, why):
    (runs / "r1").mkdir(parents=True)
    (outside / "link").symlink_to(target.format(home=home, runs=runs))
    assert why in mount(outside / "link")


def test_the_real_path_is_lent(mount, outside):
    (outside / "real").mkdir()
    (outside / "link").symlink_to("real")
    said = mount(outside / "link")
    assert str(outside / "real") in said and "link" not in said


def test_no_link_leads_out_of_the_project(mount, project, outside):
    (project / "data").symlink_to(outside)
    assert "leads out of the project by a symbolic link" in mount("data")
    (project / "data").unlink()
    (project / "data").mkdir()
    assert str(project / "data") in mount("data")


@pytest.mark.parametrize("name", ["docker.sock", "any"])
def test_sockets_and_pipes_are_not_lent(mount, outside, monkeypatch, name):
    monkeypatch.chdir(outside)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        (outside / "innocent").symlink_to(name)
        for path in (outside / name, outside / "innocent"):
            assert "socket" in mount(path)
    os.mkfifo(outside / "pipe")
    assert "pipe" in mount(outside / "pipe")
    (outside / "file").write_text("fine")
    assert str(outside / "file") in mount(outside / "file")


def test_a_run_root_behind_a_link_is_one(mount, home, outside):
    """Its records are not lent under another name either."""
    (outside / "state" / "caisson" / "runs" / "r1").mkdir(parents=True)
    (home / ".local").mkdir()
    (home / ".local" / "state").symlink_to(outside / "state")
    for path in ("state", "state/caisson/runs", "state/caisson/runs/r1"):
        assert "run root" in mount(outside / path), path


def test_mount_roots_hold_behind_links(cli, project, outside):
    (outside / "lent").mkdir()
    (outside / "kept").mkdir()
    (outside / "lent" / "out").symlink_to(outside / "kept")
    (project / "caisson.yaml").write_text(f'version: 1\nmount_roots: ["{outside}/lent"]\n')
    assert "mount_roots" in lent(cli, "--policy", "caisson.yaml", "-m", f"{outside}/lent/out:/x")
    assert str(outside / "lent") in lent(cli, "--policy", "caisson.yaml", "-m", f"{outside}/lent:/x")


@pytest.mark.parametrize("target,why", [
    ("/", "root of the file system"), ("{home}", "home directory"), ("{runs}/r1", "run root"), ("/etc", "system directory"),
    ("/etc/passwd", "is a file")])
def test_a_workspace_is_what_it_leads_to(cli, home, runs, outside, project, target, why):
    (runs / "r1").mkdir(parents=True)
    (outside / "link").symlink_to(target.format(home=home, runs=runs))
    assert why in lent(cli, "-w", outside / "link")
    (project / "caisson.yaml").write_text(f'version: 1\nworkspace: {{path: "{outside}/link"}}\n')
    assert why in lent(cli, "--policy", "caisson.yaml")


def test_an_untrusted_file_reaches_nowhere_by_a_link(cli, project, outside):
    (project / "sub").symlink_to(outside)
    (project / "caisson.yaml").write_text("version: 1\nworkspace: {path: sub}\n")
    assert "leads out of the project" in lent(cli)


@pytest.mark.parametrize("wall,swapped", [("process", "in"), ("landlock", "in"), ("landlock", "in/data")])
def test_a_folder_swapped_for_a_link_while_we_start(cli, project, outside, wall, swapped):
    if wall == "landlock" and os.geteuid() == 0:
        pytest.skip("root's command has another id there, and pytest's folders are closed to it")
    (project / "in/data").mkdir(parents=True)
    (outside / "data").mkdir()
    for secret in outside / "secret", outside / "data/secret":
        secret.write_text("SECRET")
    (project / "evil").symlink_to(outside)
    at = "/mnt" if wall == "process" else project / "in/data"
    (project / "p.yaml").write_text(f"version: 1\ntier: auto\nmounts:\n"
                                    f"  - {{host: {project}/in/data, at: {at}, mode: rw}}\n")
    look = f"cat /mnt/secret {outside}/secret {outside}/data/secret"
    program = subprocess.Popen([sys.executable, "-c", SWAP, project / swapped, project / "evil"])
    try:
        said = {cli("run", "--no-record", "--backend", wall, "--policy", "p.yaml", "-c", look).out for _ in range(60)}
    finally:
        program.kill()
        program.wait()
    assert said == {""}
