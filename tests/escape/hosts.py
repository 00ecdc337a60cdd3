"""What attacks share on the host: listeners that must hear nothing, files that must not change."""
import contextlib
import hashlib
import os
import pathlib
import socket


class Listeners:
    """Sockets of the host. silent(): nobody connected and nothing was sent."""

    def __init__(self, case):
        self.case, self.sockets = case, []

    def add(self, family, kind, address):
        made = socket.socket(family, kind)
        made.bind(address)
        made.setblocking(False)
        if kind != socket.SOCK_DGRAM:
            made.listen(16)
        if family == socket.AF_UNIX and isinstance(address, str) and not address.startswith("\0"):
            os.chmod(address, 0o777)
        self.sockets.append(made)
        self.case.cleanups.append(made.close)
        return made

    def unix(self, kind, address):
        return self.add(socket.AF_UNIX, kind, str(address))

    def inet(self, kind, address="127.0.0.1"):
        """Returns the port."""
        return self.add(socket.AF_INET, kind, (address, 0)).getsockname()[1]

    def heard(self):
        count = 0
        for listener in self.sockets:
            with contextlib.suppress(BlockingIOError):
                if listener.type == socket.SOCK_DGRAM:
                    listener.recv(1)
                else:
                    listener.accept()[0].close()
                count += 1
        return count

    def silent(self):
        return self.heard() == 0


def address_of_host():
    """An address of this machine that is not the loopback's; None: it has none."""
    with contextlib.suppress(OSError):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
    return None


def picture(*paths):
    """Contents, kinds and rights of everything beneath; compared before and after."""
    seen = {}
    for top in paths:
        for path in [pathlib.Path(top), *sorted(pathlib.Path(top).rglob("*"))]:
            st = path.lstat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
            seen[str(path)] = (oct(st.st_mode), st.st_uid, st.st_nlink if not path.is_dir() else 0, digest)
    return seen


def is_alive(process):
    return process.poll() is None


def state_of(process):
    """R, S, T …"""
    return pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
