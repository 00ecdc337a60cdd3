#!/usr/bin/python3
"""A wall of one's own: answers the frames of docs/protocol.md and keeps files of up to 64 KiB in a dictionary. caisson.yaml:
    {backend: command, command: {argv: [/usr/bin/python3, /where/dictionary.py], enforces: [fs-view, fs-write, net-none, …]}}"""
import io, struct, sys
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
        if path[:1] == b"/" or part == b".." and not parts: raise OSError("einval", "only the workspace is here")
        if part == b".." or files.get(tuple(parts)) is not None: raise OSError("enotdir" if part != b".." else "einval", "no such way")
        parts += [part] * (part not in (b"", b"."))
    if wanted and tuple(parts) not in files: raise OSError("enoent", "there is nothing of that name")
    if wanted != "any" and files.get(tuple(parts), b"") is None: raise OSError("eisdir", "it is a folder")
    return tuple(parts)
def read(path, offset=0, length=65536):
    data = files[place(path, "file")][offset:offset + length]
    return {"bytes": data, "size": len(data)}
def write(path, bytes, mode=0):
    at = place(path)
    files.update({at[:i]: None for i in range(len(at))} | {at: bytes})
    return {}
def edit(path, old, new):
    at, text = place(path, "file"), files[place(path, "file")]
    if not old: raise OSError("einval", "an empty text is everywhere")
    count = sum(text.startswith(old, i) for i in range(len(text)))
    files[at] = text.replace(old, new) if count == 1 else text
    return {"occurrences": count, "content": files[at]}
def list_(path, kinds=("file", "directory")):
    if files[at := place(path, "any")] is not None: raise OSError("enotdir", "it is a file")
    entries = [{"name": p[-1], "type": Atom(kinds[files[p] is None]), "size": len(files[p] or b"")} for p in sorted(files) if p and p[:-1] == at]
    return {"entries": entries, "truncated": Atom("false")}
def remove(path, recursive="false"):
    inside = [p for p in files if p[:len(at)] == at] if (at := place(path, "any")) else []
    if len(inside) != 1 and recursive != "true": raise OSError("enotempty", "it is not empty")
    return {files.pop(p): 0 for p in inside} and {}
verbs = {"read": read, "write": write, "edit": edit, "list": list_, "remove": remove}
while head := sys.stdin.buffer.read(4):  # its end is ours
    name, *rest = decode(io.BytesIO(sys.stdin.buffer.read(int.from_bytes(head, "big"))[1:]))
    frame = Atom("ready"), {"version": 1, "verbs": [*map(Atom, verbs)], "enforces": []}
    try: frame = (Atom("reply"), rest[0], verbs[rest[1]](**rest[2])) if name == "call" else frame
    except OSError as why: frame = Atom("failed"), rest[0], Atom(why.args[0]), why.args[1].encode()
    except (KeyError, TypeError): frame = Atom("failed"), rest[0], Atom("not_supported"), b"a dictionary cannot do that"
    data = b"\x83" + encode(frame)
    if name in ("init", "call"): sys.stdout.buffer.write(struct.pack(">I", len(data)) + data)
    sys.stdout.flush()
