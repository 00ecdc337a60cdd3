"""`caisson run` behind crun, runc and runsc: what a program sees, what it may, and how it ends."""
import json
import os
import shutil
import subprocess

import pytest
from runtimes import PYTHON

NOTHING = "0000000000000000"


def test_what_is_inside(box):
    box.file("f", "text\n")
    run = box.sh("""
        id -u; id -g; pwd; cat f; hostname; nproc; echo $HOME; ls -d $HOME; stat -c %a /tmp /dev/shm
        grep -E '^(Cap...|NoNewPrivs|Seccomp):' /proc/self/status
        touch /here /usr/here here 2>/dev/null; ls /here /usr/here here 2>/dev/null
        ls -d /root /home 2>/dev/null
        tr '\\0' ' ' < /proc/1/cmdline""", flags=["-l", "cpus=1"])
    lines = run.text.splitlines()
    assert run.status == 0 and lines[:5] == ["1000", "1000", "/workspace", "text", "caisson"], run
    assert lines[5] in ("1", "2") and lines[6:10] == ["/tmp/home", "/tmp/home", "1777", "1777"], run
    assert lines[10:15] == [f"Cap{name}:\t{NOTHING}" for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")], run
    assert lines[15:17] == ["NoNewPrivs:\t1", "Seccomp:\t2"] and "caisson-agent --stdio" in lines[17] and len(lines) == 18, run
    assert run.result["backend"] == box.wall and run.result["runtime"] == f"balanced/{box.wall}", run
    assert not list(box.bundles()), "the bundle goes with the run"


def test_nobody_is_root_behind_it(box):
    """Each process but the runtime's own command: agent, command, runsc's kernel (nobody) and file server."""
    token = f"csn-oci-{os.urandom(6).hex()}"
    process = box.start(PYTHON, "-c", "import time; print('up', flush=True); time.sleep(20)", token)
    assert process.stdout.read(3) == b"up\n"
    tree = descendants(process.pid)
    process.terminate()
    process.communicate(timeout=30)
    outside = {"runc", "runsc", "crun", "caisson", "caisson-cleaner"}
    inside = [(name, uid) for name, uid, root in tree if not (name in outside and uid == 0)]
    assert len(inside) >= 2 and all(uid >= 1879048192 or (uid, box.wall) == (65534, "gvisor") for _, uid in inside), tree


def descendants(pid):
    """(name, uid, pid) of each process beneath one."""
    found = []
    text = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,uid=,comm="], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [line.split(None, 3) for line in text.splitlines()]
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for child, above, uid, name in rows:
            if int(above) == parent:
                found.append((name.strip(), int(uid), int(child)))
                waiting.append(int(child))
    return found


def test_a_writable_workspace_is_the_callers(box):
    box.file(".env", "secret\n")
    box.file(".git/config", "[core]\n")
    box.file(".git/hooks/sample", "")
    run = box.sh("""
        mkdir d && echo new > d/f && mv d e && ln -s f e/l && chmod 600 e/f && rm -f e/l
        cat .env; echo x > .git/config; echo x > .git/hooks/new; mv .git away; rm .env; ls -A .git/hooks""", flags=["--rw"])
    assert (box.ws / "e/f").read_text() == "new\n" and (box.ws / "e/f").stat().st_uid == 0, run
    assert run.text == "sample\n" and "secret" not in run.text + run.err, run
    assert (box.ws / ".env").read_text() == "secret\n" and (box.ws / ".git/config").read_text() == "[core]\n"
    assert run.result["hidden"] == [".env"] and run.result["protect_not_enforced"] == [], run
    assert not (box.ws / ".envrc").exists(), "placeholders are gone"


def test_mounts_are_the_plans_and_no_more(box):
    data, inner = box.base / "data", box.ws / "sub"
    for folder in (data, inner):
        folder.mkdir()
    (data / "f").write_text("lent\n")
    run = box.sh("cat /data/f sub/f; touch /data/x sub/x; ls /workspace /data", flags=["-m", f"{data}:/data", "-m", f"{data}:/workspace/sub:rw"])
    assert run.text.startswith("lent\nlent\n") and (data / "x").exists() and not (data / "y").exists(), run
    run = box.sh("true", flags=["-m", f"{data}:/workspace/missing"])
    assert run.status == 125 and "there is no /workspace/missing inside to mount on" in run.err, run
    assert not (box.ws / "missing").exists(), "no mount point is made on the host"


def test_what_a_mount_hides_stays_hidden(box):
    """A mount in the workspace is shown as it is; crun, which would show what lies beneath, is refused."""
    covered = box.ws / "covered"
    covered.mkdir()
    (covered / "beneath").write_text("hidden by a mount\n")
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(covered)], check=True)
    try:
        run = box.sh("ls -A covered")
    finally:
        subprocess.run(["umount", str(covered)], check=True)
    assert "beneath" not in run.text, run
    assert (run.status == 125 and "install runc" in run.err) if box.runtime == "crun" else run.status == 0, run


def test_ends_have_their_reason(box):
    assert (box.sh("exit 7").status, box.sh("kill -9 $$").status) == (7, 137)
    run = box.run("sleep", "60", flags=["--timeout", "1s"])
    assert (run.status, run.reason, run.clock) == (124, "timeout", "command"), run
    run = box.run(PYTHON, "-c", "x = b'1' * (300 << 20)", flags=["--memory", "96MiB"])
    assert run.reason == "memory" and "MemoryLimitViolation" in run.events, run
    run = box.run("nothing-here")
    assert (run.status, run.reason) == (127, "start_failed"), run


def test_no_network(box):
    run = box.python("""
        import socket
        for address in (("192.0.2.1", 80), ("127.0.0.1", 22)):
            try:
                socket.create_connection(address, 2)
                print("connected")
            except OSError as error:
                print("refused")""")
    assert run.text == "refused\nrefused\n", run
    assert {"NetworkAccessViolation", "SyscallViolation"} <= set(run.result["not_observed"]), run


def test_scratch_has_a_size(box):
    run = box.sh("head -c 40M /dev/zero > /tmp/f; stat -c %s /tmp/f", flags=["-l", "scratch=16MiB"])
    assert int(run.text) <= 16 << 20 and "space" in run.err, run


def test_a_fork_bomb_meets_the_limit(boxes):
    box = boxes("runc")
    run = box.python("""
        import os, time
        made = 0
        try:
            while made < 400:
                if os.fork() == 0:
                    time.sleep(5)
                    os._exit(0)
                made += 1
        except OSError as error:
            print("refused", made < 100)""", flags=["-l", "processes=60"])
    assert run.text == "refused True\n" and "ProcessLimitViolation" in run.events, run


def test_the_tier_takes_gvisor(boxes):
    box = boxes("gvisor")
    box.wall = "any"
    run = box.sh("uname -r", flags=["--tier", "assisted"])
    assert "gvisor" in run.text and run.result["runtime"] == "assisted/gvisor", run
    means = run.result["limits"]["means"]
    assert {means["memory"], means["processes"], means["cpus"]} == {"cgroup"}, run


def test_a_node_tool_behind_gvisor(boxes):
    """A tool of Node.js as it is: modules, files, a child process, a worker, timers."""
    if not shutil.which("node"):
        pytest.fail("node is missing: tools/setup ci")
    box = boxes("gvisor")
    box.file("package.json", '{"name": "tool", "type": "module"}\n')
    box.file("lib/add.js", "export const add = (a, b) => a + b;\n")
    box.file("tool.js", """
        import fs from "node:fs/promises";
        import { execFileSync } from "node:child_process";
        import { Worker } from "node:worker_threads";
        import { add } from "./lib/add.js";
        await fs.writeFile("/tmp/out.json", JSON.stringify({ sum: add(1, 2) }));
        const told = JSON.parse(await fs.readFile("/tmp/out.json", "utf8"));
        told.child = execFileSync("uname", ["-r"], { encoding: "utf8" }).trim();
        told.worker = await new Promise((resolve, reject) => {
            const worker = new Worker("require('worker_threads').parentPort.postMessage(6 * 7)", { eval: true });
            worker.on("message", resolve).on("error", reject);
        });
        try { await fs.writeFile("here", ""); } catch (error) { told.write = error.code; }
        console.log(JSON.stringify(told));
        """)
    run = box.run("node", "tool.js", timeout=60)
    told = json.loads(run.text)
    assert told["sum"] == 3 and "gvisor" in told["child"] and told["worker"] == 42 and told["write"] == "EROFS", run
    assert run.result["usage"]["wall_ms"] > 0 and run.status == 0, run


def test_an_ordinary_user_is_told(boxes):
    box = boxes("runc")
    box.uid = 54321
    run = box.run("true")
    assert run.status == 125 and "only root starts it here" in run.err and "process wall" in run.err, run


def test_a_name_that_json_cannot_say(box):
    """It is refused, by a name fit to print: a mount that is left out would show what it was to hide."""
    folder = os.fsencode(box.ws) + b"/bad\xff"
    os.mkdir(folder)
    with open(folder + b"/.env", "w") as file:
        file.write("the secret\n")
    run = box.sh("cat bad*/.env")
    assert run.status == 125 and "the secret" not in run.text and "bad\\xff/.env" in run.err, run
    assert "Rename it" in run.err and not box.bundles(), run
