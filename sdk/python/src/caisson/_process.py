"""The caisson command: where it is, how it is started, what it says when it does not."""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import socket
import struct
import subprocess
import weakref
from typing import Mapping, Optional, Tuple

from ._errors import AccessDenied, CaissonError, Invalid, NotInstalled, error_of, plain

SAID_BYTES = 4096


def find_program(program: Optional[str]) -> str:
    """The command: as given, else $CAISSON, else on PATH."""
    named = program or os.environ.get("CAISSON")
    if named:
        path = shutil.which(named)
        if path is None:
            raise NotInstalled(
                f"{named} is no program: give Sandbox(program=…) or $CAISSON the path of the caisson command",
                "enoent",
                "open",
            )
        return path
    path = shutil.which("caisson")
    if path is None:
        raise NotInstalled(
            "there is no caisson command on PATH: build it (`make && make install` in Caisson's tree), "
            "or name it in $CAISSON or Sandbox(program=…)",
            "enoent",
            "open",
        )
    return path


_children: "weakref.WeakSet[Child]" = weakref.WeakSet()


def _after_fork() -> None:
    """A fork has no sandbox, and must hold none open when its parent dies."""
    for child in list(_children):
        child.hang_up()


os.register_at_fork(after_in_child=_after_fork)


class Child:
    """A process that serves one sandbox: our end of its socket, and what it says on stderr."""

    def __init__(self, sock: socket.socket, process: "Optional[subprocess.Popen[bytes]]", said_fd: int) -> None:
        self.sock, self.process, self.said_fd = sock, process, said_fd
        self.owner = os.getpid()
        _children.add(self)

    def said(self) -> str:
        """What it wrote before it ended, as one line."""
        if self.said_fd < 0:
            return ""
        data = os.pread(self.said_fd, 1024, 0).split(b"\0")[0]
        return " ".join(plain(line) for line in data.strip().split(b"\n"))

    def hang_up(self) -> None:
        """Closes our end: whoever has no caller ends. In a fork this is all that may be done."""
        self.sock.close()
        if self.said_fd >= 0:
            os.close(self.said_fd)
            self.said_fd = -1

    def reap(self, wait_s: float) -> None:
        """Waits for its end, at most so long, and kills it then."""
        if self.process is None or self.owner != os.getpid():
            return
        try:
            fd = os.pidfd_open(self.process.pid)
        except OSError:  # the host reaped it already
            self.process.poll()
            return
        ended = select.poll()
        ended.register(fd, select.POLLIN)
        if not ended.poll(wait_s * 1000):
            self.process.kill()
        self.process.wait()
        os.close(fd)


def _said_file() -> int:
    """A file that cannot grow: a monitor that goes on talking fills no memory."""
    fd = os.memfd_create("caisson-said", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, SAID_BYTES)
    seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def start(program: str) -> Child:
    """Starts `caisson port`, which serves one sandbox. It has its own session: a Ctrl-C in our terminal is ours to answer."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    said = -1
    try:
        said = _said_file()
        process = subprocess.Popen(
            [program, "port"], stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=said, start_new_session=True
        )
    except OSError as error:
        ours.close()
        if said >= 0:
            os.close(said)
        raise CaissonError(f"cannot start {program}: {error.strerror}", "enoexec", "open") from error
    finally:
        theirs.close()
    ours.setblocking(False)
    return Child(ours, process, said)


# ---- joining ------------------------------------------------------------------------------------


def place(environ: Mapping[str, str]) -> str:
    """The folder of the sockets of sandboxes that stay."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        return f"{runtime}/caisson"
    return "/run/caisson" if os.geteuid() == 0 else f"/tmp/caisson-{os.geteuid()}"


def _address(sandbox: str) -> Tuple[str, int]:
    """The path of a socket, and a descriptor that it goes by or -1."""
    if "/" in sandbox:
        return sandbox, -1
    folder = place(os.environ)
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(fd)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        os.close(fd)
        raise AccessDenied(f"{folder} must belong to you and be closed to others (chmod 700)", "eperm", "attach")
    return f"/proc/self/fd/{fd}/{sandbox}.sock", fd


def join(sandbox: str) -> Child:
    """Connects to a sandbox of `caisson up`, by its name or its socket's path."""
    if not sandbox or "\0" in sandbox or ("/" not in sandbox and not sandbox[0].isalnum()):
        raise Invalid(f"{sandbox[:80]!r} is no name of a sandbox", "invalid", "attach")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fd = -1
    try:
        path, fd = _address(sandbox)
        sock.connect(path)
        _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        # Who listens there could be anybody, where the folder is everybody's.
        if uid not in (0, os.geteuid()):
            raise AccessDenied(f"{sandbox} is user {uid}'s, neither yours nor root's", "eperm", "attach")
    except OSError as error:
        sock.close()
        code = _ERRNO.get(error.errno or 0, "eio")
        raise error_of(code, "attach", f"no sandbox {sandbox} is up: {error.strerror}") from error
    except CaissonError:
        sock.close()
        raise
    finally:
        if fd >= 0:
            os.close(fd)
    sock.setblocking(False)
    return Child(sock, None, -1)


_ERRNO = {2: "enoent", 13: "eacces", 111: "enoent"}
