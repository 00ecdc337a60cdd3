"""The walls docker and podman: what is inside, what is held, and that a start costs the engine one start."""
import json
import os
import signal
import subprocess
import time

from run_fixtures import wait_for

LOOK = """
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    char text[64] = "";
    (void)!read(open("/mark", O_RDONLY), text, sizeof text - 1);
    printf("%s%s\\n", text, access("/usr", F_OK) ? "no usr" : "usr");
    puts(open("/volume/x", O_CREAT | O_WRONLY, 0600) < 0 ? "sealed" : "open");
}
"""
LINE = """run --rm --interactive --pull=never --log-driver=none --sig-proxy=false --no-healthcheck --name=caisson-ID
--label=caisson.sandbox=ID --label=caisson.keep=KEEP --label=caisson.record=RECORD/ID --read-only --cap-drop=ALL
--security-opt=no-new-privileges --ipc=private --cgroupns=private --hostname=caisson --workdir=/ --network=none
--security-opt=seccomp=KEEP/seccomp.json --user=UID:UID --pids-limit=66 --memory=134217728 --memory-swap=134217728 --cpus=1.500
--ulimit=core=1:1 --ulimit=nofile=300:300 --shm-size=4194304 --tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777,size=29360128
--mount=type=bind,source=KEEP/hosts,target=/etc/hosts,readonly,bind-propagation=rprivate
--mount=type=bind,source=KEEP/hostname,target=/etc/hostname,readonly,bind-propagation=rprivate
--mount=type=bind,source=KEEP/resolv.conf,target=/etc/resolv.conf,readonly,bind-propagation=rprivate SYSTEM
--mount=type=bind,source=WS,target=/workspace,bind-propagation=rprivate
--mount=type=bind,source=WS/data,target=/data,readonly,bind-propagation=rprivate
--mount=type=bind,source=WS/.git,target=/workspace/.git,bind-propagation=rprivate
--mount=type=bind,source=WS/.git/hooks,target=/workspace/.git/hooks,readonly,bind-propagation=rprivate
--mount=type=bind,source=KEEP/hidden-file,target=/workspace/.env,readonly,bind-propagation=rprivate
--mount=type=bind,source=AGENT/caisson-agent,target=/run/caisson/caisson-agent,readonly,bind-propagation=rprivate
--entrypoint=/run/caisson/caisson-agent IMAGE --stdio /tmp/home""".split()


def test_a_run(engine):
    (engine.box.ws / "file").write_text("here\n")
    run = engine.sh("cat file; echo broken >&2; grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status; touch x; exit 3")
    assert run.status == 3 and run.err.startswith("broken\n"), run
    assert run.text.splitlines() == ["here", *(f"Cap{name}:\t0000000000000000" for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")),
                                     "NoNewPrivs:\t1", "Seccomp:\t2"]
    result = run.result
    assert result["runtime"] == f"balanced/{engine.name}" and result["backend"] == engine.name
    container = result["container"]
    assert container["rootless"] is False and container["image"].startswith("localhost/caisson-root:") and container["digest"]
    assert {"memory", "processes", "cpu", "scratch", "identity", "net-none"} <= set(result["enforced"])
    assert result["limits"]["means"]["memory"] == "engine" and "FilesystemWriteViolation" in result["not_observed"]
    assert engine.containers() == []


def test_what_is_there(engine):
    """Names of the root, who one is, and nothing of the host's but what is lent."""
    (engine.box.base / "secret").write_text("x")
    run = engine.sh(f"""
        ls -d /root /home /srv /opt /boot /workspace/../{engine.box.base}/secret /var/run/docker.sock /run/docker.sock 2>/dev/null
        find / -xdev -type s 2>/dev/null; ls /run; ls /dev; id -un; stat -c %a /tmp /tmp/home; whoami; hostname; cat /etc/hosts
        cat /proc/1/environ /proc/1/mem 2>/dev/null; echo a > /tmp/x && echo a > /dev/shm/x && echo a > $HOME/x || echo no scratch
        echo x > /etc/passwd; echo x > /usr/x; echo x > /run/x; echo x > /x; echo x > /sys/x; echo x > /proc/sysrq-trigger""", more="")
    lines = run.text.splitlines()
    assert not any(line.startswith("/") for line in lines), run
    assert lines.count("sandbox") == 2 and lines.count("caisson") == 2 and "no scratch" not in lines, run
    assert "127.0.0.1 localhost caisson" in lines and "docker.sock" not in run.text
    kernel = engine.sh("cat /proc/self/uid_map; id -u").text.split()
    assert kernel[0] == kernel[1] == "0" and kernel[3] != "0", "no map, and an id that is not root's"


def test_names_in_the_workspace(engine):
    ws = engine.box.ws
    (ws / ".git" / "hooks").mkdir(parents=True)
    (ws / ".env").write_text("KEY=1")
    (ws / "deep" / "down").mkdir(parents=True)
    (ws / "deep" / "down" / ".env").write_text("KEY=2")
    for path in [ws, *ws.rglob("*")]:
        path.chmod(0o777 if path.is_dir() else 0o666)
    run = engine.sh("""
        cat .env deep/down/.env; echo x > .env; rm -f .env; mv .env other
        echo x > .git/hooks/pre-commit; mv .git .git2; mv .git/hooks .git/h2; rmdir .git/hooks; mv deep deeper; mv deep/down deep/up
        echo mine > made; ls -a .git""", "workspace: {mode: rw}\n")
    assert "KEY" not in run.text, run
    assert (ws / ".env").read_text() == "KEY=1" and (ws / "made").read_text() == "mine\n"
    assert sorted(path.name for path in ws.iterdir()) == [".env", ".git", "deep", "made"] and (ws / "deep" / "down").is_dir()
    assert list((ws / ".git").iterdir()) == [ws / ".git" / "hooks"] and not list((ws / ".git" / "hooks").iterdir())


def test_the_whole_line(docker):
    """Nothing is asked of the engine that does not stand here."""
    ws = docker.box.ws
    (ws / "data").mkdir()
    (ws / ".git" / "hooks").mkdir(parents=True)
    (ws / ".env").write_text("KEY=1")
    docker.box.give()
    more = ("workspace: {mode: rw, path: %s, protect: [.git/hooks]}\nmounts: [{host: %s/data, at: /data}]\nscratch: {size: 32MiB}\n"
            "toolchains: none\n" % (ws, ws))
    policy = docker.policy(more).replace("limits: {", "limits: {memory: 128MiB, processes: 64, cpus: 1.5, open_files: 300, ")
    process = docker.box.start("sleep", "60", policy=policy)
    found = wait_for(lambda: [words_of(pid) for pid in clients_of(process.pid, docker.name)], 60)
    process.send_signal(signal.SIGTERM)
    err = process.communicate(timeout=30)[1]
    assert found, err
    line = found[0][1:]
    result = json.loads(docker.box.result.read_text())
    system = [word for word in line if ",readonly," in word and "source=/usr," in word or "source=/etc/" in word
              or any(f"source=/{name}," in word for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"))]
    agent = next(word for word in line if "caisson-agent,target" in word).split("source=")[1].split("/caisson-agent,")[0]
    names = {"RECORD": str(docker.box.runs), "UID": str(docker.box.uid), "ID": result["run_id"], "KEEP": f"{docker.box.base}/rt/caisson/engines", "WS": str(ws),
             "AGENT": agent, "IMAGE": result["container"]["digest"]}
    wanted = []
    for word in LINE:
        for name, text in names.items():
            word = word.replace(name, text)
        wanted += system if word == "SYSTEM" else [word]
    assert line == wanted


def children_of(pid):
    return [int(child) for task in os.listdir(f"/proc/{pid}/task")
            for child in open(f"/proc/{pid}/task/{task}/children").read().split()]


def clients_of(pid, name):
    return [child for child in children_of(pid) if "run" in words_of(child) and words_of(child)[0].endswith("/" + name)]


def words_of(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read().decode().split("\0")[:-1]
    except OSError:
        return []


def test_one_that_stays(engine):
    """Every verb works, and a call is not an engine's exec."""
    ws = engine.box.ws
    (ws / "a.txt").write_text("one two\n")
    ws.chmod(0o777)
    (ws / "a.txt").chmod(0o666)
    with engine.up(more="workspace: {mode: rw}\n") as name:
        assert engine.cli("exec", name, "--", "sh", "-c", "echo hi; exit 4").status == 4
        assert engine.cli("read", name, "a.txt").text == "one two\n"
        assert engine.cli("edit", name, "a.txt", "--old", "two", "--new", "three").status == 0
        assert engine.cli("write", name, "b.txt", input=b"new\n").status == 0
        assert engine.cli("glob", name, "*.txt").text.split() == ["a.txt", "b.txt"]
        assert engine.cli("grep", name, "three").text.strip() == "a.txt:1:one three"
        assert engine.cli("exec", name, "--", "sh", "-c", "tail -f /dev/null & echo $!").status == 0
        times = []
        for _ in range(20):
            start = time.monotonic()
            assert engine.cli("exec", name, "--", "true").status == 0
            times.append(time.monotonic() - start)
        own = []
        for _ in range(3):
            start = time.monotonic()
            engine.host("exec", engine.containers()[0], "true")
            own.append(time.monotonic() - start)
        assert sorted(times)[10] < sorted(own)[1], (times, own)
        assert len(engine.containers()) == 1
    assert wait_for(lambda: engine.containers() == [], 30)
    assert (ws / "a.txt").read_text() == "one three\n"


def test_limits_are_held(engine):
    policy = engine.policy("scratch: {size: 16MiB}\n").replace("limits: {", "limits: {memory: 64MiB, processes: 30, ")
    run = engine.box.sh("""
        python3 -c "b = bytearray(200 << 20)" 2>/dev/null; echo memory $?
        for i in $(seq 60); do sleep 30 & done 2>/dev/null; jobs -p | wc -l
        """, policy=policy, timeout=120)
    words = run.text.split()
    assert words[:2] == ["memory", "137"] and (len(words) < 3 or int(words[2]) < 40), run
    run = engine.box.sh("head -c 64M /dev/zero > /tmp/x; stat -c %s /tmp/x", policy=policy, timeout=120)
    assert int(run.text) <= 16 << 20, run


def test_a_start_that_takes_too_long_is_said(docker):
    """To the quiet, too: nothing ran."""
    run = docker.box.run("true", flags=["-q"], policy=docker.policy().replace("startup: 60s", "startup: 1ms"), timeout=120)
    assert (run.status, run.reason, run.clock) == (124, "timeout", "startup"), run
    assert "not started within 1 ms (limits.startup)" in run.err, run
    assert wait_for(lambda: docker.containers() == [], 60)


def test_what_is_killed_leaves_nothing(engine):
    """The monitor, then the client: the agent obeys the end of its stream."""
    for victim in ("monitor", "client"):
        process = engine.box.start("sleep", "600", policy=engine.policy())
        assert wait_for(lambda: len(engine.containers()) == 1, 60)
        pid = process.pid
        if victim == "client":
            pid = clients_of(process.pid, engine.name)[0]
        os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=30)
        assert wait_for(lambda: engine.containers() == [], 60), victim
    assert json.loads(engine.box.result.read_text())["termination"]["reason"] in ("lost", "start_failed")


def test_gc_removes_what_nobody_owns(engine):
    engine.sh("true")
    image = engine.host("images", "--quiet", "--filter", "label=caisson.image").stdout.split()[0]
    keep = f"{engine.box.base}/rt/caisson/engines"
    made = engine.host("create", "--label", f"caisson.keep={keep}", "--label", "caisson.sandbox=20260101-000000-left", "--network=none",
                       "--log-driver=none", *(["--runtime=runc"] if engine.name == "docker" else []), image, "/bin/true")
    assert made.returncode == 0, made
    with engine.up() as name:
        done = engine.cli("gc")
        assert done.status == 0 and "20260101-000000-left" in done.text, done
        assert engine.cli("exec", name, "--", "true").status == 0, "one that lives is let alone"
        assert len(engine.containers()) == 1


def test_an_image_of_the_policys(engine):
    """Its root is the image's, volumes are no way to write, and nothing is pulled."""
    source = engine.box.base / "root"
    (source / "bin").mkdir(parents=True)
    (source / "mark").write_text("from the image\n")
    subprocess.run(["cc", "-static", "-x", "c", "-o", source / "bin" / "look", "-"], input=LOOK, text=True, check=True)
    subprocess.run(f"tar -C {source} -c . | {engine.name} import --change 'VOLUME /volume' - caisson-test:1", shell=True, check=True,
                   env=os.environ | engine.env, capture_output=True)
    run = engine.box.run("/bin/look", policy=engine.policy("container: {image: \"caisson-test:1\"}\n"), timeout=120)
    assert run.text.splitlines() == ["from the image", "no usr", "sealed"], run
    assert run.result["container"]["image"] == "caisson-test:1" and run.result["no_effect"] == []
    missing = engine.sh("true", "container: {image: \"caisson-none:1\"}\n")
    assert missing.status == 125 and f"{engine.name} pull caisson-none:1" in missing.err, missing


def test_an_image_that_somebody_removed(one_engine):
    """One start may meet it; the next makes it again."""
    engine = one_engine
    assert engine.sh("true").status == 0
    for image in engine.host("images", "--quiet", "--filter", "label=caisson.image").stdout.split():
        engine.host("rmi", "--force", image)
    engine.sh("true")
    assert engine.sh("true").status == 0


def test_what_is_refused(engine):
    run = engine.sh("true", "container: {rootless: required}\n")
    assert run.status == 125 and "container.rootless: required" in run.err, run
    for name, address in (("DOCKER_HOST", "tcp://127.0.0.1:1"), ("CONTAINER_HOST", "ssh://far/run")):
        if (name == "DOCKER_HOST") == (engine.name == "docker"):
            run = engine.sh("true", env={name: address})
            assert run.status == 125 and "cannot bind-mount the agent" in run.err, run
    run = engine.sh("true", "workspace: {mode: cow}\n")
    assert run.status == 125 and "fs-cow" in run.err, run
    engine.box.file("a,b/file", "x")
    run = engine.sh("true", f"mounts: [{{host: {engine.box.ws}/a,b, at: /data}}]\n".replace("a,b,", "'a,b',").replace(
        f"{engine.box.ws}/'a,b'", f"'{engine.box.ws}/a,b'"))
    assert run.status == 125 and "comma" in run.err, run
    hidden = os.fsencode(engine.box.ws) + b"/bad\xff"
    os.mkdir(hidden)
    with open(hidden + b"/.env", "w") as file:
        file.write("the secret\n")
    run = engine.sh("cat bad*/.env", "workspace: {mode: rw}\n")
    assert run.status == 125 and "the secret" not in run.text and "bad\\xff" in run.err and "not UTF-8" in run.err, run
    assert os.listdir(engine.box.ws) and len(os.listdir(hidden)) == 1, "nothing was made beside it"
