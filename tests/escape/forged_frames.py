"""Writes what looks like the agent's frames to every descriptor it has.

Would gain: a result of one's own making: exit 7, no violations.
"""
import os
import struct

from inside import attempt, main, opens


def frame(term):
    return struct.pack(">I", len(term) + 1) + b"\x83" + term


def attack():
    reply = (b"h\x03" + b"w\x05reply" + b"a\x01" + b"t\x00\x00\x00\x01" + b"w\x09exit_code" + b"a\x07")
    for payload in (frame(reply), frame(b"h\x02w\x05ready}"), b"\xff\xff\xff\xff", b"\x00" * 64,
                    b'{"schema": "caisson.result/1", "violations": [], "termination": {"reason": "exited"}}\n'):
        for fd in range(0, 40):
            try:
                os.write(fd, payload + b"\n")
            except OSError:
                pass
    attempt("a system file, all the same", opens, "/usr/lib/os-release", os.O_WRONLY)


def host(case):
    run = yield {}
    assert run.status == 0 and run.result["termination"]["exit_code"] == 0


if __name__ == "__main__":
    main(attack)
