"""Jobs whose worker is in a container: what a kill leaves is gone on with, and the network is on the record."""
import pathlib
import sys

from run_fixtures import wait_for

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "jobs"))
from job_root import Jobs  # noqa: E402


def jobs_of(engine):
    base = engine.box.base / "jobs"
    base.mkdir(mode=0o755)
    return Jobs(base, engine.box.caisson, engine.box.env, engine.box.as_owner())


def start_kill_resume(engine):
    jobs = jobs_of(engine)
    jobs.kill_and_resume("--policy", policy_of(engine, jobs), "--container-network", "default", backend=engine.name)
    assert wait_for(lambda: engine.containers() == [], 60)
    launches = [event["payload"] for event in jobs.events("one", "RunStarted")]
    assert len(launches) == 2, launches
    for launch in launches:
        assert launch["network"] == "engine" and launch["runtime"] == engine.name, launch


def policy_of(engine, jobs):
    path = engine.box.base / "job.yaml"
    path.write_text(engine.policy(f"network: {{mode: engine}}\nmount_roots: [{jobs.data}]\n"))
    return path


def test_killed_and_resumed_behind_docker(docker):
    start_kill_resume(docker)


def test_killed_and_resumed_behind_podman(rootless):
    start_kill_resume(rootless)


def test_the_network_is_the_policys(docker):
    """By default none, whatever a policy lends; and a flag lends nothing."""
    jobs = jobs_of(docker)
    for name in ("quiet", "asks"):
        (jobs.root / name).mkdir()
    jobs.give()
    done = jobs.start("quiet", "ls /sys/class/net", flags=["--policy", policy_of(docker, jobs)], backend="docker")
    assert done.returncode == 0 and jobs.output("quiet").split() == ["lo"], done.stderr
    refused = jobs.start("asks", "true", flags=["--container-network", "default"], backend="docker")
    assert refused.returncode == 125 and "wider than the built-in none" in refused.stderr, refused.stderr
