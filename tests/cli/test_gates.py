"""Gates: code inside asks the host for something by its name, and gets that and nothing else. Whatever stands on the
other end of the socket is hostile: it floods, lies, hangs, leaves."""
import json
import os
import subprocess
import time

import pytest

WALLS = ["process", "landlock"]
ECHO = "#!/bin/sh\ncat\n"
# What a hostile program does to the socket of the gates; sys.argv[1] says what.
ATTACK = r"""
import os, socket, struct, sys, time

def connect():
    end = socket.socket(socket.AF_UNIX)
    end.settimeout(20)
    for _ in range(1000):
        try:
            end.connect(os.environ["CAISSON_GATES"])
            return end
        except BlockingIOError:
            time.sleep(0.01)

def binary(data):
    return b"m" + struct.pack(">I", len(data)) + data

def call(name, args, ref=7):
    term = b"\x83h\x04w\x09gate_call" + b"a" + bytes([ref]) + binary(name) + binary(args)
    return struct.pack(">I", len(term)) + term

def whole(end, size):
    data = b""
    while len(data) < size:
        piece = end.recv(size - len(data))
        if not piece:
            break
        data += piece
    return data

def answer(end):
    head = whole(end, 4)
    return whole(end, struct.unpack(">I", head)[0]) if len(head) == 4 else None

def flood():
    # More than ever have room: the silent ones make it, and who asks has an answer.
    silent = [connect() for _ in range(300)]
    end = connect()
    end.sendall(call(b"echo", b'{"a": 1}'))
    print(b'{"a":1}' in answer(end))

def garbage():
    for data in (b"\0\0\0\0", b"\xff\xff\xff\xff", struct.pack(">I", 5) + b"\x83abcd", b"GET / HTTP/1.1\r\n\r\n",
                 struct.pack(">I", 70000) + b"x" * 70000, call(b"echo", b"{}").replace(b"w\x09gate_call", b"w\x09gate_cull")):
        end = connect()
        try:
            end.sendall(data)
            print(end.recv(1) == b"")
        except (BrokenPipeError, ConnectionResetError):
            print(True)

def others_frames():
    # What an agent may say to its monitor is not for a command to say.
    for term in (b"\x83h\x03w\x05replya\x01t\0\0\0\0", b"\x83h\x02w\x03byet\0\0\0\0"):
        end = connect()
        end.sendall(struct.pack(">I", len(term)) + term)
        print(end.recv(1) == b"")

def gone():
    for _ in range(10):
        end = connect()
        end.sendall(call(b"echo", b'{"a": 2}'))
        end.close()
    end = connect()
    end.sendall(call(b"echo", b'{"a": 3}') + call(b"echo", b'{"a": 4}', 9))
    end.shutdown(socket.SHUT_WR)
    print(b'{"a":3}' in answer(end), b"a\x09" in answer(end))

def at_once():
    ends = [connect() for _ in range(24)]
    for end in ends:
        end.sendall(call(b"nap", b"{}"))
    said = [answer(end) for end in ends]
    print(sum(b"too many gate calls at once" in one for one in said), sum(b"rested" in one for one in said))

globals()[sys.argv[1]]()
"""


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


class Box:
    """A project with a policy that names gates, whose programs lie in `tools`, out of its reach."""

    def __init__(self, caisson, project, home):
        self.caisson, self.project, self.tools = caisson, project, home / "tools"
        self.runs, self.home = home / "runs", home
        self.text, self.tier = "", "auto"
        for folder in [project, *project.parents[:-2]]:  # what a private user of landlock's must enter
            folder.chmod(0o755)
        program(self.tools / "echo", ECHO)

    def gate(self, text):
        self.text += f"  - {text}\n"

    def policy(self, more=""):
        path = self.home / "policy.yaml"
        path.write_text(f"version: 1\ntier: {self.tier}\nworkspace: {{path: {self.project}}}\n{more}gates:\n{self.text}")
        return path

    def run(self, *argv, wall="process", more="", flags=()):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8"}
        command = [self.caisson, "run", "--policy", str(self.policy(more)), "--backend", wall, "--run-dir", self.runs,
                   *flags, "--", *argv]
        return subprocess.run(command, cwd=self.project, env=env, capture_output=True, text=True, timeout=120)

    def sh(self, text, **more):
        return self.run("sh", "-c", text, **more)

    def events(self):
        newest = max(self.runs.glob("*/logs/events.jsonl"), key=lambda path: path.stat().st_mtime)
        lines = [json.loads(line) for line in newest.read_text().splitlines()]
        return [line["payload"] for line in lines if line["event"] == "GateCalled"]


@pytest.fixture
def box(caisson, project, home):
    box = Box(caisson, project, home)
    box.gate(f"{{name: echo, command: [{box.tools}/echo]}}")
    return box


@pytest.mark.parametrize("wall", WALLS)
def test_answer_is_the_programs_output(box, wall):
    program(box.tools / "env", "#!/bin/sh\nread -r line; echo \"$line $1 $PWD $#\"; ls /proc/self/fd | wc -l\n")
    box.gate(f"{{name: env, command: [{box.tools}/env, 'a b; $(id)']}}")
    done = box.sh('caisson-gate env \'{"x": [1, "é"]}\'; caisson-gate echo', wall=wall)
    # Three streams, and what ls opens: no descriptor of the monitor's is inherited.
    assert done.stdout == '{"x":[1,"é"]} a b; $(id) / 1\n4\n{}', done.stderr
    assert done.returncode == 0


def test_links_and_standard_input(box):
    box.gate(f"{{name: lookup_2, command: [{box.tools}/echo]}}")
    done = box.sh("lookup_2; printf '{\"a\": 1}' | lookup_2 -; command -v lookup_2; command -v caisson-gate")
    assert done.stdout == '{}{"a":1}/tmp/.caisson/bin/lookup_2\n/tmp/.caisson/bin/caisson-gate\n', done.stderr


def test_failures_are_values(box):
    program(box.tools / "bad", "#!/bin/sh\necho out\necho 'no such ticket' >&2\nexit 3\n")
    program(box.tools / "mute", "#!/bin/sh\nexit 255\n")
    program(box.tools / "dies", "#!/bin/sh\nkill -9 $$\n")
    program(box.tools / "broken", "no program\n")
    program(box.tools / "much", "#!/bin/sh\nhead -c 300000 /dev/zero\n")
    for name in ("bad", "mute", "dies", "broken", "much"):
        box.gate(f"{{name: {name}, command: [{box.tools}/{name}]}}")
    box.gate("hosted")
    says = {"bad": "no such ticket", "mute": "the gate ended with status 255", "dies": "the gate was ended by signal 9",
            "broken": f"cannot execute {box.tools}/broken: Exec format error",
            "much": "the gate wrote more than 256 KiB",
            "nope": "unknown gate: nope",
            "hosted": "nobody answers this gate: it is a function of the program that opens the sandbox"}
    done = box.sh("; ".join(f"caisson-gate {name}; echo $?" for name in says))
    assert done.stdout == "1\n" * len(says), done.stderr
    assert done.stderr.splitlines() == [f"caisson-gate: {name}: {said}" for name, said in says.items()]
    assert [(event["gate"], event["is_error"], event["reason"]) for event in box.events()] == [
        (name, True, said) for name, said in says.items()]


def test_arguments_are_held_against_the_schema(box):
    box.gate(f"{{name: ticket, command: [{box.tools}/echo], schema: {{type: object, required: [id], "
             "additionalProperties: false, properties: {id: {type: integer, minimum: 1, maximum: 9}, "
             "kind: {enum: [bug, task]}, tags: {type: array, maxItems: 2, items: {type: string, maxLength: 3}}}}}")
    wrong = {'{"id": 0}': "id is out of range: at least 1", '{"id": 10}': "id is out of range: at most 9", '{}': "id is missing", '{"id": "1"}': "id is not of type integer",
             '{"id": 1, "kind": "x"}': "kind is none of the values that this gate takes",
             '{"id": 1, "x": 1}': "x is nothing that this gate knows",
             '{"id": 1, "tags": ["a", "b", "c"]}': "tags has too many items",
             '{"id": 1, "tags": ["abc", "abcd"]}': "tags[1] is too long",
             '[1]': 'the arguments are no JSON object, such as {"name": "value"}',
             '{"id": 1, "id": 2}': "the arguments are no JSON: duplicate object key near '\"id\"'"}
    done = box.sh("\n".join(f"ticket '{args}'" for args in wrong) + '\nticket \'{"id": 9, "kind": "bug", "tags": ["éé"]}\'')
    assert done.stderr.splitlines() == [f"caisson-gate: ticket: {said}" for said in wrong.values()]
    assert json.loads(done.stdout) == {"id": 9, "kind": "bug", "tags": ["éé"]}


def test_bounds_beyond_the_integers_of_a_double(box):
    """2^53 and 2^53 + 1 are one and the same double."""
    most = 2**53
    box.gate(f"{{name: ticket, command: [{box.tools}/echo], schema: {{properties: {{id: {{type: number, minimum: -{most}, maximum: {most}}}}}}}}}")
    taken = [most, -most, most - 1, 1.5, 9007199254740991.0]
    refused = {most + 1: f"at most {most}", -most - 1: f"at least -{most}", 2**63 - 1: f"at most {most}", 1e300: f"at most {most}", -1e300: f"at least -{most}"}
    done = box.sh("\n".join(f"ticket '{json.dumps({'id': number})}'" for number in [*taken, *refused]))
    assert done.stderr.splitlines() == [f"caisson-gate: ticket: id is out of range: {said}" for said in refused.values()]
    assert done.stdout == "".join(json.dumps({"id": number}, separators=(",", ":")) for number in taken), done


def test_a_gate_has_its_time_and_its_rate(box):
    program(box.tools / "slow", "#!/bin/sh\n(setsid sleep 4711 &)\nsleep 4711\n")
    box.gate(f"{{name: slow, command: [{box.tools}/slow], timeout: 500ms}}")
    box.gate(f"{{name: rare, command: [{box.tools}/echo], rate: 2}}")
    done = box.sh("slow; for i in 1 2 3; do rare; done")
    assert done.stderr.splitlines() == ["caisson-gate: slow: the gate took too long, and was ended",
                                        "caisson-gate: rare: the gate was called too often: 2 times a minute; ask later"]
    assert done.stdout == "{}{}"
    assert subprocess.run(["pgrep", "-f", "^sleep 4711$"], capture_output=True).returncode == 1, "something of it is left"


def test_the_sandboxs_end_ends_a_gate(box):
    program(box.tools / "slow", "#!/bin/sh\ntouch $0.began\nsleep 4712\n")
    box.gate(f"{{name: slow, command: [{box.tools}/slow]}}")
    done = box.sh("slow & sleep 2")
    assert done.returncode == 0
    assert (box.tools / "slow.began").exists()
    assert subprocess.run(["pgrep", "-f", "^sleep 4712$"], capture_output=True).returncode == 1
    assert [event["reason"] for event in box.events()] == ["the sandbox ended before it did"]


def test_the_monitors_death_ends_all_of_a_gate(box):
    nap = f"sleep 47{os.getpid()}"  # of this run of the test alone
    program(box.tools / "slow", f"#!/bin/sh\nsetsid sh -c '{nap}1' &\n{nap}2\n")
    box.gate(f"{{name: slow, command: [{box.tools}/slow]}}")

    def left():
        return subprocess.run(["pgrep", "-f", f"^{nap}[12]$"], capture_output=True, text=True).stdout.split()

    monitor = subprocess.Popen([box.caisson, "run", "--policy", box.policy(), "--backend", "process", "--run-dir",
                                box.runs, "--", "slow"], cwd=box.project, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 20
        while len(left()) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        assert len(left()) == 2
        monitor.kill()
        monitor.wait()
        until = time.monotonic() + 20
        while left() and time.monotonic() < until:
            time.sleep(0.05)
        assert left() == []
    finally:
        monitor.kill()
        monitor.wait()
        for pid in left():
            os.kill(int(pid), 9)


def test_the_record_has_what_was_asked_and_no_secret(box):
    box.gate(f"{{name: quiet, command: [{box.tools}/echo], ephemeral: true}}")
    box.sh("caisson-gate echo '{\"a\": \"sesame-open\"}'; quiet '{\"a\": \"b\"}'", more="env: {set: {KEY: sesame-open}}\n")
    one, two = box.events()
    assert one["args"] == {"a": "[REDACTED:KEY]"} and one["call_id"] == 1 and one["is_error"] is False
    assert one["duration_ms"] > 0
    assert two["gate"] == "quiet" and two["args"] is None


@pytest.mark.parametrize("attack", ["flood", "garbage", "others_frames", "gone", "at_once"])
def test_what_is_hostile_on_the_socket(box, attack):
    program(box.tools / "nap", "#!/bin/sh\nsleep 3\necho rested\n")
    box.gate(f"{{name: nap, command: [{box.tools}/nap]}}")
    (box.project / "attack.py").write_text(ATTACK)
    done = box.run("/usr/bin/python3", "attack.py", attack)
    expected = {"flood": "True\n", "garbage": "True\n" * 6, "others_frames": "True\n" * 2, "gone": "True True\n",
                "at_once": "8 16\n"}
    assert done.stdout == expected[attack], done.stderr


def test_refused_calls_do_not_fill_the_record(box):
    done = box.sh("i=0; while [ $i -lt 90 ]; do caisson-gate nope 2>/dev/null; i=$((i+1)); done; echo done")
    assert done.stdout == "done\n", done.stderr
    # Sixty a minute, and one more for each second that it took.
    assert 60 <= len(box.events()) < 90


@pytest.mark.parametrize("mode, status", [("rw", 125), ("ro", 0), ("cow", 0)])
def test_no_program_that_the_code_could_write(box, mode, status):
    program(box.project / "inside", ECHO)
    box.gate(f"{{name: inside, command: [{box.project}/inside]}}")
    path = box.policy()
    path.write_text(path.read_text().replace(f"{{path: {box.project}}}", f"{{path: {box.project}, mode: {mode}}}"))
    done = subprocess.run([box.caisson, "run", "--policy", path, "--run-dir", box.runs, "--", "inside"],
                          cwd=box.project, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stderr
    if status:
        assert f"the gate inside uses {box.project}/inside, which lies in {box.project}" in done.stderr
    else:
        assert done.stdout == "{}"


def test_a_link_in_the_workspace_does_not_hide_where_it_lies(box):
    program(box.project / "inside", ECHO)
    (box.tools / "link").symlink_to(box.project / "inside")
    box.gate(f"{{name: link, command: [{box.tools}/link]}}")
    path = box.policy()
    path.write_text(path.read_text().replace(f"{{path: {box.project}}}", f"{{path: {box.project}, mode: rw}}"))
    done = subprocess.run([box.caisson, "run", "--policy", path, "--run-dir", box.runs, "--", "true"], cwd=box.project,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 125 and "it would choose what runs on the host" in done.stderr


def test_only_a_trusted_file_names_one(box):
    (box.project / "caisson.yaml").write_text(f"version: 1\ngates:\n{box.text}")
    env = {"PATH": os.environ["PATH"], "HOME": str(box.home)}
    done = subprocess.run([box.caisson, "run", "--", "true"], cwd=box.project, env=env, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 125 and "may not do until you trust it" in done.stderr


@pytest.mark.parametrize("gate, says", [
    ("{name: a b}", "name of a gate is not usable, expected letters, digits and _"),
    ("{command: [/bin/true]}", "not a gate, expected a name of letters, digits and _"),
    ("{name: a, command: [true]}", "command of a gate is not usable, expected [PROGRAM, ARGUMENT, ...] with a '/'"),
    ("{name: a, command: [/nowhere]}", "/nowhere is no file that a gate could execute"),
    ("{name: a, timeout: 2h}", "timeout of a gate is not usable"),
    ("{name: a, rate: 0}", "rate of a gate is not usable"),
    ("{name: a, run: x}", "an unknown key in a gate"),
    ("echo", "gates names this twice"),
    ("{name: a, schema: {pattern: x}}", "gate a: its schema says pattern, which is not checked here"),
    ("{name: a, schema: {properties: {x: {type: text}}}}", "gate a: its schema's type is not object, array"),
])
def test_a_gate_that_is_none_is_refused(box, gate, says):
    box.gate(gate)
    done = box.run("true")
    assert done.returncode == 125 and says in done.stderr


def test_the_policy_is_shown_as_it_was_said(box):
    box.gate(f"{{name: all, command: [{box.tools}/echo, 'a b'], schema: {{type: object, properties: {{a: {{enum: [1, \"1\", on, null]}}}}}}, "
             "timeout: 5s, rate: 7, ephemeral: true}")
    box.gate("plain")
    shown = subprocess.run([box.caisson, "policy", "show", "--effective", "--policy", box.policy()], cwd=box.project,
                           capture_output=True, text=True, timeout=60)
    gates = next(line for line in shown.stdout.splitlines() if line.startswith("gates:"))
    assert gates == (f'gates: [{{name: echo, command: [{box.tools}/echo], timeout: 30s, rate: 600}}, {{name: all, command: '
                     f'[{box.tools}/echo, "a b"], schema: {{"type": "object", "properties": {{"a": {{"enum": [1, "1", "on", '
                     'null]}}}, timeout: 5s, rate: 7, ephemeral: true}, {name: plain, timeout: 30s, rate: 600}]')


def test_a_sandbox_that_stays_has_them_and_goes_on(box, tmp_path):
    program(box.tools / "nap", "#!/bin/sh\nsleep 2\necho rested\n")
    box.gate(f"{{name: nap, command: [{box.tools}/nap]}}")
    env = {"PATH": os.environ["PATH"], "HOME": str(box.home), "XDG_RUNTIME_DIR": str(tmp_path / "place")}
    (tmp_path / "place").mkdir(mode=0o700)

    def call(*argv):
        return subprocess.run([box.caisson, *argv], cwd=box.project, env=env, capture_output=True, text=True, timeout=60)

    assert call("up", "gated", "--policy", box.policy(), "--backend", "process").stdout == "gated\n"
    try:
        nap = subprocess.Popen([box.caisson, "exec", "gated", "--", "nap"], cwd=box.project, env=env,
                               stdout=subprocess.PIPE, text=True)
        began = time.monotonic()
        while nap.poll() is None and time.monotonic() - began < 30:  # others are not held up
            assert call("exec", "gated", "--", "echo", "x").stdout == "x\n"
            assert call("exec", "gated", "--", "caisson-gate", "echo").stdout == "{}"
        assert nap.communicate()[0] == "rested\n"
        # Who removes the socket has no gates, and nothing else of the sandbox ends.
        done = call("exec", "gated", "-c", "rm -r $TMPDIR/.caisson; caisson-gate echo; echo $?")
        assert done.stdout == "127\n"
        assert call("exec", "gated", "--", "echo", "still").stdout == "still\n"
    finally:
        call("down", "gated")


def test_walls_without_gates_say_so(box):
    box.tier = "local"
    path = box.policy("backend: local\n")
    done = subprocess.run([box.caisson, "run", "--policy", path, "--run-dir", box.runs, "--", "true"], cwd=box.project,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 125 and "the local wall has none" in done.stderr
