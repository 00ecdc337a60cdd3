"""A wall of one's own: answers the frames of docs/protocol.md and keeps files of up to 64 KiB in a dictionary. caisson.yaml:
    {backend: command, command: {argv: [/usr/bin/python3, /where/dictionary.py], enforces: [fs-view, fs-write, net-none, …]}}"""
import io, os, struct, sys
Atom, files = type("Atom", (str,), {}), {(): None}  # the parts of a path -> its bytes; None for a folder
def encode(t):
    if isinstance(t, Atom): return struct.pack("BB", 119, len(t)) + t.encode()
    if isinstance(t, bytes): return struct.pack(">BI", 109, len(t)) + t
    if isinstance(t, int): return struct.pack("<BBBQ", 110, 8, 0, t)
    if isinstance(t, tuple): return struct.pack("BB", 104, len(t)) + b"".join(map(encode, t))
    if isinstance(t, list): return b"".join([struct.pack(">BI", 108, len(t)), *map(encode, t)] if t else []) + b"\x6a"
    return struct.pack(">BI", 116, len(t)) + b"".join(encode(Atom(key)) + encode(value) for key, value in t.items())
def decode(f):
    tag = f.read(1)[0]
    if tag in (106, 97): return f.read(1)[0] if tag == 97 else []
    if tag in (98, 110): return int.from_bytes(f.read(4), "big", signed=True) if tag == 98 else int.from_bytes(f.read(f.read(2)[0]), "little")
    size = f.read(1)[0] if tag in (104, 119) else int.from_bytes(f.read(4), "big")
    if tag in (109, 119): return f.read(size) if tag == 109 else Atom(f.read(size).decode())
    if tag == 116: return {decode(f): decode(f) for _ in range(size)}
    return [decode(f) for _ in range(size + (tag == 108))][:size]
def place(path, wanted=None):  # wanted: "file" or "any", which must be there; None: a file that is or is to be
    parts = []
    for part in path.split(b"/"):
        if part == b".." or path[:1] == b"/": raise OSError("einval", "paths here begin in the workspace and go down")
        if files.get(tuple(parts)) is not None: raise OSError("enotdir", "a file is no folder")
        parts += [part] * (part not in (b"", b"."))
    if wanted and tuple(parts) not in files: raise OSError("enoent", "there is nothing of that name")
    if wanted != "any" and files.get(tuple(parts), b"") is None: raise OSError("eisdir", "it is a folder")
    return tuple(parts)
def read(path, offset=0, length=65536):
    data = files[place(path, "file")][offset:offset + length]
    return {"bytes": data, "size": len(data)}
def write(path, bytes, mode=0):
    if len(bytes) > 65536: raise OSError("efbig", "64 KiB is the most")
    return files.update({place(path)[:i]: None for i in range(len(place(path)))} | {place(path): bytes}) or {}
def edit(path, old, new):
    at, text = place(path, "file"), files[place(path, "file")]
    if not old: raise OSError("einval", "an empty text is everywhere")
    count = sum(text.startswith(old, i) for i in range(len(text)))
    if count == 1: write(path, text.replace(old, new))
    return {"occurrences": count, "content": files[at]}
def list_(path, kinds=("file", "directory")):
    if files[at := place(path, "any")] is not None: raise OSError("enotdir", "it is a file")
    inside = [{"name": p[-1], "type": Atom(kinds[files[p] is None]), "size": len(files[p] or b"")} for p in sorted(files) if p and p[:-1] == at]
    return {"entries": inside, "truncated": Atom("false")}
def remove(path, recursive="false"):
    inside = [p for p in files if p[:len(at)] == at] if (at := place(path, "any")) else []
    if len(inside) != 1 and recursive != "true": raise OSError("enotempty", "it is not empty")
    return {0: files.pop(p) for p in inside} and {}
verbs, coming = {"read": read, "write": write, "edit": edit, "list": list_, "remove": remove}, {}  # Ref -> a write
def answer(ref, verb, args):
    try: return Atom("reply"), ref, verbs[verb](**args)
    except OSError as why: return Atom("failed"), ref, Atom(why.args[0]), why.args[1].encode()
    except (KeyError, TypeError): return Atom("failed"), ref, Atom("not_supported"), b"a dictionary cannot do that"
def send(frame): os.writev(1, [struct.pack(">I", 1 + len(encode(frame))), b"\x83", encode(frame)])
while head := sys.stdin.buffer.read(4):  # its end is ours
    name, ref, *rest = *decode(io.BytesIO(sys.stdin.buffer.read(int.from_bytes(head, "big"))[1:])), None
    if name == "init": send((Atom("ready"), {"version": 1, "verbs": [*map(Atom, verbs)], "enforces": []}))
    elif name == "call" and rest[1].pop("stdin", "") == "true": coming[ref] = rest[0], rest[1] | {"bytes": b""}
    elif name == "data" and ref in coming and rest[1] != "eof" and len(coming[ref][1]["bytes"]) <= 65536: coming[ref][1]["bytes"] += rest[1]
    elif name == "call" or name == "data" and ref in coming: send(answer(ref, *(rest[:2] if name == "call" else coming.pop(ref))))
