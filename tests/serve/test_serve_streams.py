"""Answers that go on, and clients that leave in the middle of one."""
import http.client
import shutil
import socket
import threading
import time

import pytest
from serve_client import Stream


def stream(server, method, path, body=None, **headers):
    connection = server.client()
    response = server.send(connection, method, path, body, Accept="text/event-stream", **headers)
    assert response.status == 200 and response.headers["Content-Type"] == "text/event-stream"
    return connection, Stream(response)


def leave(connection):
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()


def until(is_so, seconds=10):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_idle(server, box):
    return server.ask("GET", f"/v1/sandboxes/{box}").json()["state"] == "idle"


def test_output_comes_as_it_is_written(server, box):
    _, events = stream(server, "POST", f"/v1/sandboxes/{box}/exec",
                       {"command": "printf 'a\\303'; sleep 0.3; printf '\\251b'; echo x > /usr/x; printf '\\377' >&2; exit 4"})
    told = [(event, data) for event, _, data in events]
    out = "".join(data["data"] for event, data in told if event == "output" and data["stream"] == "stdout")
    assert out == "aéb"
    assert {"stream": "stderr", "data": {"base64": "/w=="}} in [data for _, data in told]
    assert [data["path"] for event, data in told if event == "violation"] == ["/usr/x"]
    assert told[-1][0] == "end" and told[-1][1]["exit_code"] == 4


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
def test_a_client_that_leaves_takes_its_command_along(server, box, accept):
    connection = server.client()
    thread = threading.Thread(target=lambda: swallow(server, connection, box, accept))
    thread.start()
    until(lambda: not is_idle(server, box))
    begun = time.monotonic()
    leave(connection)
    until(lambda: is_idle(server, box))
    assert time.monotonic() - begun < 5
    thread.join()


def swallow(server, connection, box, accept):
    try:
        server.send(connection, "POST", f"/v1/sandboxes/{box}/exec", {"command": "echo x; sleep 100"}, Accept=accept).read()
    except (OSError, http.client.HTTPException, ValueError, AttributeError):
        pass


def test_a_reader_that_stands_still_holds_up_only_its_command(server, box):
    connection, events = stream(server, "POST", f"/v1/sandboxes/{box}/exec", {"command": "yes"})
    next(iter(events))
    time.sleep(0.5)
    assert server.call(box, "exec", command="echo here").json()["output"]["data"] == "here\n"
    leave(connection)
    until(lambda: is_idle(server, box))


def test_events_of_a_sandbox_live_and_go_on_where_they_were_cut_off(server, box):
    connection, events = stream(server, "GET", f"/v1/sandboxes/{box}/events")
    events = iter(events)
    assert server.call(box, "exec", command="echo x > /usr/x").status == 200
    seen = []
    for event, number, data in events:
        assert event == "record" and int(number) == data["seq"]
        seen.append(data)
        if data["event"] == "ExecEnded":
            break
    assert [data["seq"] for data in seen] == list(range(1, len(seen) + 1))
    assert "Violation" in [data["event"] for data in seen]
    leave(connection)
    run = server.ask("GET", f"/v1/sandboxes/{box}").json()["run_id"]
    assert server.ask("DELETE", f"/v1/sandboxes/{box}").status == 204
    _, events = stream(server, "GET", f"/v1/runs/{run}/events", Last_Event_ID=str(seen[-1]["seq"]))
    rest = list(events)
    assert [int(number) for event, number, _ in rest if event == "record"][0] == seen[-1]["seq"] + 1
    assert rest[-2][2]["event"] == "RunExited" and rest[-1][0] == "end"
    assert server.ask("GET", f"/v1/runs/{run}/verify").json()["good"]


def test_a_change_of_a_record_is_found(server, home):
    name = server.open()
    run = server.ask("GET", f"/v1/sandboxes/{name}").json()["run_id"]
    assert server.ask("DELETE", f"/v1/sandboxes/{name}").status == 204
    file = home.folder / "state" / "caisson" / "runs" / run / "logs" / "events.jsonl"
    file.chmod(0o600)
    file.write_text(file.read_text(encoding="utf-8").replace("balanced", "strict", 1), encoding="utf-8")
    verdict = server.ask("GET", f"/v1/runs/{run}/verify").json()
    assert not verdict["good"] and verdict["file"] and verdict["reason"]
    shutil.rmtree(file.parents[1])


def test_runs_are_listed_and_their_changes_shown(server, run_caisson):
    assert run_caisson("run", "--cow", "-c", "echo x > made").returncode == 0
    row = server.ask("GET", "/v1/runs?limit=1").json()["runs"][0]
    assert row["status"] == "finished" and row["termination"]["exit_code"] == 0
    diff = server.ask("GET", f"/v1/runs/{row['run_id']}/diff")
    assert b"+++ b/made" in diff.body and diff.headers["Content-Type"].startswith("text/plain")
    assert server.ask("GET", f"/v1/runs?before={row['run_id']}&limit=500").json()["runs"][:1] != [row]
    for bad in ("limit=0", "limit=x", "limit=501"):
        assert server.ask("GET", f"/v1/runs?{bad}").status == 400
    assert server.ask("GET", "/v1/runs/20200101-000000-000000000000").status == 404


def test_two_clients_of_one_sandbox(server, box):
    out = [None] * 8

    def run(i):
        out[i] = server.call(box, "exec", command=f"sleep 0.2; echo {i}").json()["output"]["data"]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert out == [f"{i}\n" for i in range(8)]


def test_a_full_disk_is_a_problem(server, box):
    filled = server.call(box, "exec", command="head -c 600M /dev/zero > /tmp/x; echo done").json()
    assert filled["reason"] in ("exited", "memory", "scratch")
    if filled["reason"] == "exited":
        reply = server.call(box, "write", path="/tmp/y", content="z" * 100000)
        assert reply.status in (204, 507)
    assert server.ask("GET", "/v1").status == 200
