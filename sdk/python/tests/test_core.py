"""The core without input and output, and its terms: what a hostile sandbox may say."""

from __future__ import annotations

import inspect
import pathlib
import random
import struct
import subprocess
import sys
import tracemalloc
from typing import Any, Callable, Dict, List

import pytest

import caisson
from caisson import _core, _ops, _term
from caisson._core import Call, Core, Event
from caisson._term import Atom, BadTerm, decode, frame

HERE = pathlib.Path(__file__).resolve().parent

# ---- terms --------------------------------------------------------------------------------------

TERMS: List[Any] = [
    0,
    255,
    256,
    -1,
    2**31,
    2**63,
    -(2**70),
    b"",
    b"x" * 300,
    Atom("name"),
    True,
    False,
    None,
    (),
    (Atom("a"), 1),
    [],
    [1, [2]],
    {"key": b"value"},
    {b"A": b"1"},
]


@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_a_term_comes_back(term: Any) -> None:
    assert decode(frame(term)[4:]) == term


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x83",
        b"\x82a\x01",
        b"\x83a",
        b"\x83m\xff\xff\xff\xffx",
        b"\x83l\xff\xff\xff\xff" + b"a\x01" * 8,
        b"\x83t\x00\x00\x00\x02w\x01aa\x01w\x01aa\x02",
        b"\x83h\x01" * 2,
        b"\x83" + b"l\x00\x00\x00\x01" * 70 + b"j" * 71,
        b"\x83P\x00\x00\x00\x01x\x9c\x03\x00\x00\x00\x00\x01",
        b"\x83F\x7f\xf0\x00\x00\x00\x00\x00\x00",
        b"\x83F\x7f\xf8\x00\x00\x00\x00\x00\x00",
        b"\x83w\x02\xff\xfe",
        b"\x83w\x01\x00",
        b"\x83n\x01\x02\x01",
        b"\x83t\x00\x00\x00\x01a\x01a\x01",
        b"\x83l\x00\x00\x00\x01a\x01a\x01",
        b"\x83a\x01a",
        b"\x83q",
    ],
    ids=repr,
)
def test_what_is_no_term_is_refused(data: bytes) -> None:
    with pytest.raises(BadTerm):
        decode(data)


def test_too_many_parts_are_refused() -> None:
    assert len(decode(frame([0] * 200000)[4:])) == 200000
    with pytest.raises(BadTerm):
        decode(b"\x83l" + struct.pack(">I", 300000) + b"a\x01" * 300000 + b"j")


def test_damaged_terms_are_terms_or_refused() -> None:
    whole = frame((Atom("reply"), 7, {"a": [1, (2, None)], "b": b"bytes", "c": 2**40}))[4:]
    rng = random.Random(5)
    refused = 0
    for _ in range(20000):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            decode(bytes(data[: rng.randint(1, len(data))]))
        except BadTerm:
            refused += 1
    assert refused > 10000


# ---- frames -------------------------------------------------------------------------------------

READY = {"version": 1, "verbs": [Atom("exec"), Atom("read"), Atom("wait"), Atom("stat")], "enforces": []}
STAT = {"type": Atom("file"), "size": 1, "mode": 0o644, "mtime_ms": 0}


class Peer:
    """A core, and what it said and told."""

    def __init__(self) -> None:
        self.core = Core("caisson")
        self.say(Atom("ready"), READY)
        assert self.core.is_ready

    def say(self, *term: Any) -> None:
        self.core.receive(frame(term), 0.0)

    def said(self) -> List[Any]:
        data, frames = bytes(self.core.out), []
        self.core.out.clear()
        while data:
            size = int.from_bytes(data[:4], "big")
            frames.append(decode(data[4 : 4 + size]))
            data = data[4 + size :]
        return frames

    def begin(self, op: Any, takes_pieces: bool = False) -> "tuple[Call[Any], List[Event]]":
        events: List[Event] = []
        call: "Call[Any]" = Call(op, events.append, takes_pieces)
        self.core.begin(call, 0.0)
        return call, events


@pytest.fixture
def peer() -> Peer:
    return Peer()


def test_bytes_come_in_any_pieces(peer: Peer) -> None:
    call, events = peer.begin(_ops.stat("x"))
    for byte in frame((Atom("reply"), 1, STAT)):
        assert not events
        peer.core.receive(bytes([byte]), 0.0)
    assert call.result().size == 1


HOSTILE: Dict[str, Callable[[Peer], None]] = {
    "a second ready": lambda peer: peer.say(Atom("ready"), READY),
    "an answer to nothing": lambda peer: peer.say(Atom("reply"), 9, STAT),
    "an answer to a name": lambda peer: peer.say(Atom("reply"), Atom("true"), STAT),
    "a reply without its keys": lambda peer: peer.say(Atom("reply"), 1, {}),
    "a reply of another type": lambda peer: peer.say(Atom("reply"), 1, {**STAT, "size": b"1"}),
    "a negative size": lambda peer: peer.say(Atom("reply"), 1, {**STAT, "size": -1}),
    "a boolean size": lambda peer: peer.say(Atom("reply"), 1, {**STAT, "size": True}),
    "data that was not asked for": lambda peer: peer.say(Atom("data"), 1, Atom("stdout"), b"x"),
    "data of no stream": lambda peer: peer.say(Atom("data"), 1, Atom("stdin"), b"x"),
    "a call": lambda peer: peer.say(Atom("call"), 1, Atom("exec"), {}),
    "a message without arguments": lambda peer: peer.say(Atom("reply")),
    "a message that is a list": lambda peer: peer.core.receive(frame([1]), 0.0),
    "a frame without end": lambda peer: peer.core.receive(b"\xff\xff\xff\xff", 0.0),
    "a window of too much": lambda peer: peer.say(Atom("window"), 1, 1 << 40),
    "a long failure": lambda peer: peer.say(Atom("failed"), 1, Atom("eio"), b"x" * 5000),
    "a fact that is none": lambda peer: peer.say(Atom("fact"), {"event": b"x"}),
}


@pytest.mark.parametrize("say", HOSTILE.values(), ids=HOSTILE)
def test_what_is_out_of_turn_ends_it(peer: Peer, say: Callable[[Peer], None]) -> None:
    call, events = peer.begin(_ops.stat("x"))
    say(peer)
    assert isinstance(peer.core.error, caisson.Lost)
    assert events == [(_core.END, None, None)]
    with pytest.raises(caisson.Lost):
        call.result()
    later, _ = peer.begin(_ops.stat("x"))
    with pytest.raises(caisson.Lost):
        later.result()


def test_more_data_than_the_window_ends_it(peer: Peer) -> None:
    peer.begin(_ops.exec("x"), takes_pieces=True)
    for _ in range(4):
        peer.say(Atom("data"), 1, Atom("stdout"), b"x" * 65536)
    assert peer.core.error is None
    peer.say(Atom("data"), 1, Atom("stdout"), b"x")
    assert isinstance(peer.core.error, caisson.Lost)


def test_what_is_taken_is_granted_again(peer: Peer) -> None:
    call, _ = peer.begin(_ops.exec("x"), takes_pieces=True)
    peer.said()
    peer.say(Atom("data"), 1, Atom("stdout"), b"x" * 65536)
    assert peer.said() == []
    peer.core.took(call, 65536)
    assert peer.said() == [("window", 1, 65536)]


def test_a_key_of_a_later_version_is_not_looked_at(peer: Peer) -> None:
    call, _ = peer.begin(_ops.stat("x"))
    peer.say(Atom("reply"), 1, {**STAT, "inode": 5})
    assert call.result().type == "file"


def test_input_waits_for_the_window(peer: Peer) -> None:
    peer.begin(_ops.exec("cat", stdin=b"x" * 300000))
    sizes = [len(item[3]) for item in peer.said() if item[0] == "data"]
    assert sum(sizes) == _core.WINDOW and max(sizes) == 65536
    peer.say(Atom("window"), 1, 100000)
    rest = peer.said()
    assert len(rest[0][3]) == 300000 - _core.WINDOW and rest[1][3] == "eof"


def test_calls_queue_and_leave_a_way_past_those_that_wait(peer: Peer) -> None:
    calls = [peer.begin(_ops.exec("sleep 9"))[0] for _ in range(100)]
    assert len(peer.said()) == _core.SLOW
    quick, _ = peer.begin(_ops.stat("x"))
    assert [item[2] for item in peer.said()] == ["stat"]
    assert quick.ref is not None and calls[50].ref is None
    peer.core.cancel(calls[50], 0.0)
    assert calls[50].is_over and isinstance(calls[50].error, caisson.Cancelled)
    peer.say(Atom("failed"), 1, Atom("eio"), b"")
    assert [item[0] for item in peer.said()] == ["call"]


def test_time(peer: Peer) -> None:
    call, events = peer.begin(_ops.read("x", timeout=2))
    assert peer.core.deadline() == 2.0
    peer.core.expire(1.9)
    assert not call.is_late
    peer.core.expire(2.0)
    assert peer.said()[-1] == ("cancel", 1)
    peer.say(Atom("failed"), 1, Atom("cancelled"), b"it was cancelled")
    with pytest.raises(caisson.Timeout):
        call.result()
    stuck, _ = peer.begin(_ops.read("x", timeout=2))
    peer.core.expire(2.0)
    peer.core.expire(2.0 + _core.CANCEL_S)
    with pytest.raises(caisson.Lost):
        stuck.result()


def test_another_version_says_both() -> None:
    core = Core("/opt/caisson")
    core.receive(frame((Atom("ready"), {**READY, "version": 7})), 0.0)
    assert isinstance(core.error, caisson.VersionMismatch)
    assert "/opt/caisson speaks version 7" in str(core.error) and caisson.__version__ in str(core.error)


def test_kept_output_is_its_halves() -> None:
    kept = caisson._results.Kept(10)
    for i in range(26):
        kept.add(bytes([65 + i]))
    assert (kept.bytes(), kept.cut(), kept.total) == (b"ABCDEVWXYZ", 16, 26)
    kept = caisson._results.Kept(10)
    kept.add(b"0123456789")
    assert (kept.bytes(), kept.cut()) == (b"0123456789", 0)


def test_a_byte_costs_a_byte() -> None:
    """A command may write in pieces of any size: what they are kept in is not theirs to choose."""
    pieces = [i.to_bytes(3, "big") for i in range(200000)]
    kept = caisson._results.Kept(400000)
    tracemalloc.start()
    for piece in pieces:
        kept.add(piece)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    text = b"".join(pieces)
    assert kept.bytes() == text[:200000] + text[-200000:]
    assert used < 2 * 400000


# ---- the two clients ----------------------------------------------------------------------------


def test_both_clients_have_the_same_calls() -> None:
    def calls(client: type) -> Dict[str, str]:
        public = {name: item for name, item in vars(client).items() if not name.startswith("_")}
        return {
            name: ", ".join(f"{p.name}: {p.default!r} {p.kind}" for p in inspect.signature(item).parameters.values())
            for name, item in public.items()
            if inspect.isfunction(item)
        }

    assert calls(caisson.Sandbox) == calls(caisson.AsyncSandbox)
    sync = inspect.signature(caisson.Sandbox.__init__).parameters
    assert list(sync) == list(inspect.signature(caisson.AsyncSandbox.__init__).parameters)
    assert len(calls(caisson.Sandbox)) > 20


def test_the_tables_are_the_documents() -> None:
    printed = subprocess.run(
        [sys.executable, str(HERE.parent / "tools/tables.py")], stdout=subprocess.PIPE, check=True, encoding="utf-8"
    ).stdout
    assert printed == (HERE.parent / "src/caisson/_tables.py").read_text(encoding="utf-8")


def test_the_codec_knows_names_before_it_decodes() -> None:
    assert _term.name_of(frame((Atom("data"), 1))[4:]) == "data"
    assert _term.name_of(b"\x83h\x01d\x00\x04data") == "data"
    assert _term.name_of(b"\x83a\x01") == ""


def test_lines_of_a_refusal_are_its_own_and_plain() -> None:
    core = Core("caisson", {})
    core.receive(frame((Atom("failed"), 1, Atom("eperm"), b"policy: no\nlimits:\n  memory: 1\x1b[2J\r\n")), 0.0)
    assert isinstance(core.error, caisson.PolicyRefused) and core.error.stage == "policy"
    assert str(core.error) == "no\nlimits:\n  memory: 1?[2J?"


def test_lines_of_what_comes_from_inside_are_none(peer: Peer) -> None:
    call, _ = peer.begin(_ops.stat("x"))
    peer.say(Atom("failed"), 1, Atom("enoent"), b"no x\ncaisson: all is well")
    assert str(call.error) == "no x?caisson: all is well"
