"""What a job lends and what it does not, what it refuses to, and what a worker can do to its own books."""
import json
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import tempfile

import pytest

from job_root import Jobs

TOP = pathlib.Path(__file__).resolve().parents[2]


def refused(jobs, data, **more):
    done = jobs.start("one", "true", data=data, **more)
    assert done.returncode == 125, done.stderr
    assert not (jobs.root / "one/logs").exists(), "refused, and something was made"
    return done.stderr


def test_exactly_two_grants(jobs):
    (jobs.root / "sibling").mkdir()
    (jobs.root / "sibling/secret").write_text("s")
    (jobs.home / "secret").write_text("s")
    jobs.start("one", f"""
ls /workspace; cat /workspace/data/rows.txt
for path in {jobs.root} {jobs.root}/sibling {jobs.home} {jobs.data} /workspace/run/../sibling /root /home; do
    ls $path 2>/dev/null && echo SEEN $path
done
touch /workspace/data/x 2>/dev/null && echo WRITTEN
touch /workspace/run/mine && echo kept
""")
    out = jobs.output("one")
    assert out.startswith("data\nrun\none\ntwo words\n") and "SEEN" not in out and "WRITTEN" not in out
    assert (jobs.root / "one/mine").exists() and (jobs.root / "one/mine").stat().st_uid == os.geteuid()


def test_a_symlinked_data_set_brings_its_target(jobs):
    link = jobs.base / "link"
    link.symlink_to(jobs.data)
    assert jobs.start("one", "cat /workspace/data/rows.txt", data=link).returncode == 0
    assert jobs.output("one") == "one\ntwo words\n"
    assert jobs.events("one", "RunStarted")[0]["payload"]["mounts"][1]["host"] == str(jobs.data)


@pytest.mark.parametrize("is_link", (False, True))
def test_never_lent(jobs, is_link):
    repository = jobs.base / "repository"
    (repository / ".git").mkdir(parents=True)
    jobs.start("other", "true")
    assert "home directory" in refused(jobs, jobs.base)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(jobs.base / "a.sock"))
    beside = jobs.base / "beside"
    beside.mkdir()
    second = socket.socket(socket.AF_UNIX)
    second.bind(str(beside / "b.sock"))
    for number, (path, word) in enumerate((
            (repository, "root of a repository"), (jobs.root, "run root"), (jobs.root / "other", "run or a job"),
            (jobs.home, "home directory"), ("/", "root of the file system"), ("/home", "home"), ("/root", "home"),
            (jobs.base / "a.sock", "socket"), (beside, "holds a socket"), ("/dev/null", "socket, a device"),
            ("/run", "services"), (jobs.root / "other/logs", "run root"))):
        if is_link:
            link = jobs.base / f"link{number}"
            link.symlink_to(path)
            path = link
        said = refused(jobs, path)
        assert word in said or (word == "services" and "holds a socket" in said)
    listener.close()
    second.close()
    assert "No such file" in refused(jobs, jobs.base / "nowhere")


def test_looked_at_again(jobs):
    """A data set that became a repository, or a link to one, is not lent to the next launch."""
    assert jobs.start("one", "true").returncode == 0
    (jobs.data / ".git").mkdir()
    done = jobs.cli("resume", "one")
    assert done.returncode == 125 and "root of a repository" in done.stderr
    jobs.data.rename(jobs.base / "elsewhere")
    jobs.data.symlink_to(jobs.base / "elsewhere")
    done = jobs.cli("resume", "one")
    assert done.returncode == 125 and f"leads to {jobs.base}/elsewhere" in done.stderr
    assert jobs.state("one")["launches"] == 1
    jobs.verify("one")


@pytest.mark.parametrize("backend", ("process", "oci"))
def test_the_account_stays_out_of_reach(jobs, backend):
    """While it is written, too: a file that were replaced would lose its mount inside."""
    if backend == "oci" and not any(map(shutil.which, ("runc", "crun"))):
        pytest.fail("runc: not installed (tools/setup ci)")
    jobs.start("one", backend=backend, text=r"""
attack() {
    for name in state.json manifest.json result.json logs/events.jsonl logs/iterations.jsonl; do
        echo forged 2>/dev/null >$name && echo "WRITTEN $name"
        rm -rf $name 2>/dev/null && echo "REMOVED $name"
        mv $name aside 2>/dev/null && echo "MOVED $name"
    done
    mv logs aside 2>/dev/null && echo MOVED logs
    touch logs/new 2>/dev/null && echo MADE
}
attack
for i in 1 2 3 4 5; do caisson-report iteration; sleep 0.1; attack; done
python3 -c 'import json; print("sees", json.load(open("state.json"))["iteration"])'
ln -s /etc/passwd .result.json.new; mkfifo .manifest.json.new; mkdir .state.json.new
""")
    assert jobs.output("one") == "sees 5\n"
    assert jobs.state("one")["status"] == "finished" and jobs.state("one")["iteration"] == 5
    jobs.verify("one")


def test_books_of_somebody_else(jobs):
    """What others own, or may write, is not believed; and a worker lets nobody in for longer than it lives."""
    assert jobs.start("one", "chmod 777 /workspace/run; caisson-report iteration").returncode == 0
    folder = jobs.root / "one"
    assert stat.S_IMODE(folder.stat().st_mode) & 0o022 == 0
    for path in (folder, folder / "logs", folder / "logs/events.jsonl"):
        mode = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode | 0o022)
        for verb in (["resume", "one"], ["extend", "one", "--add-iterations", "1"]):
            done = jobs.cli(*verb)
            assert done.returncode != 0 and "others may write in it" in done.stderr, done.stderr
        path.chmod(mode)
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
            assert "belongs to somebody else" in jobs.cli("resume", "one").stderr
            os.chown(path, 0, 0)
    assert jobs.cli("resume", "one").returncode == 0
    jobs.verify("one")


@pytest.mark.parametrize("lay", ("ln -s x .result.json.new; ln -s x .manifest.json.new; ln -s x .state.json.new",
                                 "umask 0; echo >.result.json.new; ln .result.json.new .manifest.json.new"))
def test_links_in_the_way(jobs, lay):
    done = jobs.start("one", lay)
    assert done.returncode == 0, done.stderr
    for name in ("result.json", "manifest.json"):
        found = (jobs.root / "one" / name).lstat()
        assert (stat.S_IMODE(found.st_mode), found.st_nlink) == (0o600, 1)
    jobs.verify("one")


@pytest.mark.parametrize("name", ("", ".", "..", "../up", "a/b", ".hidden", "-x", "x" * 40, "heads.jsonl",
                                  "20260102-030405-abcdef123456", "a b", "ä"))
def test_ids_are_names(jobs, name):
    done = jobs.cli("start", "--run-id=" + name, "--data", jobs.data, "--backend", "process", "--", "true")
    assert done.returncode in (2, 125) and list(jobs.root.glob("*/logs")) == []


def test_a_job_without_a_name_gets_one(jobs):
    done = jobs.cli("start", "--data", jobs.data, "--backend", "process", "--worker", "echo  hello", "--json")
    assert json.loads(done.stdout)["run_id"].startswith("job-") and json.loads(done.stdout)["status"] == "finished"


def test_a_folder_that_is_a_link(jobs):
    (jobs.base / "elsewhere").mkdir()
    (jobs.root / "one").symlink_to(jobs.base / "elsewhere")
    done = jobs.cli("start", "--run-id", "one", "--data", jobs.data, "--backend", "process", "--", "true")
    assert done.returncode == 125 and list((jobs.base / "elsewhere").iterdir()) == []


def test_the_host_is_no_wall(jobs):
    done = jobs.cli("start", "--run-id", "one", "--data", jobs.data, "--execution-mode", "host", "--", "true")
    assert done.returncode == 125 and "tier: local" in done.stderr and "trusted policy file" in done.stderr
    policy = jobs.home / "local.yaml"
    policy.write_text(f"version: 1\ntier: local\nmount_roots: [{jobs.base}]\n")
    done = jobs.cli("start", "--run-id", "one", "--data", jobs.data, "--execution-mode", "host", "--policy", policy,
                    "--use-bypass-permissions", "--", "sh", "-c", "echo $CAISSON_PERMISSION_MODE $CAISSON_RUN_DIR; "
                    "echo '{\"event\":\"iteration\"}' >&3")
    assert done.returncode == 0, done.stderr
    assert jobs.output("one") == f"acceptEdits {jobs.root}/one\n" and jobs.state("one")["iteration"] == 1
    assert jobs.events("one", "RunStarted")[0]["payload"]["permission_mode"] == "acceptEdits"


def test_bypass_is_for_walls(jobs):
    jobs.start("one", "echo $CAISSON_PERMISSION_MODE", flags=["--use-bypass-permissions"])
    assert jobs.output("one") == "bypassPermissions\n"
    assert jobs.events("one", "RunExited")[0]["payload"]["permission_mode"] == "bypassPermissions"


def test_manifest_and_flags(jobs):
    manifest = jobs.home / "arch.yaml"
    manifest.write_text("name: loop\nother: {x: 1}\nexecution:\n  mode: container\n  inner_runner: [env, INNER=1]\n"
                        "  container: {use_bypass_permissions: true, network: none}\n")
    jobs.start("one", "echo $INNER $CAISSON_PERMISSION_MODE", flags=["--manifest", manifest])
    assert jobs.output("one") == "1 bypassPermissions\n"
    manifest.write_text("execution:\n  mode: vm\n")
    done = jobs.start("two", "true", flags=["--manifest", manifest])
    assert done.returncode == 125 and f"{manifest}:2:9: mode, expected host or container" in done.stderr
    manifest.write_text("execution:\n  container: {sockets: true}\n")
    assert "unknown key" in jobs.start("two", "true", flags=["--manifest", manifest]).stderr


def test_no_engine_no_job(jobs):
    """The refusal names it, and nothing weaker is taken."""
    done = jobs.cli("start", "--run-id", "one", "--data", jobs.data, "--container-runtime", "docker", "--", "true",
                    env={"DOCKER_HOST": "unix:///nowhere/docker.sock"})
    assert done.returncode == 125 and "docker: " in done.stderr and "--backend process" in done.stderr
    assert not (jobs.root / "one").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="root: it is root who is refused")
def test_roots_engine_cannot_write(jobs):
    """Before anything is made; where there is no engine at all, for that reason."""
    for engine in ("docker", "podman"):
        assert engine in refused_engine(jobs, engine)


def refused_engine(jobs, engine):
    done = jobs.cli("start", "--run-id", "one", "--data", jobs.data, "--container-runtime", engine, "--", "true")
    assert done.returncode == 125 and not (jobs.root / "one").exists()
    return done.stderr


def test_the_engines_network_is_the_policys(jobs):
    assert "network" in refused(jobs, jobs.data, flags=["--container-network", "default"])


def test_secrets_are_not_written_down(jobs):
    jobs.start("one", "caisson-report note text=$TOKEN; echo $TOKEN", flags=["-e", "TOKEN=hush-hush-123456"])
    assert "[REDACTED:TOKEN]" in json.dumps(jobs.events("one"))
    for path in (jobs.root / "one").rglob("*.json*"):
        assert "hush-hush" not in path.read_text(), path
    jobs.cli("resume", "one", env={"TOKEN": "hush-hush-654321"})
    assert "654321" in jobs.output("one"), "its name is known, and its value is the caller's of now"


def test_the_example(jobs):
    """As its first lines say."""
    folder = jobs.root / "count"
    folder.mkdir()
    (folder / "job_worker.py").write_bytes((TOP / "examples/job_worker.py").read_bytes())
    assert len((TOP / "examples/job_worker.py").read_text().splitlines()) < 60
    words = ["python3", "/workspace/run/job_worker.py"]
    done = jobs.cli("start", "--run-id", "count", "--data", TOP / "README.md", "--backend", "process", "--max-iterations", "40",
                    "--", *words)
    assert done.returncode == 124 and jobs.state("count")["iteration"] >= 40, done.stderr
    done = jobs.cli("resume", "count", "--max-iterations", "none")
    assert done.returncode == 0, done.stderr
    text = (TOP / "README.md").read_text()
    assert json.loads((folder / "answer.json").read_text())["words"] == len(text.split())
    assert jobs.state("count")["iteration"] == len(text.splitlines()) and jobs.state("count")["checkpoint"] == "answer.json"


@pytest.mark.skipif(os.geteuid() != 0, reason="root: takes on an ordinary user's ids")
def test_as_an_ordinary_user(caisson):
    with tempfile.TemporaryDirectory(prefix="caisson-jobs-") as folder:
        pathlib.Path(folder).chmod(0o755)
        as_user(Jobs(pathlib.Path(folder), caisson))


def as_user(jobs):
    for path in (jobs.base, *jobs.base.rglob("*")):
        os.chown(path, 4242, 4242)
    words = jobs.argv("start", "--run-id", "one", "--data", jobs.data, "--backend", "process", "--", "sh", "-c",
                      "caisson-report iteration; sleep 0.2; rm -f state.json logs/* ; echo x > state.json; touch mine")
    done = subprocess.run(words, user=4242, group=4242, extra_groups=[], cwd=jobs.home, env=jobs.env, timeout=60,
                          stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    assert jobs.state("one")["iteration"] == 1 and (jobs.root / "one/mine").stat().st_uid == 4242
    os.chown(jobs.root, 0, 0)  # others' run roots are not believed
    jobs.verify("one")
