"""Erlang's external term format, as much of it as frames have, and frames themselves.

What is decoded comes from behind a wall, so everything is bounded before memory is taken for it: bytes
by the frame, nesting by DEPTH, parts by PARTS. Functions, compressed terms and whatever else the format knows are
refused. An atom is an Atom, a binary bytes, a map a dict, a tuple a tuple; true, false and null are Python's own.
"""

from __future__ import annotations

import struct
from typing import Any, Dict, List, Tuple

FRAME_MAX = 16 << 20
DEPTH = 64
PARTS = 262144
VERSION = 131

_SMALL_INT, _INT, _SMALL_BIG, _LARGE_BIG = 97, 98, 110, 111
_FLOAT = 70
_ATOM, _SMALL_ATOM, _ATOM_UTF8, _SMALL_ATOM_UTF8 = 100, 115, 118, 119
_SMALL_TUPLE, _LARGE_TUPLE, _NIL, _STRING, _LIST, _BINARY, _MAP = 104, 105, 106, 107, 108, 109, 116

_U16, _U32, _I32, _F64 = struct.Struct(">H"), struct.Struct(">I"), struct.Struct(">i"), struct.Struct(">d")
_FRAME_ATOM = struct.Struct(">BBBB")


class BadTerm(ValueError):
    """The bytes are no term that a frame may have."""


class Atom(str):
    """A name, as opposed to bytes. Equal to the same str."""

    __slots__ = ()


# ---- encoding -----------------------------------------------------------------------------------


def frame(term: object) -> bytes:
    """A term with its length before it."""
    out = bytearray(b"\0\0\0\0\x83")
    _put(out, term)
    if len(out) - 4 > FRAME_MAX:
        raise BadTerm(f"a frame is at most {FRAME_MAX} bytes, this would be {len(out) - 4}")
    _U32.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def _put_name(out: bytearray, text: str) -> None:
    name = text.encode("utf-8")
    if len(name) > 255:
        raise BadTerm("a name is at most 255 bytes")
    out += bytes((_SMALL_ATOM_UTF8, len(name)))
    out += name


def _put_int(out: bytearray, value: int) -> None:
    if 0 <= value < 256:
        out += bytes((_SMALL_INT, value))
    elif -(2**31) <= value < 2**31:
        out.append(_INT)
        out += _I32.pack(value)
    else:
        size = (abs(value).bit_length() + 7) // 8
        if size > 255:
            raise BadTerm("a number is at most 255 bytes")
        out += bytes((_SMALL_BIG, size, value < 0))
        out += abs(value).to_bytes(size, "little")


def _put(out: bytearray, term: object) -> None:
    if isinstance(term, (bytes, bytearray, memoryview)):
        out.append(_BINARY)
        out += _U32.pack(len(term))
        out += term
    elif isinstance(term, bool) or term is None:
        _put_name(out, "null" if term is None else "true" if term else "false")
    elif isinstance(term, Atom):
        _put_name(out, term)
    elif isinstance(term, str):
        _put(out, term.encode("utf-8", "surrogateescape"))
    elif isinstance(term, int):
        _put_int(out, term)
    elif isinstance(term, tuple):
        if len(term) > 255:
            raise BadTerm("a tuple has at most 255 parts")
        out += bytes((_SMALL_TUPLE, len(term)))
        for item in term:
            _put(out, item)
    elif isinstance(term, list):
        if term:
            out.append(_LIST)
            out += _U32.pack(len(term))
            for item in term:
                _put(out, item)
        out.append(_NIL)
    elif isinstance(term, dict):
        out.append(_MAP)
        out += _U32.pack(len(term))
        for key, value in term.items():
            _put(out, Atom(key) if type(key) is str else key)
            _put(out, value)
    else:
        raise BadTerm(f"a {type(term).__name__} is nothing that a frame may have")


# ---- decoding -----------------------------------------------------------------------------------


def decode(data: bytes) -> Any:
    """One whole term, without the length of its frame."""
    if not data or data[0] != VERSION:
        raise BadTerm("it does not begin as a term")
    reader = _Reader(data)
    try:
        term = reader.read(0)
    except (IndexError, struct.error):
        raise BadTerm("it ends in the middle") from None
    except UnicodeDecodeError:
        raise BadTerm("a name is no UTF-8") from None
    if reader.at != len(data):
        raise BadTerm("there are bytes after it")
    return term


def name_of(data: bytes) -> str:
    """The first atom of a tuple, read before the rest is; "" if there is none."""
    if len(data) < 5:
        return ""
    version, tag, _, atom = _FRAME_ATOM.unpack_from(data)
    if version != VERSION or tag != _SMALL_TUPLE:
        return ""
    if atom in (_SMALL_ATOM_UTF8, _SMALL_ATOM):
        return data[5 : 5 + data[4]].decode("latin-1")
    if atom in (_ATOM, _ATOM_UTF8) and len(data) >= 6:
        return data[6 : 6 + _U16.unpack_from(data, 4)[0]].decode("latin-1")
    return ""


class _Reader:
    """Where in the bytes a decoding is, and how many parts it has met."""

    __slots__ = ("data", "at", "parts")

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.parts = data, 1, 0

    def take(self, size: int) -> bytes:
        at = self.at
        if size > len(self.data) - at:
            raise BadTerm("it ends in the middle")
        self.at = at + size
        return self.data[at : self.at]

    def u16(self) -> int:
        (value,) = _U16.unpack_from(self.data, self.at)
        self.at += 2
        return int(value)

    def u32(self) -> int:
        (value,) = _U32.unpack_from(self.data, self.at)
        self.at += 4
        return int(value)

    def count(self, parts: int) -> int:
        """Parts that are announced: each is at least a byte."""
        if parts > len(self.data) - self.at:
            raise BadTerm("it announces more than there is")
        return parts

    def read(self, depth: int) -> Any:
        if depth > DEPTH:
            raise BadTerm(f"it is nested more than {DEPTH} levels deep")
        self.parts += 1
        if self.parts > PARTS:
            raise BadTerm(f"it has more than {PARTS} parts")
        tag = self.data[self.at]
        self.at += 1
        if tag == _BINARY:
            return self.take(self.u32())
        if tag == _SMALL_INT:
            self.at += 1
            return self.data[self.at - 1]
        reader = _READERS.get(tag)
        if reader is None:
            raise BadTerm(f"it has a part of type {tag}, which no frame has")
        return reader(self, depth)


def _read_int(reader: _Reader, _: int) -> int:
    (value,) = _I32.unpack_from(reader.data, reader.at)
    reader.at += 4
    return int(value)


def _read_big(reader: _Reader, _: int) -> int:
    size = reader.take(1)[0]
    sign = reader.take(1)[0]
    if sign > 1:
        raise BadTerm("a number has no sign")
    value = int.from_bytes(reader.take(size), "little")
    return -value if sign else value


def _read_float(reader: _Reader, _: int) -> float:
    (value,) = _F64.unpack(reader.take(8))
    if value != value or value in (float("inf"), float("-inf")):
        raise BadTerm("a number is not finite")
    return float(value)


_PLAIN = {"true": True, "false": False, "null": None}


def _atom(text: str) -> Any:
    if "\0" in text:
        raise BadTerm("a name has a zero byte")
    return _PLAIN[text] if text in _PLAIN else Atom(text)


def _read_small_atom_utf8(reader: _Reader, _: int) -> Any:
    return _atom(reader.take(reader.take(1)[0]).decode("utf-8"))


def _read_atom_utf8(reader: _Reader, _: int) -> Any:
    return _atom(_short(reader.take(reader.u16()).decode("utf-8")))


def _read_small_atom(reader: _Reader, _: int) -> Any:
    return _atom(reader.take(reader.take(1)[0]).decode("latin-1"))


def _read_atom(reader: _Reader, _: int) -> Any:
    return _atom(_short(reader.take(reader.u16()).decode("latin-1")))


def _short(text: str) -> str:
    if len(text) > 255:
        raise BadTerm("a name is at most 255 characters")
    return text


def _read_many(reader: _Reader, count: int, depth: int) -> List[Any]:
    return [reader.read(depth + 1) for _ in range(reader.count(count))]


def _read_small_tuple(reader: _Reader, depth: int) -> Tuple[Any, ...]:
    return tuple(_read_many(reader, reader.take(1)[0], depth))


def _read_large_tuple(reader: _Reader, depth: int) -> Tuple[Any, ...]:
    return tuple(_read_many(reader, reader.u32(), depth))


def _read_list(reader: _Reader, depth: int) -> List[Any]:
    items = _read_many(reader, reader.u32(), depth)
    if reader.take(1)[0] != _NIL:
        raise BadTerm("a list does not end as one")
    return items


def _read_nil(_: _Reader, __: int) -> List[Any]:
    return []


def _read_string(reader: _Reader, _: int) -> List[int]:
    size = reader.u16()
    reader.parts += size
    return list(reader.take(size))


def _read_map(reader: _Reader, depth: int) -> Dict[Any, Any]:
    pairs = reader.count(reader.u32())
    result: Dict[Any, Any] = {}
    for _ in range(pairs):
        key = reader.read(depth + 1)
        if not isinstance(key, (str, bytes)):
            raise BadTerm("the key of a map is neither a name nor bytes")
        if key in result:
            raise BadTerm("a map has a key twice")
        result[key] = reader.read(depth + 1)
    return result


_READERS = {
    _INT: _read_int,
    _SMALL_BIG: _read_big,
    _FLOAT: _read_float,
    _ATOM: _read_atom,
    _SMALL_ATOM: _read_small_atom,
    _ATOM_UTF8: _read_atom_utf8,
    _SMALL_ATOM_UTF8: _read_small_atom_utf8,
    _SMALL_TUPLE: _read_small_tuple,
    _LARGE_TUPLE: _read_large_tuple,
    _NIL: _read_nil,
    _STRING: _read_string,
    _LIST: _read_list,
    _MAP: _read_map,
}
