"""Who may include what. A room is a folder under src/; what it may use says which process its
code runs in, with what privilege, reading whose input. ARCHITECTURE.md prints the same table,
and this check compares the two.
"""
import os
import re

from . import source

# In order: nothing may use a room that stands below it, except where its line says so.
ROOMS = {
    "base": [],
    "wire": ["base"],
    "plan": ["base"],
    "policy": ["base", "plan"],
    "audit": ["base"],
    "os": ["base"],
    "launch": ["base", "plan", "os"],
    "backend": ["base", "wire", "plan", "os", "launch"],
    "vfs": ["base"],
    "shell": ["base", "vfs"],
    "search": ["base"],
    "agent": ["base", "wire", "os", "search", "vfs", "shell"],
    "medium": ["base", "wire", "policy", "audit"],
    "monitor": ["base", "wire", "plan", "policy", "audit", "os", "launch", "backend", "agent", "medium"],
    "jobs": ["base", "plan", "policy", "audit", "monitor"],
    "report": [],
    "egress": ["base", "policy", "audit", "os"],
    "client": ["base", "wire", "medium"],
    "serve": ["base", "wire", "client", "audit"],
    "cli": ["base", "wire", "plan", "os", "backend", "client", "monitor", "policy", "audit", "jobs", "medium", "serve"],
}
# A library belongs to the rooms whose work it is; anywhere else it would grow what a wall trusts.
LIBRARIES = {
    "yaml.h": {"policy"},
    "jansson.h": {"audit", "backend", "monitor", "jobs", "cli", "serve", "client"},
    "openssl/": {"base", "audit", "policy", "medium"},
    "seccomp.h": set(),  # a build tool's: no room links it
    "microhttpd.h": {"serve"},
    "pcre2.h": {"search"},
    "sqlite3.h": {"shell"},
    "archive": {"shell"},
}
# Decisions ask neither the machine nor the clock, so that a test can show every one of them.
PURE = {"plan", "policy"}
IMPURE = re.compile(r"^(sys/|linux/|fcntl\.h|unistd\.h|time\.h|dirent\.h|pwd\.h|base/(fd|clock|loop)\.h)")
HEADERS = ("caisson.h", "caisson_gates.h")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def check(root, say):
    count = 0
    for file in source.files(root, ("src", "include")):
        room = file.path.split("/")[1] if file.path.startswith("src/") else ""
        if room and room not in ROOMS:
            say(file.path, 1, f"src/{room} is not in the table of rooms (tools/checks/rooms.py)")
            continue
        for match in INCLUDE.finditer(file.text):
            line = file.text.count("\n", 0, match.start()) + 1
            count += 1
            if room:
                ours(root, file.path, line, room, match, say)
            else:
                public(file.path, line, match.group(2), say)
    architecture(root, say)
    return f"{count} includes, {len(ROOMS)} rooms"


def ours(root, path, line, room, match, say):
    quoted, name = match.group(1) == '"', match.group(2)
    for library, rooms in LIBRARIES.items():
        if name.startswith(library) and room not in rooms:
            say(path, line, f"{room} may not use <{name}>")
    if room in PURE and IMPURE.match(name):
        say(path, line, f"{room} is pure: no I/O, no clock, no Linux, so no {name}")
    if not quoted:
        return
    other = name.split("/")[0]
    if name in HEADERS and room in ("client", "cli", "serve"):
        return
    if "/" not in name or ".." in name:
        say(path, line, f'"{name}": write it from src/, "{room}/{os.path.basename(name)}"')
    elif other not in ROOMS:
        say(path, line, f"{name}: no such room")
    elif other != room and other not in ROOMS[room]:
        allowed = " ".join(ROOMS[room]) or "nothing"
        say(path, line, f"{room} may not include {other} (it may: {allowed})")


def public(path, line, name, say):
    """A caller may compile the public header as C11 or C++ on any system."""
    if name not in (*HEADERS, "stddef.h", "stdint.h", "stdbool.h", "sys/types.h"):
        say(path, line, f"{name} in a public header: only stddef, stdint, stdbool and sys/types")


def architecture(root, say):
    path = os.path.join(root, "ARCHITECTURE.md")
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for number, text in enumerate(lines, 1):
        match = re.match(r"src/(\w+)/ .*→ (.+)$", text)
        if not match or match.group(1) not in ROOMS:
            continue
        said = match.group(2).split()
        true = ROOMS[match.group(1)] or ["libc"]
        if said != true:
            say("ARCHITECTURE.md", number, f"src/{match.group(1)}/ may use {' '.join(true)}, not {' '.join(said)}")
