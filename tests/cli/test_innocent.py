"""Programs that do nothing wrong: status 0, and no violation but the expected noise."""
import json
import os
import shutil
import subprocess

import pytest

from run_fixtures import *

C_FILES = {
    "Makefile": "CFLAGS = -O0\nall: prog\nprog: main.o util.o\n\t$(CC) -o $@ $^\nclean:\n\trm -f *.o prog\n.PHONY: all clean\n",
    "main.c": '#include <stdio.h>\nint util(void);\nint main(void) { printf("%d\\n", util()); return 0; }\n',
    "util.c": "int util(void) { return 42; }\n",
    "x.cc": '#include <iostream>\n#include <vector>\nint main() { std::vector<int> v{1, 2}; std::cout << v.size() << "\\n"; }\n',
}
GO = {"go.mod": "module tiny\n\ngo 1.18\n", "main.go": 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("go ran") }\n'}
CARGO = {"Cargo.toml": '[package]\nname = "tiny"\nversion = "0.1.0"\nedition = "2018"\n',
         "src/main.rs": 'fn main() { println!("rust ran"); }\n'}
PYTEST = {"test_it.py": "def test_one(tmp_path):\n    (tmp_path / 'x').write_text('x')\n    assert 1 + 1 == 2\n"}

# Name: (mode, files, text for sh, what the output must hold, program that must be there).
TABLE = {
    "git status": ("ro", {}, "git status --short; git log --oneline; git diff", "first", "git"),
    "git blame": ("ro", {}, "git blame a.txt; git show --stat; git grep -n one; git ls-files; git describe --always", "one", "git"),
    "git status rw": ("rw", {}, "git status --short; git log -1 --format=%s", "first", "git"),
    "git commit": ("rw", {}, "echo x >>a.txt; git -c user.name=a -c user.email=b commit -qam second; git log -1 --format=%s", "second", "git"),
    "git branch": ("rw", {}, "git switch -qc t; git stash list; git tag v1; git merge -q main; git rev-parse --abbrev-ref HEAD", "t", "git"),
    "git clone": ("ro", {}, "git clone -q . /tmp/copy && git -C /tmp/copy log --oneline", "first", "git"),
    "git init": ("ro", {}, "cd /tmp && git init -q n && cd n && touch f && git add f && git -c user.name=a -c user.email=b commit -qm m && git log --format=%s", "m", "git"),
    "make": ("rw", C_FILES, "make -s && ./prog && make -s clean", "42", "make"),
    "make -j": ("rw", C_FILES, "make -sj4 && ./prog", "42", "make"),
    "make nothing to do": ("ro", C_FILES, "cp -r . /tmp/b && make -sC /tmp/b && /tmp/b/prog", "42", "make"),
    "gcc": ("ro", C_FILES, "gcc -O2 -o /tmp/p main.c util.c && /tmp/p", "42", "gcc"),
    "gcc -pipe": ("rw", C_FILES, "gcc -pipe -g -flto -o p main.c util.c && ./p", "42", "gcc"),
    "g++": ("ro", C_FILES, "g++ -o /tmp/p x.cc && /tmp/p", "2", "g++"),
    "node": ("ro", {}, "node -e 'console.log(6*7); require(\"fs\").writeFileSync(\"/tmp/x\", \"y\")'", "42", "node"),
    "node child": ("ro", {}, "node -e 'console.log(require(\"child_process\").execSync(\"echo child\").toString())'", "child", "node"),
    "node workers": ("ro", {}, "node -e 'const {Worker} = require(\"worker_threads\"); new Worker(\"console.log(7)\", {eval: true})'", "7", "node"),
    "npm --version": ("ro", {}, "npm --version", ".", "npm"),
    "npm run": ("ro", {"package.json": '{"name": "x", "version": "1.0.0", "scripts": {"hi": "echo npm ran"}}'}, "npm run -s hi", "npm ran", "npm"),
    "python": ("ro", {"m.py": "X = 1\n"}, "python3 -c 'import m, ssl, json, ctypes, decimal; print(m.X)'", "1", "python3"),
    "python rw": ("rw", {"m.py": "X = 1\n"}, "python3 -c 'import m; print(m.X)'", "1", "python3"),
    "venv": ("ro", {}, "python3 -m venv --without-pip /tmp/v && /tmp/v/bin/python -c 'import sys; print(sys.prefix)'", "/tmp/v", "python3"),
    "multiprocessing": ("ro", {"p.py": "from multiprocessing import Pool, Queue, Process\ndef f(x):\n    return x * x\nif __name__ == '__main__':\n    with Pool(2) as p:\n        print(sum(p.map(f, range(10))))\n"}, "python3 p.py", "285", "python3"),
    "asyncio": ("ro", {}, "python3 -c 'import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec(\"echo\", \"sub\", stdout=-1)\n    print(await p.stdout.read())\nasyncio.run(f())'", "sub", "python3"),
    "subprocess": ("ro", {}, "python3 -c 'import subprocess; print(subprocess.check_output([\"id\", \"-u\"]))'", "1000", "python3"),
    "sqlite3 module": ("ro", {}, "python3 -c 'import sqlite3; c = sqlite3.connect(\"/tmp/d\"); c.execute(\"create table t(x)\"); c.commit(); print(\"ok\")'", "ok", "python3"),
    "sqlite3 rw": ("rw", {}, "python3 -c 'import sqlite3; c = sqlite3.connect(\"d\"); c.execute(\"pragma journal_mode=wal\"); c.execute(\"create table t(x)\"); c.commit(); print(\"ok\")'", "ok", "python3"),
    "threads": ("ro", {}, "python3 -c 'import threading\nt = [threading.Thread(target=int) for _ in range(20)]\n[x.start() for x in t]\n[x.join() for x in t]\nprint(\"ok\")'", "ok", "python3"),
    "tempfile": ("ro", {}, "python3 -c 'import tempfile, os\nwith tempfile.TemporaryDirectory() as d:\n    open(d + \"/x\", \"w\").close()\nprint(os.path.expanduser(\"~\"))'", "/tmp/home", "python3"),
    "pip": ("ro", {}, "python3 -m pip --version", "pip", "pip3"),
    "pytest": ("ro", PYTEST, "python3 -m pytest -q", "1 passed", "pytest-3"),
    "pytest rw": ("rw", PYTEST, "python3 -m pytest -q", "1 passed", "pytest-3"),
    "perl": ("ro", {}, "perl -MPOSIX -MFile::Temp -e 'print 6*7, \"\\n\"; File::Temp->new'", "42", "perl"),
    "bash": ("ro", {}, "bash -c 'set -o pipefail; seq 1 1000 | sort -rn | head -1 | tee /tmp/x; cat <(echo sub) <<<here; : >/dev/null; coproc cat; kill $!'", "sub", "bash"),
    "login shell": ("ro", {}, "bash -lc 'echo login'", "login", "bash"),
    "here document": ("ro", {}, "cat <<E\nhere\nE", "here", "sh"),
    "tar": ("ro", {"d/f": "x"}, "tar cf /tmp/t.tar d && tar xf /tmp/t.tar -C /tmp && tar tzf /dev/null 2>/dev/null; ls /tmp/d", "f", "tar"),
    "tar rw": ("rw", {"d/f": "x"}, "tar czf t.tgz d && mkdir o && tar xzf t.tgz -C o && ls o/d", "f", "tar"),
    "find": ("ro", {"d/f": "x"}, "find . -name f -newer . -o -name f; find /tmp -maxdepth 1 >/dev/null", "d/f", "find"),
    "sort": ("ro", {}, "seq 1 200000 | sort -S 1M -R -T /tmp | wc -l", "200000", "sort"),
    "coreutils": ("rw", {"a": "1"}, "cp -a a b; mv b c; ln a d; ln -s a e; touch -d @1 a; chmod 600 a; truncate -s 5 a; mkdir -p x/y; rm -r x; stat -c %s a; dd if=/dev/zero of=z bs=1k count=1 2>/dev/null; install -m 644 a i; sync z", "5", "cp"),
    "mkdir that is there": ("ro", {}, "mkdir -p /workspace /tmp /usr/bin; mkdir /tmp 2>/dev/null; echo ok", "ok", "sh"),
    "sed -i": ("rw", {"s": "old\n"}, "sed -i s/old/new/ s && cat s", "new", "sed"),
    "awk grep xargs": ("ro", {"d/f": "x y\n"}, "awk '{print $2}' d/f; grep -r x . | xargs -n1 echo | wc -l", "y", "awk"),
    "gzip xz": ("ro", {"f": "x" * 9999}, "gzip -c f | gunzip | wc -c; xz -c f | xz -d | wc -c", "9999", "xz"),
    "ps top": ("ro", {}, "ps -ef | wc -l; ps aux >/dev/null; uptime >/dev/null; free >/dev/null; nproc >/dev/null; df . >/dev/null; echo ok", "ok", "ps"),
    "java": ("ro", {}, "java -XX:+UseSerialGC -version 2>&1", "version", "java"),
    "javac": ("ro", {"A.java": "class A { public static void main(String[] a) { System.out.println(42); } }\n"}, "javac -d /tmp A.java && java -cp /tmp A", "42", "javac"),
    "curl --version": ("ro", {}, "curl --version", "curl", "curl"),
    "openssl": ("ro", {"f": "x"}, "openssl dgst -sha256 f; openssl rand -hex 4 >/dev/null", "SHA", "openssl"),
    "ruby": ("ro", {}, "ruby -e 'puts 6*7'", "42", "ruby"),
    "cmake": ("ro", {"CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(p C)\nadd_executable(prog main.c util.c)\n", **C_FILES}, "cmake -S . -B /tmp/b >/dev/null && cmake --build /tmp/b >/dev/null && /tmp/b/prog", "42", "cmake"),
}
ROOTS_OWN = {  # name: (files, argv, output, a program that may lie in a prefix of the caller's own)
    "go build": (GO, ["go", "run", "."], "go ran", "go"),
    "go test": ({**GO, "m_test.go": "package main\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n"}, ["go", "test", "./..."], "ok", "go"),
    "cargo": (CARGO, ["cargo", "run", "-q", "--offline", "--target-dir", "/tmp/t"], "rust ran", "cargo"),
    "cargo in a text": (CARGO, ["sh", "-c", "true && cargo run -q --offline --target-dir /tmp/t"], "rust ran", "cargo"),
    "python of a prefix": ({}, ["python3", "-c", "import ssl, sqlite3; print('py ran')"], "py ran", "python3"),
    "node": ({}, ["node", "-e", "console.log('js ran')"], "js ran", "node"),
    "npm": ({}, ["npm", "--version"], ".", "npm"),
    "java": ({}, ["java", "-XX:+UseSerialGC", "--version"], "jdk", "java"),
}


if os.environ.get("CSN_SOAK") != "1":
    del ROOTS_OWN["go test"]  # it compiles the library of tests: 20 s


def prepare(box, files):
    for name, text in files.items():
        box.file(name, text)


def judge(run, holds):
    assert run.status == 0, run
    assert holds in run.text, run
    assert run.facts == [], run


@pytest.mark.parametrize("name", TABLE)
def test_innocent(box, name):
    mode, files, text, holds, program = TABLE[name]
    if not shutil.which(program, path=box.env["PATH"]):
        pytest.skip(f"{program}: not on this machine")
    if name.startswith("git"):
        box.file("a.txt", "one\n")
        for words in (["init", "-q", "-b", "main"], ["add", "-A"],
                      ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "first"]):
            box.host("git", *words)
    prepare(box, files)
    run = box.sh(text, flags=["--rw"] if mode == "rw" else [])
    if name == "curl --version" and run.status == 127:
        pytest.skip("curl: not in the system's folders")
    judge(run, holds)


@pytest.mark.parametrize("name", ROOTS_OWN)
def test_innocent_of_the_callers_own(root_box, name):
    """Tool chains in root's own folders, with his PATH and HOME: what they need is mounted."""
    files, argv, holds, program = ROOTS_OWN[name]
    if not shutil.which(program):
        pytest.skip(f"{program}: not on this machine")
    prepare(root_box, files)
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/root")}
    judge(root_box.run(*argv, env=env, flags=["--rw", "--timeout", "40s"], timeout=60), holds)



def test_cargo_without_its_proxy(root_box):
    """cargo and rustc of one tool chain's own prefix build offline."""
    proxy = shutil.which("rustup") and subprocess.run(["rustup", "which", "cargo"], stdout=subprocess.PIPE, encoding="utf-8",
                                                      stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    if not proxy or proxy.returncode != 0:
        pytest.skip("rustup: no tool chain on this machine")
    prepare(root_box, CARGO)
    judge(root_box.run(proxy.stdout.strip(), "run", "-q", "--offline", "--target-dir", "/tmp/t", flags=["--rw", "--timeout", "40s"],
                       env={"HOME": os.environ.get("HOME", "/root")}, timeout=60), "rust ran")


@pytest.mark.parametrize("folder, secret", [(".local", "share/keyrings/login.keyring"), (".cargo", "credentials.toml")])
def test_a_program_of_home_lends_no_secret_of_home(far_box, folder, secret):
    program = far_box.file(far_box.home / folder / "bin" / "tool", '#!/bin/sh\ncat "$1"\n', 0o755)
    path = far_box.file(far_box.home / folder / secret, "secret")
    run = far_box.run("tool", path, env={"PATH": f"{program.parent}:/usr/bin:/bin"})
    assert run.out == b"" and run.status == 1, run


def test_a_network_that_is_not_asked_for(box):
    """Loop-back probes of language start-up code are none of ours; a real connection is one fact."""
    run = box.python("import socket\nsocket.socket().close()\nsocket.socketpair()\nprint(socket.gethostname())")
    judge(run, "caisson")
    run = box.python("import socket\ntry:\n    socket.create_connection(('192.0.2.7', 80), 1)\nexcept OSError as e: print(e)")
    assert run.status == 0 and run.events == {"NetworkAccessViolation"}, run
    assert "192.0.2.7" in json.dumps(run.facts), run


def test_a_look_up_is_one_fact_and_quick(box):
    run = box.python("import socket\ntry:\n    socket.getaddrinfo('example.org', 80)\nexcept OSError: pass")
    assert run.events == {"NetworkAccessViolation"} and run.seconds < 2, run
    assert "example.org" in json.dumps(run.facts), run


def test_words_are_never_read(box):
    """A program that says it was denied, and was not."""
    run = box.sh("echo 'bash: /etc/passwd: Permission denied' >&2; echo 'Killed'; echo 'Operation not permitted'; exit 1")
    assert run.status == 1 and run.reason == "exited" and run.result["violations"] == [], run


def test_silence_hides_nothing(box):
    """One that swallows every error and ends well: each attempt is a fact."""
    box.file("f", "x")
    run = box.python("""
        import os, socket
        def attempt(call, *args):
            try:
                call(*args)
            except OSError:
                pass
        attempt(os.open, "/workspace/new", os.O_CREAT | os.O_WRONLY)
        attempt(os.mkdir, "/usr/x")
        attempt(os.unlink, "/etc/passwd")
        attempt(os.rename, "/workspace/f", "/workspace/g")
        attempt(socket.create_connection, ("203.0.113.9", 443), 1)
        attempt(socket.socket, socket.AF_PACKET, socket.SOCK_RAW)
    """)
    assert run.status == 0 and run.out == b"", run
    told = json.dumps(run.facts)
    for word in ("/workspace/new", "/usr/x", "/etc/passwd", "/workspace/f", "203.0.113.9"):
        assert word in told, (word, run)
    assert run.events == {"FilesystemWriteViolation", "NetworkAccessViolation", "SyscallViolation"}, run


def test_a_flood_of_one_kind_is_one_fact(box):
    run = box.python("""
        for n in range(5000):
            try:
                open("/workspace/same", "w")
            except OSError:
                pass
    """)
    [fact] = run.facts
    assert fact["count"] == 5000 and run.status == 0, run


def test_a_flood_of_many_kinds_is_bounded(box):
    run = box.python("""
        for n in range(3000):
            try:
                open(f"/workspace/n{n}", "w")
            except OSError:
                pass
    """, timeout=40)
    assert run.status == 0 and len(run.result["violations"]) < 2000, len(run.result["violations"])
    assert sum(v["count"] for v in run.result["violations"]) == 3000
    log = (box.record() / "logs" / "events.jsonl").stat().st_size
    assert log < 8 << 20, log
