"""Fills the scratch place with bytes and with empty files.

Would gain: the host's disk or memory.
"""
import os
import time

from inside import attempt, main


def bytes_of(count):
    with open(f"{os.environ['TMPDIR']}/big", "wb", buffering=0) as file:
        for _ in range(count):
            file.write(b"x" * (1 << 20))


def files_of(count):
    folder = f"{os.environ['TMPDIR']}/many"
    os.mkdir(folder)
    for i in range(count):
        os.close(os.open(f"{folder}/{i}", os.O_CREAT | os.O_WRONLY))


def in_shm(count):
    with open("/dev/shm/big", "wb", buffering=0) as file:
        for _ in range(count):
            file.write(b"x" * (1 << 20))


def attack():
    attempt("twice its size", bytes_of, 32)
    time.sleep(0.3)
    attempt("the same by /dev/shm", in_shm, 32)
    os.unlink(f"{os.environ['TMPDIR']}/big")
    attempt("empty files", files_of, 20000)


def host(case):
    yield {"flags": ["-l", "scratch=16MiB"]}


if __name__ == "__main__":
    main(attack)
