"""Sets extended attributes that mean something to the kernel.

Would gain: capabilities on a file of one's own, labels of other security modules, an overlay's
marks that make files of the lower layer vanish.
"""
import os

from inside import attempt, control, main


def attack():
    scratch = os.environ["TMPDIR"]
    path = f"{scratch}/file"
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    control("rights of one's own file", os.chmod, path, 0o600)
    capability = bytes.fromhex("0100000200000000ffffffff0000000000000000")
    for name, value in (("security.capability", capability), ("security.apparmor", b"x"),
                        ("security.ima", b"x"), ("trusted.overlay.opaque", b"y"), ("trusted.x", b"y")):
        attempt(f"{name} on scratch", os.setxattr, path, name, value)
        attempt(f"{name} in the workspace", os.setxattr, "attack/inside.py", name, value)
    attempt("immutable", lambda: _flags(path, 0x10))
    attempt("append only", lambda: _flags(path, 0x20))


def _flags(path, flags):
    import fcntl
    import struct
    with open(path) as file:
        fcntl.ioctl(file, 0x40086602, struct.pack("l", flags))


if __name__ == "__main__":
    main(attack)
