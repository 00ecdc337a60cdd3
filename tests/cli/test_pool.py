"""The pool: prepared sandboxes that wait just before Landlock, for who asks.

One that is taken must be what a start would have made, behind the same wall, under the plan of who took
it; and it is his alone. What waits must go with the pool, whatever ends it.
"""
import contextlib
import json
import os
import pathlib
import resource
import signal
import socket
import struct
import time

import pytest
from run_fixtures import *  # noqa: F403
from test_stay import WAIT, Client, Stay, alive, children, stay  # noqa: F401

POLICY = """\
version: 1
workspace: {{path: {ws}, mode: {mode}, hide: [.env, '*.pem']}}
mount_roots: ['{lent}']
{more}
"""


class Pool:
    def __init__(self, stay):
        self.stay, self.box = stay, stay.box
        self.lent = self.box.base / "lent"
        self.lent.mkdir()
        (self.lent / "f").write_text("lent\n")
        self.env = {"XDG_RUNTIME_DIR": str(stay.runtime)}
        self.policy = self.box.base / "pool.yaml"
        self.write()

    def write(self, mode="rw", more=""):
        self.policy.write_text(POLICY.format(ws=self.box.ws, mode=mode, lent=self.lent, more=more))
        self.box.give()

    def cli(self, *words, env=None, cwd=None):
        return self.box.cli(*words, env=self.env | (env or {}), cwd=cwd)

    def start(self, *flags, size=1):
        done = self.cli("pool", "start", "--size", size, "--policy", self.policy, *flags)
        assert (done.status, done.text, done.err) == (0, "pool\n", ""), done
        return self.ready(size)

    def status(self):
        done = self.cli("pool", "status", "--json")
        assert done.status == 0, done
        return json.loads(done.text)

    def ready(self, count=1):
        assert wait_for(lambda: self.status()["ready"] == count, seconds=WAIT), self.status()
        return self

    def up(self, *flags, name="t", **more):
        return self.cli("up", name, "--pool", "pool", "--policy", self.policy, *flags, **more)

    def taken(self, *flags, **more):
        before = self.status()["taken"]
        done = self.up(*flags, **more)
        assert (done.status, done.err) == (0, ""), done
        assert wait_for(lambda: self.status()["taken"] == before + 1, seconds=WAIT), self.status()
        return self.stay.client()

    def pid(self):
        with self.connected() as peer:
            return struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def connected(self, gid=None, groups=None):
        peer = socket.socket(socket.AF_UNIX)
        ours = os.geteuid(), os.getegid(), os.getgroups()
        if os.geteuid() == 0:
            os.setgroups(groups if groups is not None else ours[2] if self.box.is_root else [])
        os.setegid(self.box.uid if gid is None else gid)
        os.seteuid(self.box.uid)
        try:
            peer.connect(str(self.stay.runtime / "caisson" / "pools" / "pool.sock"))
        finally:
            os.seteuid(ours[0])
            os.setegid(ours[1])
            if os.geteuid() == 0:
                os.setgroups(ours[2])
        peer.settimeout(WAIT)
        return peer


def request(wish, words=(), variables=(), cwd="/", magic=b"csnpool3", size=None, count=None, umask=0o22):
    texts = b"".join(text.encode() + b"\0" for text in [*words, *variables, cwd])
    count = count or (len(words), len(variables))
    limits = [number % (1 << 64) for kind in range(16) for number in resource.getrlimit(kind)]
    return struct.pack("8sIIII32QII", magic, ord(wish), len(texts) if size is None else size, *count, *limits, umask, 0) + texts


@pytest.fixture
def pool(stay):
    made = Pool(stay)
    yield made
    if (stay.runtime / "caisson" / "pools" / "pool.sock").exists():
        made.cli("pool", "stop")


LOOK = r"""
umask; ulimit -a; env | sort; pwd; id
grep -E 'Cap|Sig|NoNew|Seccomp|Groups|Cpus_allowed_list|^Uid|^Gid' /proc/self/status
sed -E 's/^[0-9]+ [0-9]+ [0-9:]+ //; s#/[.]roots/[0-9a-f]+/#/.roots/X/#; s/([ug]id=)[0-9]+/\1N/g' /proc/self/mountinfo | sort
find / -maxdepth 2 -not -path '/proc/*' -not -path '/usr/*' -not -path '/*bin/*' -printf '%p %m %U %G %y %l\n' | sort
find /mnt /workspace /dev /tmp -printf '%p %m %U %G %y %l\n' | sort
for f in /x /etc/x /usr/x /workspace/x /workspace/.git/x /mnt/x /mnt/rw/x /tmp/x /dev/shm/x /dev/null /proc/sys/kernel/hostname /run/x; do
  (echo x > $f) 2>&1 | sed "s/.*: //"; echo $f $?; done; rm -f /workspace/x /workspace/.git/x /tmp/x /dev/shm/x
cat /workspace/.env /workspace/k.pem; hostname; ls /sys /home /root /proc | grep -v '^[0-9]*$'; ls -la /proc/self/fd | sed 's/.* -> //' | wc -l
readlink /proc/self/ns/user >/dev/null; cat /proc/net/dev | wc -l; cat /proc/1/comm
"""


@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_it_is_what_a_start_makes(pool, mode):
    (pool.box.ws / ".env").write_text("secret\n")
    (pool.box.ws / "k.pem").write_text("secret\n")
    (pool.box.ws / ".git").mkdir()
    pool.write(mode=mode, more=f"mounts: [{{host: '{pool.lent}', at: /data, mode: rw}}, {{host: '{pool.lent}/f', at: /opt/f}}]\nenv: {{set: {{MINE: one}}}}\n")
    assert pool.box.run("true").status == 0  # the first of all runs has no skeleton
    pool.start()
    told = []
    for take in (lambda: pool.taken(), lambda: (pool.stay.up(policy=pool.policy.read_text()), pool.stay.client())[1]):
        client = take()
        reply = client.sh(LOOK)
        more = client.sh("echo w > /data/w && rm /data/w; cat /opt/f /data/f; echo x > /opt/f", 2)
        told.append((reply["out"].decode(), reply["err"].decode(), more["out"], more["exit_code"], client.ready))
        pool.stay.down()
    a, b = told
    assert sorted(set(a[0].splitlines()) ^ set(b[0].splitlines())) == []
    assert a[0].splitlines() == b[0].splitlines()
    assert a[1:] == b[1:]
    assert "MINE=one" in a[0] and "secret" not in a[0] and b"lent\nlent\n" == a[2] and a[3] != 0


def test_environment_workspace_and_mounts_are_the_takers(pool):
    other = pool.box.home / "other"
    other.mkdir()
    (other / "here").write_text("other\n")
    pool.write(more=f"env: {{pass: [LATE]}}\n")
    pool.policy.write_text(pool.policy.read_text().replace(f"path: {pool.box.ws}, ", ""))
    pool.start()
    done = pool.cli("up", "t", "--pool", "pool", "--policy", pool.policy, "-m", f"{pool.lent}:/mnt/rw/l:rw", "-m", f"{pool.lent}:/tmp/l",
                    env={"LATE": "late"}, cwd=other)
    assert (done.status, done.err) == (0, ""), done
    assert wait_for(lambda: pool.status()["taken"] == 1, seconds=WAIT)
    client = pool.stay.client()
    told = client.sh("cat here /mnt/rw/l/f /tmp/l/f; echo $LATE; echo new > /mnt/rw/l/new; echo x > /tmp/l/x; touch mine")
    assert told["out"] == b"other\nlent\nlent\nlate\n" and told["exit_code"] == 0
    assert (pool.lent / "new").read_text() == "new\n" and not (pool.lent / "x").exists()
    assert (other / "mine").stat().st_uid == pool.box.uid
    pool.stay.down()
    result = pool.stay.last_result()
    assert [m["host"] for m in result["mounts"]] == [str(other), str(pool.lent), str(pool.lent)]
    assert pool.box.cli("runs", "verify", result["run_id"]).status == 0


def inherited(pool, flags=()):
    """What a monitor and a command behind it have from a shell that limits itself and starts them."""
    done = pool.box.host("sh", "-c", f"umask 027; ulimit -Ss 4096; ulimit -Sf 70000; ulimit -n 900; exec \"$@\"", "sh",
                         "env", f"XDG_RUNTIME_DIR={pool.stay.runtime}", pool.box.caisson, "up", "t", "--policy", str(pool.policy), *flags)
    assert done == "t\n", done
    status, limits = (pathlib.Path(f"/proc/{pool.stay.monitor()}/{name}").read_text() for name in ("status", "limits"))
    told = pool.stay.client().sh("umask; ulimit -Sa; ulimit -Ha")["out"]
    pool.stay.down()
    return [line for line in status.splitlines() if line.startswith("Umask")], limits.splitlines(), told.decode().splitlines()


def test_limits_and_umask_are_the_takers(pool):
    """Not the pool's: neither the monitor's nor those of what runs inside."""
    pool.start(size=2)
    cold, taken = inherited(pool), inherited(pool, flags=("--pool", "pool"))
    assert cold == taken and taken[0] == ["Umask:\t0027"] and any("-f) 35000" in line for line in taken[2]), taken
    assert wait_for(lambda: pool.status()["taken"] == 1, seconds=WAIT), pool.status()


def test_a_hard_limit_of_the_pools_is_no_takers(pool):
    """What the pool's own hard limit took, only root gives back; another is started for others."""
    done = pool.box.host("sh", "-c", "ulimit -f 70000; exec \"$@\"", "sh", "env", f"XDG_RUNTIME_DIR={pool.stay.runtime}", pool.box.caisson,
                         "pool", "start", "--size", "1", "--policy", str(pool.policy))
    assert done == "pool\n"
    pool.ready()
    done = pool.up()
    assert done.status == 0 and ("" if pool.box.is_root else "not from the pool: resource limits") in done.err, done
    assert pool.stay.client().sh("ulimit -Hf")["out"] == b"unlimited\n"


def test_a_goodbye_means_that_nothing_runs(pool):
    """It is said before the record is complete and groups are gone; but not before the last process is."""
    pool.start()
    client = pool.taken()
    client.send("call", 7, __import__("etf").Atom("exec"), {"command": b"for i in 1 2 3; do setsid sleep 96 & done; wait"})
    assert wait_for(lambda: len(sleepers("96")) == 3, seconds=WAIT)
    client.send("stop")
    while client.frame()[0] != "bye":
        pass
    assert sleepers("96") == []
    with pytest.raises(EOFError):
        client.frame()
    result = pool.stay.last_result()
    assert pool.box.cli("runs", "verify", result["run_id"]).status == 0 and result["log_incomplete"] is False
    assert sorted(path.name for path in pool.box.runs.joinpath(result["run_id"]).iterdir()) == ["logs", "manifest.json", "result.json", "state.json"]
    steps = [json.loads(line)["payload"]["step"] for line in (pool.box.runs / result["run_id"] / "logs/events.jsonl").read_text().splitlines()
             if json.loads(line)["event"] == "LockdownStep"]
    assert steps[-1] == "landlock" and steps.count("landlock") == 1 and "caps" in steps


def ahead(pool):
    return sorted(path.name for path in pool.box.runs.glob(".ahead-*"))


def test_a_folder_for_the_record_is_made_ahead(pool):
    pool.start(size=2)
    assert wait_for(lambda: len(ahead(pool)) == 2, seconds=WAIT)
    before = ahead(pool)
    pool.taken()
    assert wait_for(lambda: len(set(before) & set(ahead(pool))) == 1, seconds=WAIT), (before, ahead(pool))
    assert len(list(pool.box.runs.glob("2*/state.json"))) == 1
    pool.stay.down()
    pool.ready(2)
    assert pool.cli("runs", "gc").status == 0 and len(ahead(pool)) == 2, "those that wait hold theirs"
    pid, old = pool.pid(), direct(pool.pid())
    for child in old:
        os.kill(child, signal.SIGKILL)
    assert wait_for(lambda: len(direct(pid)) == 2 and not set(old) & set(direct(pid)), seconds=WAIT)
    time.sleep(0.05)
    pool.ready(2)
    assert pool.cli("runs", "gc").status == 0 and len(ahead(pool)) == 2, "those of dead ones go"
    assert pool.cli("pool", "stop").status == 0 and ahead(pool) == []


def test_who_waits_for_an_empty_pool_gets_one(pool):
    """It is filled again after a pause, but for who asks."""
    pool.start(size=1)
    for i in range(4):
        done = pool.up(name=f"t{i}")
        assert (done.status, done.err) == (0, ""), done
        pool.cli("down", f"t{i}")
    assert wait_for(lambda: pool.status()["taken"] == 4, seconds=WAIT) and pool.status()["missed"] == 0


def test_each_is_used_once(pool):
    pool.start(size=2)
    seen = set()
    for i in range(4):
        client = pool.taken()
        assert client.sh("cat /tmp/was /dev/shm/was 2>/dev/null; echo x | tee /tmp/was > /dev/shm/was; sleep 99 >/dev/null 2>&1 &")["out"] == b""
        seen.add(client.call("stats", 9)[0][2]["sandbox_id"])
        pool.stay.down()
        pool.ready(2)
    assert len(seen) == 4 and pool.status()["missed"] == 0
    assert len(list(pool.box.runs.glob("2*/result.json"))) == 4


@pytest.mark.parametrize("flags, what", [
    (["-l", "memory=99MiB"], "limits"), (["-l", "processes=9"], "limits"), (["-l", "scratch=9MiB"], "limits"),
    (["--cow"], "workspace.mode"), (["--at", "/elsewhere"], "place"), (["-m", "LENT:/new/place"], "place"),
    (["--run-dir", "RUNS"], "run root"), (["--no-record"], "run root"), (["--backend", "process"], "wall")])
def test_another_is_made_where_none_fits(pool, flags, what):
    pool.start()
    flags = [flag.replace("LENT", str(pool.lent)).replace("RUNS", str(pool.box.base / "runs2")) for flag in flags]
    done = pool.up(*flags)
    assert done.status == 0 and done.text == "t\n" and f"not from the pool: {what}" in done.err, done
    client = pool.stay.client()
    assert client.sh("echo up")["out"] == b"up\n"
    if "memory=99MiB" in flags:
        assert client.call("stats", 3)[0][2]["mem_limit"] == 99 << 20
    assert wait_for(lambda: pool.status()["missed"] == 1, seconds=WAIT), pool.status()
    status = pool.ready().status()
    assert (status["taken"], status["missed"]) == (0, 1) and status["why"].startswith(what)


def test_places_of_the_pools_own_flags(pool):
    """A place is there for what the pool was started with, as a file or as a folder."""
    (pool.lent / "g").write_text("other\n")
    pool.start("-m", f"{pool.lent}/f:/opt/f")
    done = pool.up("-m", f"{pool.lent}:/opt/f")
    assert done.status == 0 and "not from the pool: place" in done.err, done
    pool.cli("down", "t")
    pool.ready()
    assert pool.taken("-m", f"{pool.lent}/g:/opt/f").sh("cat /opt/f")["out"] == b"other\n"


def test_a_policy_that_changed_is_not_served(pool):
    pool.start()
    pool.write(mode="ro")
    done = pool.up()
    assert done.status == 0 and "not from the pool: policy file" in done.err
    assert pool.stay.client().sh("touch /workspace/x")["exit_code"] == 1


def test_network_is_not_lent_by_a_pool(pool):
    pool.write(more="network: {mode: loopback}\n")
    pool.start()
    assert pool.taken().sh("python3 -c 'import socket; s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen(); print(1)'")["out"] == b"1\n"
    pool.stay.down()
    pool.ready()
    done = pool.up("-n", "none")
    assert done.status == 0 and "not from the pool: " in done.err
    assert pool.stay.client().sh("cat /proc/net/dev | grep -c lo:")["exit_code"] == 0


def test_what_would_be_refused_is_refused(pool):
    pool.start()
    for flags in (["-w", "/"], ["-m", "/etc:/x"], ["-w", "nowhere"]):
        cold = pool.cli("up", "t", "--policy", pool.policy, "--json", *flags)
        done = pool.up("--json", *flags)
        assert (done.status, done.err) == (cold.status, cold.err) and cold.status == 125, (done, cold)
        error = json.loads(done.text)["error"]
        assert error == json.loads(cold.text)["error"] and error["stage"] == "policy", done
        assert error["code"] == ("eperm" if flags[1] != "nowhere" else "enoent"), done
    assert not pool.stay.path().exists()


def test_a_name_that_is_taken(pool):
    pool.start()
    pool.taken()
    done = pool.up()
    assert done.status == 125 and "a sandbox named t is up" in done.err


def test_the_owner_is_a_stream(pool):
    pool.start()
    with pool.connected() as peer:
        peer.sendall(request("O", ["--policy", str(pool.policy)], [f"{k}={v}" for k, v in (pool.box.env | pool.env).items()], str(pool.box.ws)))
        assert peer.recv(1) == b"y"
        client = Client.__new__(Client)
        client.socket = peer
        client.ready = client.frame()[1]
        assert client.sh("pwd")["out"] == b"/workspace\n"
        monitor = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        assert wait_for(lambda: pool.status()["taken"] == 1, seconds=WAIT) and monitor
        client.send("call", 7, __import__("etf").Atom("exec"), {"command": b"exec sleep 98"})
        assert wait_for(lambda: sleepers("98"), seconds=WAIT)
    assert wait_for(lambda: not sleepers("98"), seconds=WAIT)


def sleepers(seconds):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == b"sleep\0" + seconds.encode() + b"\0":
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, "stop"])
def test_the_end_of_the_pool(pool, how):
    pool.start(size=3)
    client = pool.taken()
    pool.ready(3)
    pid = pool.pid()
    waiting = [child for child in children(pid) if child not in children(pool.stay.monitor()) + [pool.stay.monitor()]]
    assert len(waiting) >= 6, waiting
    if how == "stop":
        assert pool.cli("pool", "stop").status == 0
    else:
        os.kill(pid, how)
    assert wait_for(lambda: not alive(waiting), seconds=WAIT), alive(waiting)
    assert client.sh("echo on")["out"] == b"on\n"
    done = pool.cli("pool", "status")
    assert done.status == 1 and "no pool named pool; `caisson pool start` starts one" in done.err
    done = pool.cli("pool", "stop", "nosuch")
    assert done.status == 1 and done.err == "caisson: there is no pool named nosuch; `caisson pool start` starts one\n"
    assert "not from the pool: there is no pool named pool\n" in pool.up(name="u").err
    pool.cli("down", "u")
    pool.start()
    assert "named nosuch; there are pool\n" in pool.cli("pool", "status", "nosuch").err
    assert client.sh("echo on", 2)["out"] == b"on\n"


def test_a_killed_pool_leaves_a_name_that_gc_takes(pool):
    pool.start(size=1)
    pools = pool.stay.runtime / "caisson" / "pools"
    told = json.loads(pool.cli("gc", "--json").text)["removed"]
    assert not any(row["kind"] == "pool" for row in told) and pool.status()["ready"] == 1, told
    os.kill(pool.pid(), signal.SIGKILL)
    left = sorted(path.name for path in pools.iterdir())
    assert left == ["pool.lock", "pool.sock"]
    (pools / "-odd").write_text("")
    assert wait_for(lambda: "removed the name of the pool pool\n" in pool.cli("gc").text, seconds=WAIT)
    assert sorted(path.name for path in pools.iterdir()) == ["-odd"]


@pytest.mark.parametrize("name", ["\x1b[31mred", "a\nb: 9 of 9 ready", "é" * 30, "xé" * 20, "\u202eesrever"])
def test_a_refusals_text_moves_no_cursor(pool, name):
    folder = pool.box.base / name
    folder.mkdir()
    (folder / "caisson.yaml").write_text("version: 1\ntier: local\n")
    pool.box.give()
    pool.start()
    done = pool.cli("up", "t", "--pool", "pool", cwd=folder)
    assert done.status == 125 and "caisson: " in done.err, done
    assert all(c.isprintable() for line in done.err.splitlines() for c in line), done
    assert wait_for(lambda: pool.status()["missed"] == 1, seconds=WAIT), pool.status()
    text, why = pool.cli("pool", "status").text, pool.status()["why"]
    assert len(text.splitlines()) == 1 and all(c.isprintable() for c in text[:-1]) and why in text, (text, why)
    assert len(why) >= 30 and why.startswith(done.err.removeprefix("caisson: ").partition("\\")[0][:30]), (done, why)


def test_garbage_is_hung_up_on(pool):
    pool.start(size=2)
    for data in (b"", b"x", b"x" * 100, request("O", magic=b"csnpool0"), request("X"), request("O", size=3 << 20),
                 request("O", ["a"])[:-3], request("O", size=0), request("O", ["a"], count=(1, 4000)), request("O", count=(5000, 0)),
                 request("O", count=(2, 0)), request("O", cwd="relative"), request("O", umask=0o1000)):
        with pool.connected() as peer:
            with contextlib.suppress(ConnectionError):
                peer.sendall(data)
                peer.shutdown(socket.SHUT_WR)
                assert peer.recv(100) == b"", data[:30]
    with pool.connected() as slow:  # holds up one of them, for two seconds
        slow.sendall(b"csn")
        pool.taken()
    assert pool.status()["missed"] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="root: to become somebody")
def test_another_group_is_hung_up_on(pool):
    """Who has other groups may read other files; the pool would lend its own."""
    pool.start()
    words = request("O", ["--policy", str(pool.policy)], [f"{k}={v}" for k, v in (pool.box.env | pool.env).items()], str(pool.box.ws))
    for other in ({"gid": 4321}, {"groups": [4321]}):
        with pool.connected(**other) as peer:
            with contextlib.suppress(ConnectionError):
                peer.sendall(words)
                assert peer.recv(1) == b""
    with pool.connected() as peer:
        peer.sendall(words)
        assert peer.recv(1) == b"y"


def test_one_that_dies_is_replaced(pool):
    pool.start(size=2)
    pid = pool.pid()
    for _ in range(2):
        monitor = direct(pid)[0]
        os.kill(direct(monitor)[-1], signal.SIGKILL)
        assert wait_for(lambda: monitor not in direct(pid) and len(direct(pid)) == 2, seconds=WAIT)
        time.sleep(0.05)
        pool.ready(2)
    pool.taken()


def groups_of(pid):
    """Folders of its control groups that are ours."""
    found = []
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        found += [str(folder) for folder in pathlib.Path("/sys/fs/cgroup").glob(f"*{path}") if "caisson" in path]
    return [path for path in found if os.path.isdir(path)]


def test_a_killed_one_leaves_nothing(pool):
    """Its monitor is killed while it waits: wall and groups go, another is made."""
    pool.start()
    monitor = direct(pool.pid())[0]
    below = children(monitor)
    groups = [path for child in below for path in groups_of(child)]
    os.kill(monitor, signal.SIGKILL)
    assert wait_for(lambda: not alive([monitor, *below]), seconds=WAIT)
    assert wait_for(lambda: not [path for path in groups if os.path.isdir(path)], seconds=WAIT), groups
    pool.ready()
    pool.taken()


OPEN = """
import ctypes, os, sys
P, B, U = ctypes.c_char_p, ctypes.c_bool, ctypes.c_uint32
names = "program policy tier backend workspace at network allow mounts limits env tags run_dir".split()
class Options(ctypes.Structure):
    _fields_ = [(name, P) for name in names] + [("no_record", B), ("start", U), ("call", U), ("pool", P), ("reserved", ctypes.c_void_p * 7)]
class Failure(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("stage", ctypes.c_char * 32), ("text", ctypes.c_char * 476)]
lib = ctypes.CDLL(sys.argv[1])
lib.csn_open.restype = ctypes.c_void_p
lib.csn_open.argtypes = [ctypes.POINTER(Options), ctypes.POINTER(Failure)]
lib.csn_close.argtypes = [ctypes.c_void_p]
err = Failure()
options = Options(program=sys.argv[2].encode(), policy=sys.argv[3].encode(), pool=sys.argv[4].encode(), network=sys.argv[5].encode() or None)
box = lib.csn_open(ctypes.byref(options), ctypes.byref(err))
print(bool(box), err.code, err.text.decode())
lib.csn_close(box)
"""


def test_the_library(pool):
    """A pool that has none, or is none, is no failure; a refusal is."""
    library = pathlib.Path(pool.box.caisson).resolve().parents[1] / "client" / "libcaisson.so"
    if not library.exists():
        pytest.skip("libcaisson.so: not built here")
    script = pool.box.base / "open.py"
    script.write_text(OPEN)
    pool.start()

    def opened(name="pool", network=""):
        pool.box.env = pool.box.env | pool.env
        return pool.box.host(PYTHON, str(script), str(library), str(pool.box.caisson), str(pool.policy), name, network)

    assert opened() == "True 0 \n" and wait_for(lambda: pool.status()["taken"] == 1, seconds=WAIT)
    pool.ready()
    assert opened(name="none") == "True 0 \n" and opened(network="loopback").startswith("False ")
    assert wait_for(lambda: pool.status()["missed"] == 1, seconds=WAIT), pool.status()
    assert len(list(pool.box.runs.glob("2*/result.json"))) == 2


def direct(pid):
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]


def test_nobody_asks(pool):
    pool.write(more="limits: {idle: 3s}\n")
    pool.start()
    pid = pool.pid()
    assert wait_for(lambda: not alive([pid]), seconds=WAIT)
    assert not list((pool.stay.runtime / "caisson" / "pools").iterdir())


def test_walls_that_cannot_wait(pool):
    for policy, flags in ((LANDLOCK, ["--backend", "landlock"]), (LOCAL, [])):
        pool.policy.write_text(policy)
        done = pool.cli("pool", "start", "--policy", pool.policy, *flags)
        assert done.status == 125 and "only the process wall can" in done.err, done
    pool.write(mode="cow")
    done = pool.cli("pool", "start", "--policy", pool.policy)
    assert done.status == 125 and "copy-on-write" in done.err
    assert not list((pool.stay.runtime / "caisson" / "pools").iterdir())


def test_the_command_line(pool):
    pool.start()
    done = pool.cli("pool", "start", "--policy", pool.policy)
    assert done.status == 125 and "caisson pool stop pool" in done.err
    assert pool.cli("pool", "start", "--size", "17").status == 125
    assert pool.cli("pool", "status").text == "pool: 1 of 1 ready, 0 taken, 0 that did not fit\n"
    assert pool.cli("pool", "stop").status == 0
    assert pool.cli("pool", "stop").status == 1
    assert pool.cli("ps", "-q").text == ""


def test_more_flags_than_a_request_holds(pool):
    """None is dropped on the way: it could be the limit."""
    pool.start()
    done = pool.up(*(word for i in range(2100) for word in ("--env", f"A{i}=1")))
    assert done.status == 125 and "not from the pool: there are too many flags" in done.err, done
    assert "more than 256 times --env" in done.err, done
    assert pool.status()["taken"] == 0
