"""--forward: code inside reaches the endpoint that was named, and gets bytes and nothing else."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess

import pytest

from forward_ends import CLIENT, End, deaf, die, digest, free_port, pour, tcp
from run_fixtures import *

HERE = pathlib.Path(__file__).resolve().parent
AT = "/tmp/model.sock"
HTTP = "b'the model answers'"


@pytest.fixture
def end(box):
    """A socket beside the workspace; the test says what it does."""
    made = End(box.base / "end.sock")
    yield made
    made.close()


def ask(box, source, *what, at=AT, **more):
    return box.python(CLIENT, at, *what, flags=["--forward", f"{source}:{at}", *more.pop("flags", [])], timeout=60, **more)


def events(box, kind):
    lines = (box.record() / "logs/events.jsonl").read_text().splitlines()
    return [event["payload"] for event in map(json.loads, lines) if event["event"] == kind]


def verified(box):
    assert box.cli("runs", "verify", box.record().name).status == 0


def test_a_web_server_is_reached(box, end):
    """64 at once of which half wait, and 50 MiB each way; no attempt, no network."""
    source = end.web()
    run = ask(box, source, "once", "many", "bulk", flags=["--memory", "1GiB"])
    assert run.text.splitlines() == [HTTP, f"64 {{{HTTP}}}", f"{50 << 20} True"], run
    assert not run.facts and run.result["network"] == "none" and "net-none" in run.result["enforced"], run
    said, = run.result["forwards"]
    assert said["forward"] == f"{source}:{AT}" and said["connections"] == 66 and said["failed"] == 0, said
    assert said["sent_bytes"] > 50 << 20 and said["received_bytes"] > 50 << 20, said
    assert events(box, "RunStarted")[0]["forwards"] == [f"{source}:{AT}"]
    assert events(box, "RunExited")[0]["forwarded"] == [said]
    told = events(box, "Forwarded")
    assert told[0]["reason"] == "closed" and len(told) == 60, told[0]
    verified(box)


def test_a_port_of_the_host_and_a_port_inside(box):
    server, source = tcp()
    try:
        assert ask(box, source, "once", "many", at="/tmp/a/b/model").text.splitlines()[0] == HTTP
        run = ask(box, source, "once", "many", at="8080", flags=["--network", "loopback"])
        assert run.text.splitlines() == [HTTP, f"64 {{{HTTP}}}"] and not run.facts, run
    finally:
        server.shutdown()
        server.server_close()


def test_each_way_ends_by_itself(box, end):
    run = ask(box, end.each(digest), "half_close")
    assert re.fullmatch("[0-9a-f]{64}\n", run.text) and run.status == 0, run


def test_an_endpoint_that_dies(box, end):
    """What it said arrives; who talks to it then is told; once it is gone each connection ends at once."""
    process = box.start(PYTHON, box.file("t.py", CLIENT).name, AT, "twice", flags=["--forward", f"{end.each(die)}:{AT}"],
                        stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"1000\n"
    end.path.unlink()
    run = box.finish(process, 0, input=b"again\n")
    assert run.text == "again\n0\n" and run.status == 0 and not run.facts, run
    assert [(event["reason"], event["received_bytes"]) for event in events(box, "Forwarded")] == [("closed", 1000), ("refused", 0)]
    assert (run.result["forwards"][0]["connections"], run.result["forwards"][0]["failed"]) == (2, 1), run


def test_a_slow_end_holds_up_the_other(box, end):
    run = ask(box, end.each(deaf), "unread")
    assert run.text == "True\n", run
    assert events(box, "Forwarded")[0]["reason"] in ("ended", "reset")


def test_a_slow_program_holds_up_the_endpoint(box, end):
    run = ask(box, end.each(pour), "idle")
    assert run.text == "idle\n" and 0 < end.seen[0] < 4 << 20, (run, end.seen)


def test_thousands_of_connections(box, end):
    run = ask(box, end.web(), "flood")
    assert run.text.strip() == HTTP, run
    told = events(box, "Forwarded")
    count = run.result["forwards"][0]["connections"]
    assert count > 3000 and len(told) <= 180 and sum(event["others"] + 1 for event in told) <= count, (count, len(told))
    verified(box)


def test_a_link_that_is_put_there_later(box, end):
    """The path was judged; what it leads to when somebody connects is not what was judged."""
    other = End(box.base / "other.sock")
    try:
        other.web()
        process = box.start(PYTHON, box.file("t.py", CLIENT).name, AT, "twice", flags=["--forward", f"{end.each(die)}:{AT}"],
                            stdin=subprocess.PIPE)
        assert process.stdout.readline() == b"1000\n"
        end.path.unlink()
        end.path.symlink_to(other.path)
        run = box.finish(process, 0, input=b"again\n")
        assert run.text == "again\n0\n" and run.result["forwards"][0]["failed"] == 1, run
    finally:
        other.close()


def test_a_sandbox_that_stays(box, end):
    box.file("t.py", CLIENT)
    box.env["XDG_RUNTIME_DIR"] = str(box.base / "state")
    source = end.web()
    assert box.cli("up", "fwd", "--forward", f"{source}:{AT}").status == 0
    try:
        for _ in range(2):
            done = box.cli("exec", "fwd", "--", PYTHON, "t.py", AT, "once")
            assert done.text.strip() == HTTP, done
    finally:
        box.cli("down", "fwd")


def refused(box, forward, *flags, **more):
    run = box.run("true", flags=["--forward", forward, *flags], **more)
    assert run.status == 125, run
    return run.err


def test_what_cannot_be_reached_is_refused(root_box, tmp_path):
    box = root_box
    source = End(box.base / "end.sock")
    given = source.web()
    other = End(box.base / "other.sock")
    other.web()
    box.file("plain", "x")
    (box.ws / "link.sock").symlink_to(source.path)
    docker = box.base / "docker.sock"
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(docker))
        (box.base / "innocent.sock").symlink_to(docker)
        assert "privileged service" in refused(box, f"unix:{docker}:{AT}")
        assert "privileged service" in refused(box, f"unix:{box.base}/innocent.sock:{AT}")
    assert "does not exist" in refused(box, f"unix:{box.base}/missing:{AT}")
    assert "is not a socket" in refused(box, f"unix:{box.ws}/plain:{AT}")
    assert "symbolic link" in refused(box, f"unix:{box.ws}/link.sock:{AT}")
    assert "nobody listens" in refused(box, f"tcp:127.0.0.1:{free_port()}:{AT}")
    assert "scratch space only" in refused(box, f"{given}:/workspace/model.sock")
    assert "no loopback" in refused(box, f"{given}:8080")
    assert "two forwards" in refused(box, f"{given}:{AT}", "--forward", f"unix:{other.path}:/tmp//model.sock")
    assert "cannot listen inside" in refused(box, f"{given}:/tmp/a", "--forward", f"unix:{other.path}:/tmp/a/b")
    for wrong in (given, f"{given}:0", f"{given}:65536", f"{given}:/etc/x", f"tcp:10.0.0.1:80:{AT}", f"tcp:localhost:80:{AT}",
                  f"http://x:{AT}", f"{given}:/tmp/../x", f"{given}:/tmp/{'n' * 103}", f"unix::{AT}"):
        assert "is no forward" in refused(box, wrong) or "is not a usable path" in refused(box, wrong), wrong
    assert "cannot forward" in refused(box, f"{given}:{AT}", policy=LANDLOCK + f"forwards: ['{given}:{AT}']\n")
    source.close()
    other.close()


def test_a_policy_in_force_has_to_name_it(box, end):
    source = end.web()
    err = refused(box, f"{source}:{AT}", policy="version: 1\n")
    assert f"forwards: [\"{source}:{AT}\"]" in err and "trusted policy file may permit it" in err, err
    policy = f"version: 1\nforwards: ['{source}:{AT}']\n"
    assert box.python(CLIENT, AT, "once", policy=policy).text.strip() == HTTP
    assert ask(box, source, "once", policy=policy).text.strip() == HTTP
    (box.ws / "caisson.yaml").write_text(policy)  # found, not given
    run = box.run("true")
    assert run.status == 125 and "policy trust" in run.err, run


def test_a_yes_covers_what_was_shown(box, end):
    source = end.web()
    policy = "version: 1\napproval: required\n"
    run = box.run("true", policy=policy)
    asked = re.search(r"caisson approve (\S+)", run.err)[1].strip("`'.,;:")
    assert box.cli("approve", "--yes", asked).status == 0
    run = box.run("true", policy=policy + f"forwards: ['{source}:{AT}']\n")
    assert run.status == 125 and "ApprovalRequired" in run.err, run
    other = re.search(r"caisson approve (\S+)", run.err)[1].strip("`'.,;:")
    shown = box.cli("approve", "--deny", other)
    assert "forwards" in shown.text + shown.err and str(end.path) in shown.text + shown.err, shown


@pytest.mark.parametrize("kind", ["number", "unopened", "twice", "crowd", "overrun", "window", "after_end"])
def test_an_agent_that_lies(root_box, program, shared, kind):
    box = root_box
    source = End(box.base / "end.sock")
    try:
        given = source.each(deaf)
        place = box.base / "bin"
        place.mkdir()
        shutil.copy(program, place / "caisson")
        subprocess.run(["cc", "-static", "-O1", "-w", f"-DKIND=forward_{kind}", "-o", place / "caisson-agent", HERE / "hostile_agent.c"],
                       check=True)
        for path in (place, place / "caisson", place / "caisson-agent"):
            path.chmod(0o755)
        box.caisson = str(place / "caisson")
        run = box.run("true", flags=["--forward", f"{given}:{AT}"])
        assert run.status == 125 and run.reason in ("lost", "start_failed") and "this is not our agent" in run.err, run
        if kind == "number":  # nobody asked for any
            assert "out of turn" in box.run("true").err
    finally:
        source.close()
        assert not os.path.exists(box.ws / "model.sock")
