"""The walls of engines and runtimes for the suite: a daemon and an image store of its own, one sandbox that stays for each.

A start of a container costs half a second, a command in one that runs 20 ms. So the attacks that need nothing of a start of their own are
commands of one sandbox, one after the other; where one of them ends it, the next finds another.
"""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

from behind import TOP, USER_UID, Case, Run, attacks

sys.path += [str(TOP / "tests/containers")]
from engine_fixtures import CONTAINERS, STORAGE, Daemon, let_go, need  # noqa: E402

# name -> (wall, who starts it, the program that has to be there)
WORLDS = {"docker": ("docker", "user", "docker"), "podman": ("podman", "root", "podman"), "runc": ("oci", "root", "runc"),
          "crun": ("oci", "root", "crun"), "gvisor": ("gvisor", "root", "runsc")}
# Their surroundings are those of a start: flags, names that are hidden then, descriptors, variables, other users, an end.
OWN_START = set("""
    agent_file agent_limits agent_memory agent_proc agent_signals commit_links commit_setid cow_layer daemon deaf_tree descriptors environment file_capabilities forged_denial fork_bomb groups
    hidden_files_cow hidden_files_ro hidden_files_rw kernel_uid memory_bomb memory_memfd memory_queued memory_scratch memory_shared
    memory_sysv memory_undumpable monitor_killed mount_symlink notify_flood other_processes output_flood own_record placeholder_symlink planted_policy
    policy_file protected_absent protected_names protected_symlink rights_swap rights_ways scratch_fill setid_files setuid_binary
    sibling_runs stalled_reader tcp_loopback tiocsti tty_inside unix_socket_cow unix_socket_rw unix_socket_swap
    unreadable_program""".split())
# Those run always; CSN_ESCAPE_ALL=1 runs every one, which found the table: docker and podman differ by two lines of the program, runc
# and crun by their faults.
MOST = set("""
    agent_proc agent_signals daemon descriptors environment fork_bomb groups hidden_files_ro hidden_files_rw kernel_uid memory_bomb
    monitor_killed mount_symlink protected_names scratch_fill setid_files sibling_runs""".split())
FEW = {"hidden_files_rw", "kernel_uid", "memory_bomb", "monitor_killed", "protected_names"}
OWN_ALWAYS = {"docker": MOST, "podman": FEW, "runc": OWN_START, "crun": FEW, "gvisor": MOST}
START_S = 60
CONTAINED_UID = 1879048191  # docs/decisions/containers.md


class Contained(Case):
    """An engine cannot map ids of files: root's workspace belongs to the id that its containers get, or no attack could write."""

    def give(self):
        super().give()
        if self.who == "root" and self.wall in ("docker", "podman"):
            for path in {self.ws, *self.ws.rglob("*")} - {self.runs}:
                os.chown(path, CONTAINED_UID, CONTAINED_UID, follow_symlinks=False)


class Stay(Contained):
    """The surroundings of many attacks at once, around one sandbox."""

    name = None

    def up(self):
        self.give()
        done = self.call("up", "-q", "--backend", self.wall, "-w", self.ws, "--run-dir", self.runs, f"stay-{os.urandom(4).hex()}")
        assert done.returncode == 0, done.stderr.decode()
        self.name = done.stdout.decode().strip()

    def call(self, *words, **more):
        return subprocess.run([self.caisson, *map(str, words)], cwd=self.ws, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=START_S, **self.as_starter(), **more)

    def run(self, flags, command, **more):
        assert not flags and not more, "an attack that needs a start of its own"
        self.give()
        if not self.name:
            self.up()
        started = time.monotonic()
        done = self.call("exec", "--json", self.name, "--", *command)
        told = json.loads(done.stdout)
        result = {"termination": told, "violations": told["violations"]}
        if told["reason"] == "lost":
            self.name = None
        return Run(done.returncode, text_of(told["output"]), text_of(told["errors"]).decode(errors="replace"), result,
                   time.monotonic() - started)

    def close(self):
        """What an attack's host side made goes; the sandbox and the attacks in its workspace stay."""
        super().close()
        self.cleanups = []
        for folder in (self.home, self.ws, self.outside):
            for path in folder.iterdir():
                if path.is_dir() and not path.is_symlink() and path != self.ws / "attack":
                    shutil.rmtree(path)
                elif path != self.ws / "attack":
                    path.unlink()

    def down(self):
        if self.name:
            self.call("down", self.name)


def text_of(stream):
    data = stream["data"]
    return base64.b64decode(data["base64"]) if isinstance(data, dict) else data.encode()


class World:
    """One engine or runtime: where its cases are made, and the sandbox that stays."""

    def __init__(self, name, shared, caisson, native, env):
        self.wall, self.who, _ = WORLDS[name]
        self.shared, self.caisson, self.native = shared, caisson, native
        self.keep = shared / f"keep-{name}"  # what is known of an engine and its image is asked once
        self.keep.mkdir(mode=0o700)
        if self.who == "user":
            os.chown(self.keep, USER_UID, USER_UID)
        self.env = env | {"XDG_RUNTIME_DIR": str(self.keep)}
        self.stay = None

    def make(self, kind):
        base = pathlib.Path(tempfile.mkdtemp(prefix=f"{self.wall}-", dir=self.shared))
        base.chmod(0o755)
        case = kind(base, self.caisson, self.wall, self.who, self.native)
        case.env |= self.env
        return case

    def remove(self, case):
        Case.close(case)
        shutil.rmtree(case.base, ignore_errors=True)

    def close(self):
        if self.stay:
            self.stay.down()
            self.remove(self.stay)


def cases():
    """(attack, world): one world after the other, so that not all of them work at once."""
    for name, own in OWN_ALWAYS.items():
        for attack in attacks():
            if attack not in OWN_START or attack in own or os.environ.get("CSN_ESCAPE_ALL"):
                yield attack, name


def environment_of(name, folder, ends):
    """Starts what an engine needs; `ends` gets what ends it."""
    if name == "docker":
        folder.mkdir(mode=0o711)
        daemon = Daemon(folder)
        ends.append(lambda: (daemon.stop(), daemon.log.close(), let_go(folder)))
        return daemon.env
    if name == "podman":
        folder.mkdir()
        (folder / "storage.conf").write_text(STORAGE % ("overlay", folder / "graph", folder / "run"))
        (folder / "containers.conf").write_text(CONTAINERS % (folder / "tmp", folder / "net"))
        ends.append(lambda: let_go(folder))
        return {"CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"), "CONTAINERS_CONF": str(folder / "containers.conf")}
    return {"CAISSON_OCI_RUNTIME": name} if WORLDS[name][0] == "oci" else {}


@pytest.fixture(scope="session")
def worlds(shared, caisson, native):
    """worlds(name): that World, made when it is first asked for."""
    made, ends = {}, []

    def world(name):
        if os.geteuid() != 0:
            pytest.skip("root: engines and runtimes are started by nobody else here")
        if name not in made:
            need(WORLDS[name][2])
            made[name] = World(name, shared, caisson, native, environment_of(name, shared / f"engine-{name}", ends))
        return made[name]

    yield world
    for one in made.values():
        one.close()
    for end in reversed(ends):
        end()


@pytest.fixture
def at(request, worlds):
    """A case behind one of them: attack's own, or the one of the sandbox that stays."""
    attack, name = request.param
    world = worlds(name)
    if attack not in OWN_START:
        world.stay = world.stay or world.make(Stay)
        yield world.stay
        world.stay.close()
        return
    case = world.make(Contained)
    yield case
    world.remove(case)
