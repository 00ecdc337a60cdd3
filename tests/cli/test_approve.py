"""A start that needs a person's yes: asked for, given once to exactly that, and to nothing else."""
import contextlib
import hashlib
import json
import os
import pty
import re
import select
import subprocess
import time

import pytest

from run_fixtures import *

NEEDS = "version: 1\napproval: required\n"


@pytest.fixture
def asked(box):
    """asked(*argv, flags=…) -> the id of the request that a refused run leaves."""
    policy = box.policy(f"{NEEDS}workspace: {{path: {box.ws}, mode: rw}}\n")

    def ask(*argv, flags=(), **more):
        run = box.run(*argv, flags=[*policy, *flags], **more)
        assert run.status == 125 and run.result["error"]["code"] == "ApprovalRequired", run
        return re.search(r"ask a person to run: caisson approve ([0-9a-f]{8})\b", run.err)[1]

    ask.policy = policy
    return ask


def folder(box):
    return box.runs / "approvals"


def yes(box, name, *more):
    done = box.cli("approve", "--yes", "-q", *more, name)
    assert done.status == 0, done


def again(box, asked, *argv, flags=(), **more):
    return box.run(*argv, flags=[*asked.policy, *flags], **more)


def test_nothing_starts_without_a_yes(box, asked):
    """`human-approve` and `manual-only` need a recorded approval before they start."""
    name = asked("touch", "here")
    assert not (box.ws / "here").exists() and asked("touch", "here") == name, "the same is asked for once"
    assert folder(box).stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in folder(box).iterdir()} == {f"{name}.request": 0o600, "key": 0o600}
    request = box.cli("approve", "--list", "--json").text
    found = json.loads(request)["requests"]
    assert [(r["id"], r["state"], r["terms"]["command"]) for r in found] == [(name, "waiting", ["touch", "here"])], request
    assert found[0]["asked"]["uid"] == box.uid and 0 < found[0]["expires_in_ms"] <= 24 * 3600 * 1000


def test_a_yes_is_good_for_one_start_and_on_record(box, asked):
    """Single use, bound to the digest of the exact command and mounts, and recorded: `Approved` in the run's chain."""
    name = asked("sh", "-c", "echo ran >>here")
    yes(box, name)
    run = again(box, asked, "sh", "-c", "echo ran >>here")
    assert run.status == 0 and (box.ws / "here").read_text() == "ran\n", run
    chain = [json.loads(line) for line in (box.record(run.result["run_id"]) / "logs" / "events.jsonl").read_text().splitlines()]
    payload, = [line["payload"] for line in chain if line["event"] == "Approved"]
    assert payload == run.result["approval"] and payload["id"] == name and len(payload["digest"]) == 64
    assert payload["answered"]["how"] == "--yes" and payload["answered"]["uid"] == box.uid
    names = [line["event"] for line in chain]
    assert names.index("Approved") < names.index("ExecStarted") and box.cli("runs", "verify").status == 0
    assert again(box, asked, "sh", "-c", "echo ran >>here").status == 125
    assert (box.ws / "here").read_text() == "ran\n" and not list(folder(box).glob("*.yes"))


def test_of_many_at_once_one_starts(box, asked):
    yes(box, asked("sh", "-c", "echo ran >>here"))
    more = [box.start("sh", "-c", "echo ran >>here", flags=asked.policy, result=False) for _ in range(8)]
    statuses = []
    for process in more:
        process.communicate(timeout=60)
        statuses.append(process.returncode)
    assert sorted(statuses) == [0] + [125] * 7 and (box.ws / "here").read_text() == "ran\n", statuses


# What differs, and the change that leads to it.
CHANGES = [
    (["command"], {"argv": ("sh", "go.sh", "b")}),
    (["command", "files./workspace/go.sh", "files./workspace/other.sh"], {"argv": ("sh", "other.sh", "a")}),
    (["cwd", "host_cwd", "command", "files./workspace/go.sh", "files./workspace/sub/../go.sh"], {"cwd": "sub", "argv": ("sh", "../go.sh", "a")}),
    (["workspace.mode", "plan"], {"flags": ("-w", ".:ro")}),
    (["limits.command_ms", "plan"], {"flags": ("--timeout", "44s")}),
    (["env.LANG"], {"env": {"LANG": "C"}}),
    (["env.TZ"], {"env": {"TZ": "UTC"}}),
    (["tags"], {"flags": ("--tag", "t")}),
    (["files./workspace/go.sh"], {"script": "touch other\n"}),
    (["stdin.sha256"], {"input": b"other"}),
]


@pytest.mark.parametrize("words, change", CHANGES, ids=[words[0] for words, _ in CHANGES])
def test_one_byte_more_or_less_is_another_start(user_box, words, change):
    """The digest covers all that decides what runs; the refusal names what differs."""
    box = user_box
    policy = box.policy(f"{NEEDS}workspace: {{path: {box.ws}, mode: rw}}\n")

    def start(argv=("sh", "go.sh", "a"), flags=(), input=b"input", script="touch /workspace/here\n", cwd="", **more):
        for name in ("go.sh", "other.sh", "sub/x"):
            box.file(name, script if name == "go.sh" else "true\n")
        with open(box.file("input", input), "rb") as stdin:
            return box.run(*argv, flags=[*policy, *flags], stdin=stdin, cwd=box.ws / cwd, **more)

    yes(box, re.search(r"approve ([0-9a-f]{8})", start().err)[1])
    run = start(**change)
    assert run.status == 125 and not (box.ws / "here").exists(), run
    differing = re.search(r"differs in: (.*)\. Nothing was started", run.err)[1].split(", ")
    assert set(words) == set(differing), run.err
    run = start()
    assert run.status == 0 and (box.ws / "here").exists(), "the yes was used up by something else"


def test_values_of_variables_are_nowhere(box, asked):
    asked("true", flags=["-e", "TZ=hunter2-hunter2"])
    text = next(folder(box).glob("*.request")).read_text()
    assert '"TZ"' in text and "hunter2" not in text
    listed = json.loads(box.cli("approve", "--list", "--json").out)["requests"][0]["terms"]["env"]
    assert "TZ" in listed and isinstance(listed, list)


def start_with_variables(box, items, *argv):
    """A caller whose environment no shell would make: the same name twice."""
    code = ("import ctypes, os, sys\n"
            "count, *words = [os.fsencode(word) for word in sys.argv[1:]]\n"
            "texts = lambda list: (ctypes.c_char_p * (len(list) + 1))(*list, None)\n"
            "n = int(count)\n"
            "ctypes.CDLL(None).execve(words[n], texts(words[n:]), texts(words[:n]))\n")
    items = [*(f"{name}={value}" for name, value in box.env.items()), *items]
    return subprocess.run(["/usr/bin/python3", "-c", code, str(len(items)), *items, box.caisson, "run", *argv], cwd=box.ws, text=True,
                          capture_output=True, timeout=60, **box.as_owner())


def test_of_a_variable_given_twice_the_one_that_counts(box):
    """The first of two entries reaches the command, so that is the one which is bound."""
    argv = [*map(str, box.policy(f"{NEEDS}workspace: {{path: {box.ws}}}\nenv: {{pass: [TWICE]}}\n")), "--", "sh", "-c", "echo $TWICE"]
    yes(box, re.search(r"approve ([0-9a-f]{8})", start_with_variables(box, ["TWICE=good", "TWICE=last"], *argv).stderr)[1])
    run = start_with_variables(box, ["TWICE=evil", "TWICE=last"], *argv)
    assert run.returncode == 125 and "env.TWICE" in run.stderr, run
    run = start_with_variables(box, ["TWICE=good", "TWICE=other"], *argv)
    assert run.returncode == 0 and run.stdout == "good\n", run


def test_it_expires(box, asked):
    """An approval expires: by default after 15 minutes, at most after a day."""
    yes(box, asked("touch", "here"), "--for", "1s")
    time.sleep(1.2)
    assert again(box, asked, "touch", "here").status == 125 and not (box.ws / "here").exists()
    assert not list(folder(box).glob("*.yes"))
    assert box.cli("approve", "--yes", "--for", "25h", "00000000").status == 1


def change_terms(path):
    found = json.loads(path.read_text())
    found["terms"]["command"] = ["touch", "there"]
    path.write_text(json.dumps(found))


def lengthen(path):
    found = json.loads(path.read_text())
    found["until_ms"] += 48 * 3600 * 1000
    path.write_text(json.dumps(found))


def other_boot(path):
    found = json.loads(path.read_text())
    found["boot"] = "00000000-0000-0000-0000-000000000000"
    path.write_text(json.dumps(found))


def other_file(path):
    path.rename(path.with_suffix(".kept"))
    path.symlink_to(path.with_suffix(".kept"))


TAMPERED = {
    "torn": lambda path: os.truncate(path, path.stat().st_size - 20), "empty": lambda path: os.truncate(path, 0),
    "terms": change_terms, "longer": lengthen, "boot": other_boot, "link": other_file,
    "mode": lambda path: path.chmod(0o644), "second name": lambda path: os.link(path, path.with_suffix(".kept")),
    "deep": lambda path: path.write_text('{"terms":' + "[" * 100000), "long": lambda path: path.write_text("x" * (1 << 20)),
}


@pytest.mark.parametrize("state", ["request", "yes"])
@pytest.mark.parametrize("how", TAMPERED)
def test_a_file_that_was_touched_is_refused(user_box, how, state):
    box = user_box
    flags = box.policy(f"{NEEDS}workspace: {{path: {box.ws}, mode: rw}}\n")
    run = box.run("touch", "here", flags=flags)
    name = re.search(r"approve ([0-9a-f]{8})", run.err)[1]
    if state == "yes":
        yes(box, name)
    TAMPERED[how](folder(box) / f"{name}.{state}")
    box.give()
    if state == "request":
        done = box.cli("approve", "--yes", name)
        assert done.status == 1 and not list(folder(box).glob("*.yes")), done
    run = box.run("touch", "here", flags=flags)
    assert run.status == 125 and not (box.ws / "here").exists() and not (box.ws / "there").exists(), run


def test_a_file_of_somebody_elses_is_refused(user_box):
    if os.geteuid() != 0:
        pytest.skip("root: needed to give a file away")
    flags = user_box.policy(f"{NEEDS}workspace: {{path: {user_box.ws}, mode: rw}}\n")
    name = re.search(r"approve ([0-9a-f]{8})", user_box.run("touch", "here", flags=flags).err)[1]
    yes(user_box, name)
    given = folder(user_box) / f"{name}.yes"
    user_box.give = lambda: None
    os.chown(given, 0, 0)
    assert user_box.run("touch", "here", flags=flags).status == 125 and not (user_box.ws / "here").exists()
    os.chown(given, user_box.uid, user_box.uid)
    folder(user_box).chmod(0o755)
    run = user_box.run("touch", "here", flags=flags)
    assert run.status == 125 and "0700" in run.err, run
    folder(user_box).chmod(0o700)
    assert user_box.run("touch", "here", flags=flags).status == 0


def test_root_answers_for_anybody(user_box):
    """Who may approve: the run root's owner, or root."""
    if os.geteuid() != 0:
        pytest.skip("root: needed to answer as")
    flags = user_box.policy(f"{NEEDS}workspace: {{path: {user_box.ws}, mode: rw}}\n")
    name = re.search(r"approve ([0-9a-f]{8})", user_box.run("touch", "here", flags=flags).err)[1]
    done = subprocess.run([user_box.caisson, "approve", "--yes", "--run-dir", user_box.runs, name], timeout=60)
    given, = folder(user_box).glob("*.yes")
    assert done.returncode == 0 and given.stat().st_uid == user_box.uid
    user_box.give = lambda: None
    run = user_box.run("touch", "here", flags=flags)
    assert run.status == 0 and run.result["approval"]["answered"]["uid"] == 0, run


def test_no_is_said_and_holds(box, asked):
    name = asked("touch", "here")
    assert box.cli("approve", "--deny", name).text.endswith(f"denied {name}\n")
    for _ in range(2):
        run = again(box, asked, "touch", "here")
        assert run.status == 125 and run.result["error"]["code"] == "ApprovalDenied" and name in run.err, run
    assert box.cli("approve", "--yes", name).status == 1 and not (box.ws / "here").exists()
    asked("touch", "another")


def test_a_no_holds_wherever_the_streams_go(box, asked):
    """Whether one is a terminal is no term: else a start that was denied is another one with `2>file`."""
    ours, theirs = pty.openpty()
    streams = {"stdin": theirs, "stdout": theirs}

    def start(**more):
        process = box.start("touch", "here", flags=asked.policy, **streams, **more)
        process.communicate(timeout=60)
        return json.loads(box.result.read_text())["error"]

    try:
        assert start(stderr=theirs)["code"] == "ApprovalRequired"
        name = next(folder(box).glob("*.request")).stem
        assert box.cli("approve", "--deny", "-q", name).status == 0
        assert start(stderr=theirs)["code"] == start()["code"] == "ApprovalDenied"
        streams["stdin"] = subprocess.PIPE
        assert start()["code"] == "ApprovalDenied"
    finally:
        os.close(theirs)
        os.close(ours)


def test_a_no_that_comes_while_the_wall_is_made(box):
    """So does one to the same start, though its yes is used up by then."""
    wall = ["sh", "-c", f"cp {box.base}/kept {folder(box)}/00000000.no; exec unshare -Ur caisson-agent --stdio"]
    flags = box.policy(f"{NEEDS}tier: auto\nbackend: command\nworkspace: {{path: {box.ws}, mode: rw, at: host}}\ncommand: "
                       + json.dumps({"argv": wall, "enforces": ["fs-write", "syscalls", "privilege", "identity", "net-none"]}) + "\n")

    def asks():
        return re.search(r"approve ([0-9a-f]{8})", box.run("touch", "here", flags=flags).err)[1]

    first = asks()
    assert box.cli("approve", "--deny", "-q", first).status == 0
    answer = json.loads((folder(box) / f"{first}.no").read_text()) | {"id": "00000000"}
    (folder(box) / f"{first}.no").unlink()
    (box.base / "kept").write_text(json.dumps(answer))
    (box.base / "kept").chmod(0o600)
    yes(box, asks())
    run = box.run("touch", "here", flags=flags)
    assert run.status == 125 and run.result["error"]["code"] == "ApprovalDenied" and not (box.ws / "here").exists(), run


def test_only_a_yes_to_the_like_is_named(box, asked):
    """What differs from a start of another program is no help."""
    yes(box, asked("touch", "here"))
    assert "is for something else" not in again(box, asked, "true").err
    assert "this differs in: command" in again(box, asked, "touch", "there").err


def test_the_list_is_a_line_each(box, asked):
    """Newest first, the command cut; a no only with --all."""
    names = []
    for argv in (("true", "first"), ("echo", "x" * 100), ("printf", "a\nb")):
        names.append(asked(*argv))
        time.sleep(0.005)
    assert box.cli("approve", "--deny", "-q", names[0]).status == 0
    lines = box.cli("approve", "--list").text.splitlines()
    assert [line.split("  ")[0] for line in lines] == names[:0:-1] and all(" waiting " in line for line in lines), lines
    assert lines[1].endswith("  echo " + "x" * 55 + "…") and "\\n" in lines[0], lines
    ended = box.cli("approve", "--list", "--all").text.splitlines()
    assert ended[:2] == lines and ended[2].split()[:2] == [names[0], "denied"] and ended[2].endswith("  true first"), ended
    assert box.cli("approve", "--all", names[1]).status == 2


@contextlib.contextmanager
def waiting(box, asked, *argv, limit="60s"):
    """A run that waits, and the id that it says."""
    process = box.start(*argv, flags=[*asked.policy, "--wait-approval", limit])
    result = box.result
    line = process.stderr.readline().decode()
    yield process, re.search(r"caisson approve ([0-9a-f]{8})$", line.strip())[1]
    box.result = result
    process.communicate(timeout=60)


def test_it_waits_for_a_yes(box, asked):
    """`run --wait-approval` is what an unattended platform needs."""
    with waiting(box, asked, "touch", "here") as (process, name):
        assert process.poll() is None and not (box.ws / "here").exists()
        yes(box, name)
    assert process.returncode == 0 and (box.ws / "here").exists()


def test_it_waits_for_a_no_and_not_for_ever(box, asked):
    with waiting(box, asked, "touch", "here") as (process, name):
        assert box.cli("approve", "--deny", name).status == 0
    assert process.returncode == 125 and json.loads(box.result.read_text())["error"]["code"] == "ApprovalDenied"
    with waiting(box, asked, "touch", "there", limit="300ms") as (process, name):
        pass
    assert process.returncode == 125 and "nobody answered" in json.loads(box.result.read_text())["error"]["text"]
    assert not (box.ws / "here").exists() and not (box.ws / "there").exists()


def test_a_script_that_changes_while_it_is_read(box, asked):
    """Approve `sh deploy.sh`, then change deploy.sh: that is another start."""
    box.file("deploy.sh", "touch good\n")
    with waiting(box, asked, "sh", "deploy.sh") as (process, name):
        box.file("deploy.sh", "touch evil\n")
        yes(box, name)
    assert process.returncode == 125 and "deploy.sh" in json.loads(box.result.read_text())["error"]["text"]
    assert not (box.ws / "good").exists() and not (box.ws / "evil").exists()


def test_a_script_that_changes_while_the_wall_is_made(box):
    """It is looked at once more before the command is let go."""
    wall = ["sh", "-c", f"echo 'touch evil' >{box.ws}/deploy.sh; exec unshare -Ur caisson-agent --stdio"]
    flags = box.policy(f"{NEEDS}tier: auto\nbackend: command\nworkspace: {{path: {box.ws}, mode: rw, at: host}}\ncommand: "
                       + json.dumps({"argv": wall, "enforces": ["fs-write", "syscalls", "privilege", "identity", "net-none"]}) + "\n")
    box.file("deploy.sh", "touch good\n")
    box.give()
    yes(box, re.search(r"approve ([0-9a-f]{8})", box.run("sh", "deploy.sh", flags=flags).err)[1])
    run = box.run("sh", "deploy.sh", flags=flags)
    assert run.status == 125 and not (box.ws / "evil").exists() and "deploy.sh" in run.err, run


def test_which_files_are_bound_is_said(box, asked):
    """Regular files named in the command are bound by digest; what cannot be is said."""
    box.file("deploy.sh", "true\n")
    (box.ws / "leads-out").symlink_to("/etc/hostname")
    (box.ws / "within").symlink_to("deploy.sh")
    (box.ws / "no\udcfftext").write_text("true\n")
    for name in ("at", "attached"):
        box.file(name, "true\n")
    name = asked("sh", "-c", "./deploy.sh --x=within; cat leads-out /workspace/deploy.sh none", "-fattached", "@at", "no\udcfftext")
    shown = box.cli("approve", name).text
    files = json.loads(box.cli("approve", "--list", "--json").out)["requests"][0]["terms"]["files"]
    assert {path[len("/workspace/"):]: "unbound" in files[path] for path in files} == {
        "deploy.sh": False, "within": False, "leads-out": True, "attached": False, "at": False, "no\\xfftext": True} and name in shown
    assert files["/workspace/deploy.sh"] == files["/workspace/within"] and "unbound" in files["/workspace/leads-out"]
    assert "/workspace/leads-out: its contents are NOT bound" in shown and "not bound" in shown, shown


@pytest.mark.parametrize("word", ["d''.sh", "d'.sh'", "'d'.sh", "*.sh", "~/d.sh", "$X", "`echo", "d\\.sh", "[d].sh", '"$PWD/d.sh"', "{d,e}.sh"])
@pytest.mark.parametrize("argv", [("sh", "-c"), ("env", "/bin/bash", "-e", "-c")], ids=" ".join)
def test_words_that_a_shell_makes_are_listed(root_box, argv, word):
    """A file that is named in a way which is not worked out never runs without a line in the summary."""
    root_box.file("d.sh", "true\n")
    flags = root_box.policy(f"{NEEDS}workspace: {{path: {root_box.ws}}}\n")
    refused = root_box.run(*argv, f"true; sh {word} && true", flags=flags)
    listed = root_box.cli("approve", re.search(r"approve ([0-9a-f]{8})", refused.err)[1])
    files = json.loads(root_box.cli("approve", "--list", "--json").out)["requests"][0]["terms"]["files"]
    assert "unbound" in files[word] and "NOT bound (a shell makes another word of it)" in re.sub(r"\s+", " ", listed.text), files


def test_words_that_a_shell_takes_as_they_are(box, asked):
    """A quoted word is that word, spaces and all; and what is for no shell is not read as if it were."""
    box.file("my file.sh", "true\n")
    asked("sh", "-c", "echo 'quite all right' \"fine\"; sh 'my file.sh'")
    files = json.loads(box.cli("approve", "--list", "--json").out)["requests"][0]["terms"]["files"]
    assert list(files) == ["/workspace/my file.sh"] and "sha256" in files["/workspace/my file.sh"]
    box.file("*.sh", "true\n")
    asked("cat", "*.sh")
    found = json.loads(box.cli("approve", "--list", "--json").out)["requests"]
    files, = [request["terms"]["files"] for request in found if request["terms"]["command"][0] == "cat"]
    assert list(files) == ["/workspace/*.sh"] and "sha256" in files["/workspace/*.sh"]


def test_links_do_not_show_another_file(box):
    """What is shown as bound is what runs: a link before `..`, or into a mount, is followed as it is inside."""
    box.file("a/b/x", "")
    box.file("x.sh", "echo shown\n")
    box.file("a/x.sh", "echo run\n")
    box.file("data/y.sh", "echo shown\n")
    (box.ws / "link").symlink_to("a/b")
    (box.ws / "y.sh").symlink_to("data/y.sh")
    (box.home / "lent").mkdir()
    (box.home / "lent" / "y.sh").write_text("echo run\n")
    policy = (f"{NEEDS}workspace: {{path: {box.ws}}}\nmounts: [{{host: {box.home}/lent, at: /workspace/data}}]\n")
    argv = ("sh", "-c", "sh link/../x.sh; sh y.sh; sh data/y.sh; sh a/../x.sh")
    flags = box.policy(policy)
    yes(box, re.search(r"approve ([0-9a-f]{8})", box.run(*argv, flags=flags).err)[1])
    given = json.loads(next(folder(box).glob("*.yes")).read_text())["terms"]["files"]
    digest = {text: hashlib.sha256(text.encode()).hexdigest() for text in ("echo run\n", "echo shown\n")}
    found = {path[len("/workspace/"):]: file.get("sha256", "unbound") for path, file in given.items()}
    assert found == {"link/../x.sh": digest["echo run\n"], "y.sh": "unbound", "data/y.sh": digest["echo run\n"],
                     "a/../x.sh": digest["echo shown\n"]}
    run = box.run(*argv, flags=flags)
    assert run.status == 0 and run.text == "run\nrun\nrun\nshown\n", run


def test_of_nested_mounts_the_inner_one_is_read(box):
    """A mount within a mount covers what lies there: the digest is of the file that runs."""
    for name, text in (("outer/sub/x.sh", "echo covered\n"), ("outer/y.sh", "echo outer\n"), ("inner/x.sh", "echo inner\n")):
        box.file(box.home / name, text)
    (box.home / "outer" / "link.sh").symlink_to("sub/x.sh")
    # Out here the folder leads back to a file of the outer one, inside it is another one.
    (box.home / "outer" / "folder").symlink_to("sub/deep")
    (box.home / "outer" / "sub" / "deep").symlink_to("..")
    box.file(box.home / "inner/deep/y.sh", "echo deep\n")
    flags = [*box.policy(f"{NEEDS}workspace: {{path: {box.ws}}}\nmount_roots: [{box.home}]\n"), "-m", f"{box.home}/outer:/m", "-m", f"{box.home}/inner:/m/sub"]
    argv = ("sh", "-c", "sh /m/sub/x.sh; sh /m/y.sh; sh /m/link.sh; sh /m/folder/y.sh")
    yes(box, re.search(r"approve ([0-9a-f]{8})", box.run(*argv, flags=flags).err)[1])
    files = json.loads(next(folder(box).glob("*.yes")).read_text())["terms"]["files"]
    assert {path: file.get("sha256", "unbound") for path, file in files.items()} == {
        "/m/sub/x.sh": hashlib.sha256(b"echo inner\n").hexdigest(), "/m/y.sh": hashlib.sha256(b"echo outer\n").hexdigest(),
        "/m/link.sh": "unbound", "/m/folder/y.sh": "unbound"}
    box.file(box.home / "inner/x.sh", "echo changed\n")
    run = box.run(*argv, flags=flags)
    assert run.status == 125 and "/m/sub/x.sh" in run.err, run
    box.file(box.home / "inner/x.sh", "echo inner\n")
    run = box.run(*argv, flags=flags)
    assert run.status == 0 and run.text == "inner\nouter\ninner\ndeep\n", run


def test_gates_are_shown_and_their_programs_bound(box):
    """A gate's command runs on the host: it is in the summary, and its program cannot be another one later."""
    for name in ("gate", "part.sh"):
        box.file(box.base / "tools" / name, "#!/bin/sh\nexit 0\n", mode=0o755)
    flags = box.policy(f"{NEEDS}workspace: {{path: {box.ws}, mode: rw, protect: [kept]}}\ngates:\n"
                       f"  - {{name: build, command: [{box.base}/tools/gate, 'a b', '--with={box.base}/tools/part.sh']}}\n")
    flags += ["--tag", "ours"]
    for name in ("gate", "part.sh"):
        found = re.search(r"approve ([0-9a-f]{8})", box.run("true", flags=flags).err)[1]
        shown = box.cli("approve", found).text
        assert f"build: {box.base}/tools/gate 'a b' --with={box.base}/tools/part.sh\n" in re.sub(r"\n {10,}", " ", shown), shown
        assert re.search(rf"its file +{box.base}/tools/{name}: \d+ bytes, sha256", shown), shown
        assert re.search(r"tags +ours\n", shown) and "open files" in shown and re.search(r"protected: .*kept", shown), shown
        yes(box, found)
        box.file(box.base / "tools" / name, "#!/bin/sh\nexit 1\n", mode=0o755)
        run = box.run("true", flags=flags)
        assert run.status == 125 and "gates.build" in run.err, run
        box.file(box.base / "tools" / name, "#!/bin/sh\nexit 0\n", mode=0o755)
        assert box.run("true", flags=flags).status == 0


def answer_at_terminal(box, name, typed):
    """What `caisson approve` shows and asks at a terminal."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(box.env, TERM="xterm")
        if box.as_owner():
            os.setgroups([])
            os.setgid(box.uid)
            os.setuid(box.uid)
        os.execv(box.caisson, [box.caisson, "approve", name])
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while b"[y/N]" not in shown and select.select([fd], [], [], 30)[0]:
            shown += os.read(fd, 4096)
        os.write(fd, typed)
        while select.select([fd], [], [], 30)[0]:
            shown += os.read(fd, 4096)
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def test_a_person_at_a_terminal(box, asked):
    """Shows the summary, with the command quoted and no terminal escape, and asks y/N."""
    argv = ("printf", "a b", "\x1b[2J\x1b[1;1Hharmless", "\u202e", "it's", "$HOME;rm")
    name = asked(*argv)
    status, shown = answer_at_terminal(box, name, b"\n")
    assert status == 1 and "\x1b[2J" not in shown and "\u202e" not in shown, ascii(shown)
    assert "'a b'" in shown and "\\033[2J" in shown and "'$HOME;rm'" in shown and '[y/N]' in shown, ascii(shown)
    assert again(box, asked, *argv).status == 125
    status, shown = answer_at_terminal(box, name, b"y\n")
    assert status == 0 and f"approved {name}" in shown, shown
    run = again(box, asked, *argv)
    assert run.status == 0 and run.result["approval"]["answered"]["how"] == "terminal", run


INVISIBLE = "\u00ad\u034f\u115f\u1160\u2800\u3164\ufe00\ufe0f\uffa0\U000e0041\U000e0100"


def test_what_cannot_be_seen_is_shown(box, asked):
    """Letters that take no ink make two commands, or two paths, look the same."""
    box.file(f"a{INVISIBLE}b.sh", "true\n")
    name = asked("sh", f"a{INVISIBLE}b.sh", f"x{INVISIBLE}")
    shown = box.cli("approve", name).text + box.cli("approve", "--list").text
    assert name in shown and not set(INVISIBLE) & set(shown), ascii(shown)


def test_a_path_is_one_field(box):
    """A folder's name cannot look like a place inside and a mode."""
    lent = box.home / "x at /y, ro"
    lent.mkdir(parents=True)
    box.give()
    flags = [*box.policy(f"{NEEDS}workspace: {{path: {box.ws}}}\nmount_roots: [{box.home}]\nmounts: [{{host: '{lent}', at: /m, mode: rw}}]\n")]
    name = re.search(r"approve ([0-9a-f]{8})", box.run("true", flags=flags).err)[1]
    shown = re.sub(r"\n {10,}", " ", box.cli("approve", name).text)
    assert f"mount      '{lent}' at /m, rw" in shown and f"workspace  {box.ws} at /workspace, " in shown, shown


def test_a_program_has_to_say_what_it_answers(box, asked):
    name = asked("true")
    for more in ((), ("--json",)):
        done = box.cli("approve", *more, name)
        assert done.status == 1 and "--yes" in done.err and not list(folder(box).glob("*.yes")), done
    done = json.loads(box.cli("approve", "--json", "--yes", name).out)
    assert done["id"] == name and done["state"] == "approved" and len(done["digest"]) == 64
    for words in ((), ("--list", name), ("--yes", "--deny", name), ("--yes", "zz"), ("--yes", "../key"), ("--yes", "1234567")):
        assert box.cli("approve", *words).status in (1, 2), words


def test_one_named_approval_and_no_other(box, asked):
    first, second = asked("touch", "one"), asked("touch", "two")
    yes(box, first), yes(box, second)
    run = again(box, asked, "touch", "two", flags=["--approval", first])
    assert run.status == 125 and first in run.err and "command" in run.err and not (box.ws / "two").exists(), run
    assert again(box, asked, "touch", "two", flags=["--approval", second]).status == 0
    run = again(box, asked, "touch", "two", flags=["--approval", second])
    assert run.status == 125 and run.result["error"]["code"] == "ApprovalRequired", run
    assert again(box, asked, "touch", "one", flags=["--approval", "../key"]).status == 125


def test_what_cannot_be_recorded_cannot_be_approved(box, asked):
    run = again(box, asked, "true", flags=["--no-record"])
    assert run.status == 125 and "--no-record" in run.err, run


def test_another_run_root_is_named(box, asked):
    run = again(box, asked, "true", flags=["--run-dir", box.base / "state" / "other runs"])
    typed = re.search(r"caisson (approve --run-dir '[^']+' [0-9a-f]{8})", run.err)[1]
    assert box.cli("approve", "--yes", "--run-dir", box.base / "state" / "other runs", typed.split()[-1]).status == 0


def test_the_inside_cannot_answer(box, asked):
    """Authority stays outside: neither the folder nor its key can be seen from inside."""
    name = asked("true")
    flags = box.policy(f"version: 1\nworkspace: {{path: {box.home}/ws, mode: rw}}\n")
    runs = box.ws / "runs"
    box.run("true", flags=[*asked.policy, "--run-dir", runs])
    run = box.sh(f"find / -name '*.request' -o -name key -path '*approvals*' 2>/dev/null; ls {folder(box)} runs", flags=[*flags, "--run-dir", runs])
    assert name not in run.text and ".request" not in run.text and (runs / "approvals").is_dir(), run


def test_a_sandbox_that_stays(box, asked):
    """An approval of `up` is for the plan, without a command, and says so."""
    run = box.cli("up", "appr", *asked.policy)
    assert run.status == 125 and "ApprovalRequired" in run.err, run
    name = re.search(r"caisson approve ([0-9a-f]{8})", run.err)[1]
    assert "command    ANY" in box.cli("approve", name).text
    yes(box, name)
    try:
        assert box.cli("up", "appr", *asked.policy).text == "appr\n"
        assert box.cli("exec", "appr", "--", "echo", "in").text == "in\n"
        assert box.cli("up", "appr2", *asked.policy).status == 125, "one start"
    finally:
        box.cli("down", "appr")
    chain = next(box.runs.glob("2*/logs/events.jsonl")).read_text()
    assert '"event":"Approved"' in chain and name in chain


def test_a_yes_to_one_sandbox_makes_no_second(box):
    """A fork is a start of its own, and the yes of its origin was used."""
    flags = [*box.policy(f"{NEEDS}workspace: {{path: {box.ws}, mode: cow}}\n")]
    yes(box, re.search(r"caisson approve ([0-9a-f]{8})", box.cli("up", "appr-f1", *flags).err)[1])
    try:
        assert box.cli("up", "appr-f1", *flags).status == 0
        run = box.cli("fork", "appr-f1", "appr-f2")
        assert run.status != 0 and "ApprovalRequired" in run.err, run
        assert box.cli("exec", "appr-f2", "--", "true").status != 0
        assert box.cli("exec", "appr-f1", "--", "echo", "in").text == "in\n"
    finally:
        for name in ("appr-f1", "appr-f2"):
            box.cli("down", name)
    chains = [path.read_text() for path in box.runs.glob("2*/logs/events.jsonl")]
    assert sum('"event":"Approved"' in chain for chain in chains) == 1 and len(chains) == 1
    assert not [path for path in box.runs.glob("2*/cow/*") if "fork" in path.name]


def test_what_is_prepared_ahead_cannot_be_approved(box, asked):
    done = box.cli("pool", "start", "--size", "1", "appr-pool", *asked.policy)
    assert done.status != 0 and "ApprovalRequired" in done.err, done
