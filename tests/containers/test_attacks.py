"""What a hostile command tries from inside a container: the host, the engine, the agent, its neighbours."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import textwrap

from engine_fixtures import STORAGE, Daemon, let_go
from run_fixtures import PYTHON, wait_for

ATTACKS = """
    import ctypes, os, socket, stat, sys
    libc = ctypes.CDLL(None, use_errno=True)
    won = []

    def attack(name, what):
        try:
            if what() not in (None, False, -1):
                won.append(name)
        except (OSError, ValueError):
            pass

    def reads(path):
        return lambda: os.read(os.open(path, os.O_RDONLY), 1) != b""

    def writes(path):
        return lambda: os.write(os.open(path, os.O_WRONLY), b"1")

    def call(number, *args):
        return lambda: libc.syscall(number, *args)

    def connects(path):
        def attempt():
            peer = socket.socket(socket.AF_UNIX)
            peer.connect(path)
            return True
        return attempt

    def set_id():
        fd = os.open("/workspace/setid", os.O_CREAT | os.O_WRONLY, 0o6755)
        os.fchmod(fd, 0o6755)
        return bool(os.stat("/workspace/setid").st_mode & 0o6000)

    attack("socket in the workspace", connects("/workspace/engine.sock"))
    attack("docker's socket", connects("/var/run/docker.sock"))
    attack("memory of the agent", reads("/proc/1/mem"))
    attack("environment of the agent", reads("/proc/1/environ"))
    attack("descriptors of the agent", lambda: os.listdir("/proc/1/fd") != [])
    attack("ptrace", call(101, 16, 1, 0, 0))
    attack("process_vm_readv", call(310, 1, 0, 0, 0, 0, 0))
    attack("kill the agent", lambda: os.kill(1, 9) or os.kill(1, 0) is None and False)
    attack("user namespace", call(272, 0x10000000))
    attack("mount namespace", call(272, 0x20000))
    attack("mount", lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0)
    attack("pivot_root", call(155, b"/tmp", b"/tmp"))
    attack("bpf", call(321, 0, 0, 0))
    attack("io_uring", call(425, 8, 0))
    attack("keyctl", call(250, 0, -3, 1))
    attack("open_by_handle_at", call(304, 3, 0, 0))
    attack("setuid", lambda: os.setuid(0) is None)
    attack("device", lambda: os.mknod("/tmp/sda", stat.S_IFBLK | 0o600, os.makedev(8, 0)) is None)
    attack("set-id file", set_id)
    attack("inet socket", lambda: socket.create_connection(("192.0.2.1", 80), 1) is not None)
    attack("packet socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) is not None)
    attack("core_pattern", writes("/proc/sys/kernel/core_pattern"))
    attack("sysrq", writes("/proc/sysrq-trigger"))
    attack("release_agent", writes("/sys/fs/cgroup/memory/release_agent"))
    attack("device list", writes("/sys/fs/cgroup/devices/devices.allow"))
    attack("uevent_helper", writes("/sys/kernel/uevent_helper"))
    attack("limit of its group", writes("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
    attack("remount", lambda: libc.mount(b"none", b"/workspace", None, 32, None) == 0)
    attack("host's shadow", reads("/etc/shadow"))
    attack("host's root", lambda: os.listdir("/root") != None)
    attack("root of the first process", lambda: os.listdir("/proc/1/root/") != None)
    attack("the program of the agent", writes("/run/caisson/caisson-agent"))
    attack("neighbour", reads(sys.argv[1]))
    print("won:", won)
"""


def test_nothing_is_won(one_engine):
    engine = one_engine
    ws = engine.box.ws
    neighbour = engine.box.runs / "20260101-000000-neighbour"
    neighbour.mkdir(parents=True)
    (neighbour / "result.json").write_text("{}")
    (ws / "attack.py").write_text(textwrap.dedent(ATTACKS))
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(ws / "engine.sock"))
    listening.listen()
    os.chmod(ws / "engine.sock", 0o777)
    engine.box.give()
    ws.chmod(0o777)
    run = engine.box.run(PYTHON, "attack.py", neighbour / "result.json", policy=engine.policy("workspace: {mode: rw}\n"), timeout=120)
    assert run.text.strip() == "won: []", run
    assert run.status == 0 and run.reason == "exited", run


def test_the_kernel_uid_is_not_roots(one_engine):
    """As the host sees it: agent and command."""
    engine = one_engine
    with engine.up() as name:
        assert engine.cli("exec", name, "--", "sh", "-c", "sleep 321 & echo").status == 0
        found = subprocess.run(["pgrep", "-f", "^/run/caisson/caisson-agent --stdio"], capture_output=True, text=True).stdout.split()
        uids = {os.stat(f"/proc/{pid}").st_uid for pid in found if os.path.exists(f"/proc/{pid}")}
        assert found and 0 not in uids


def test_a_link_in_the_way_is_refused(one_engine):
    """What is protected became a link to the host's: it is not shown."""
    engine = one_engine
    ws = engine.box.ws
    (ws / ".git").symlink_to("/etc")
    run = engine.sh("ls .git/ | head -3; cat .git/shadow", "workspace: {mode: rw, protect: [.git/hooks, .git/shadow]}\n")
    assert "root:" not in run.text, run


def test_a_daemon_that_is_killed(shared, docker):
    """The engine is gone in mid-run: the run is lost, says so, and does not hang; with the next daemon nothing of it is left."""
    folder = shared / "killed"
    folder.mkdir(mode=0o711)
    other = Daemon(folder)
    docker.env, docker.box.env = other.env, docker.box.env | other.env
    process = docker.box.start("sh", "-c", "echo up; sleep 600", policy=docker.policy())
    assert process.stdout.readline() == b"up\n"
    agent = int(docker.host("inspect", "--format", "{{.State.Pid}}", docker.containers()[0]).stdout)
    other.stop(kill=True)
    try:
        err = process.communicate(timeout=60)[1].decode()
        assert "the sandbox ended" in err, err
        assert json.loads(docker.box.result.read_text())["termination"]["reason"] == "lost" and process.returncode == 125
        for pid in started_in(folder):  # a supervisor ends it with its daemon; shims stay, as they do there
            if pathlib.Path(f"/proc/{pid}/comm").read_text() == "containerd\n":
                os.kill(pid, signal.SIGKILL)
        for path in folder.rglob("containerd.pid"):
            path.unlink()
        other.start()
        assert docker.cli("gc").status == 0
        assert wait_for(lambda: docker.containers() == [], 60)
        assert docker.sh("echo again").text == "again\n"
        other.stop()
    finally:
        for pid in [agent, *started_in(folder)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        let_go(folder)


def started_in(folder):
    """What a daemon started by the names of its own folder: containerd, and a shim for each container."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(folder).encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def test_a_store_that_is_full(shared, one_engine):
    """A small disk beneath the engine's own store: refused by a sentence that says so, and nothing half is left there."""
    engine = one_engine
    folder = shared / f"full-{engine.name}"
    folder.mkdir(mode=0o711)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=711", "full", folder], check=True)
    daemon = None
    try:
        env = dict(engine.env)
        if engine.name == "docker":
            daemon = Daemon(folder)
            env |= daemon.env
        else:
            (folder / "storage.conf").write_text(STORAGE % ("vfs", folder / "graph", folder / "run"))
            env["CONTAINERS_STORAGE_CONF"] = str(folder / "storage.conf")
        engine.env, engine.box.env = env, engine.box.env | env
        before = engine.host("images", "--quiet").stdout
        with contextlib.suppress(OSError), open(folder / "filler", "wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
        run = engine.sh("echo never")
        assert run.status == 125 and "never" not in run.text and f"the image store of {engine.name} is full" in run.err, run
        (folder / "filler").unlink()
        assert engine.host("images", "--quiet").stdout == before and engine.containers() == []
        assert engine.sh("echo now").text == "now\n"
    finally:
        if daemon:
            daemon.stop()
            daemon.log.close()
        let_go(folder)
