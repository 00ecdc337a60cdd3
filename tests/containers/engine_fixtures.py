"""An engine of the tests' own: a daemon, and one wall of one owner."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

START_S = 60
STORAGE = '[storage]\ndriver = "%s"\ngraphroot = "%s"\nrunroot = "%s"\n'
# podman's own network, on a bridge that is there: neither its address translation nor its firewall is for a test to change.
NETWORK = """{"cniVersion": "0.4.0", "name": "podman", "plugins": [{"type": "bridge", "bridge": "%s", "isGateway": true,
"ipam": {"type": "host-local", "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "%s.0/24", "gateway": "%s.1"}]]}}]}"""
CONTAINERS = '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\ntmp_dir = "%s"\n[network]\nnetwork_config_dir = "%s"\n'


def need(*programs):
    """They come with tools/setup ci, so that here is no skip."""
    missing = [name for name in programs if not shutil.which(name)]
    if missing:
        pytest.fail(f"not installed: {', '.join(missing)} (tools/setup ci)")


def let_go(folder):
    """What an engine mounted beneath its folder and did not take down."""
    for mount in reversed(pathlib.Path("/proc/self/mounts").read_text().splitlines()):
        if str(folder) in mount.split()[1]:
            subprocess.run(["umount", "-l", mount.split()[1]], check=False)


class Bridge:
    """A network of the host's for containers; the host is its .1."""

    def __init__(self, letter, second):
        need("ip")
        self.name, self.net = f"csn{letter}{os.getpid()}", f"198.{second}.{os.getpid() % 256}"
        self.gateway = f"{self.net}.1"
        self.ip("link", "add", self.name, "type", "bridge")
        self.ip("address", "add", f"{self.gateway}/24", "dev", self.name)
        self.ip("link", "set", self.name, "up")

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    def remove(self):
        self.ip("link", "delete", self.name)


class Daemon:
    """A dockerd with everything of its own, and no network but the bridge that it is given."""

    def __init__(self, folder, bridge="none"):
        need("docker", "dockerd", "runc")
        self.folder, self.socket = folder, folder / "docker.sock"
        self.env = {"DOCKER_HOST": f"unix://{self.socket}"}
        self.log = open(folder / "log", "wb")
        self.process, self.bridge = None, bridge
        self.start()

    def start(self):
        words = ["dockerd", "--data-root", self.folder / "data", "--exec-root", self.folder / "exec", "-p", self.folder / "pid",
                 "-H", f"unix://{self.socket}", f"--bridge={self.bridge}", "--iptables=false", "--ip-forward=false", "--ip-masq=false"]
        self.process = subprocess.Popen([*map(str, words)], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        end = time.monotonic() + START_S
        while subprocess.run(["docker", "version"], env=os.environ | self.env, capture_output=True).returncode:
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                pytest.fail("dockerd does not start:\n" + (self.folder / "log").read_text()[-3000:])
            time.sleep(0.1)
        self.socket.chmod(0o666)  # the tests' ordinary users; the folder above is the daemon's alone to list

    def stop(self, kill=False):
        (self.process.kill if kill else self.process.terminate)()
        self.process.wait(60)


class Account:
    """An ordinary user with ids to hand out, and an engine of his own: what he is, and how to take him away."""

    def __init__(self, folder, uid):
        need("useradd", "userdel", "newuidmap", "slirp4netns")
        self.uid, self.folder, self.name = uid, folder, f"csn{os.getpid()}"
        (folder / "home").mkdir(parents=True)
        ranges = ("UID_MAX=399999", "GID_MAX=399999", "SUB_UID_MIN=400000", "SUB_GID_MIN=400000")  # apart from the tests' users
        subprocess.run(["useradd", "--no-create-home", "--no-log-init", "--uid", str(uid), "--user-group", "--home-dir",
                        folder / "home", *(word for text in ranges for word in ("--key", text)), self.name], check=True)
        for path in (folder, folder / "home"):
            os.chown(path, uid, uid)
        self.env = {"HOME": str(folder / "home"), "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

    def processes(self):
        return [int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*") if self.owns(path)]

    def owns(self, path):
        try:
            return path.stat().st_uid == self.uid
        except OSError:
            return False

    def remove(self):
        """podman leaves a process that holds its namespaces."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        subprocess.run(["userdel", "--force", self.name], check=True, stderr=subprocess.DEVNULL)


class Engine:
    """One wall of one owner."""

    def __init__(self, name, box, env, bridge, who=None):
        self.name, self.box, self.env, self.bridge, self.who = name, box, env, bridge, who or {}
        (box.base / "rt").mkdir(mode=0o700)
        box.env |= env | {"XDG_RUNTIME_DIR": str(box.base / "rt")}
        box.give()

    def policy(self, text="", **keys):
        return f"version: 1\nbackend: {self.name}\nlimits: {{startup: 60s, command: 60s, budget: none}}\n" + text

    def sh(self, text, more="", **kwargs):
        return self.box.sh(text, policy=self.policy(more), timeout=120, **kwargs)

    def cli(self, *words, **kwargs):
        return self.box.cli(*words, timeout=120, **kwargs)

    def host(self, *words):
        """The engine's own client."""
        return subprocess.run([self.name, *map(str, words)], env=os.environ | self.env, capture_output=True, text=True,
                              timeout=120, **self.who)

    def containers(self):
        return self.host("ps", "--all", "--quiet", "--filter", f"label=caisson.keep={self.box.base}/rt/caisson/engines").stdout.split()

    @contextlib.contextmanager
    def up(self, name="one", more=""):
        path = self.box.base / f"{name}.yaml"
        path.write_text(self.policy(more))
        path.chmod(0o644)
        done = self.cli("up", name, "--policy", path)
        assert done.status == 0, done
        try:
            yield name
        finally:
            self.cli("down", name)
