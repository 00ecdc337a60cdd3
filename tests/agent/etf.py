"""Erlang's external term format, as much of it as frames have.

A binary is bytes, an atom an Atom, a map a dict whose keys are atoms unless they are bytes; tuples, lists, integers and booleans are themselves.
"""
import struct


class Atom(str):
    """A text that is an atom. Equal to the same str, so that tests can say reply["type"] == "file"."""


def encode(term):
    return b"\x83" + _encode(term)


def _encode(term):
    if isinstance(term, bool):
        return _encode(Atom("true" if term else "false"))
    if isinstance(term, Atom):
        text = term.encode()
        return struct.pack(">BB", 119, len(text)) + text
    if isinstance(term, bytes):
        return struct.pack(">BI", 109, len(term)) + term
    if isinstance(term, str):
        return _encode(term.encode("utf-8", "surrogateescape"))
    if isinstance(term, int):
        return _encode_int(term)
    if isinstance(term, tuple):
        return struct.pack(">BB", 104, len(term)) + b"".join(map(_encode, term))
    if isinstance(term, list):
        return (struct.pack(">BI", 108, len(term)) + b"".join(map(_encode, term)) if term else b"") + b"\x6a"
    if isinstance(term, dict):
        pairs = [_encode(key if isinstance(key, bytes) else Atom(key)) + _encode(value) for key, value in term.items()]
        return struct.pack(">BI", 116, len(pairs)) + b"".join(pairs)
    raise TypeError(term)


def _encode_int(value):
    if 0 <= value < 256:
        return struct.pack(">BB", 97, value)
    if -2**31 <= value < 2**31:
        return struct.pack(">Bi", 98, value)
    size = (abs(value).bit_length() + 7) // 8
    return struct.pack(">BBB", 110, size, value < 0) + abs(value).to_bytes(size, "little")


def decode(data):
    assert data[0] == 131, data[:1]
    term, at = _decode(data, 1)
    assert at == len(data), "bytes after the term"
    return term


def _take(data, at, layout):
    return *struct.unpack_from(layout, data, at), at + struct.calcsize(layout)


def _many(data, at, count):
    items = []
    for _ in range(count):
        item, at = _decode(data, at)
        items.append(item)
    return items, at


def _decode(data, at):
    tag, at = data[at], at + 1
    if tag in (97, 98):
        return _take(data, at, ">B" if tag == 97 else ">i")
    if tag == 110:
        size, sign, at = _take(data, at, ">BB")
        value = int.from_bytes(data[at:at + size], "little")
        return -value if sign else value, at + size
    if tag in (119, 118):
        size, at = _take(data, at, ">B" if tag == 119 else ">H")
        text = data[at:at + size].decode()
        return {"true": True, "false": False, "null": None}.get(text, Atom(text)), at + size
    if tag == 70:
        return _take(data, at, ">d")
    if tag == 109:
        size, at = _take(data, at, ">I")
        return data[at:at + size], at + size
    if tag == 104:
        size, at = _take(data, at, ">B")
        items, at = _many(data, at, size)
        return tuple(items), at
    if tag == 106:
        return [], at
    if tag == 108:
        size, at = _take(data, at, ">I")
        items, at = _many(data, at, size)
        assert data[at] == 106
        return items, at + 1
    if tag == 116:
        size, at = _take(data, at, ">I")
        items, at = _many(data, at, 2 * size)
        return dict(zip(items[::2], items[1::2])), at
    raise ValueError(f"tag {tag}")
