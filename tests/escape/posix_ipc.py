"""Opens POSIX queues and shared memory of the host by name.

Would gain: the messages and the memory of the host's services.
"""
import ctypes
import os

from inside import attempt, main, opens, sysc


def attack(name):
    attempt("queue", sysc, "mq_open", name.encode(), os.O_RDWR | os.O_NONBLOCK, 0, 0)
    attempt("shared memory", opens, f"/dev/shm/{name}", os.O_RDONLY)
    attempt("shared memory, writing", opens, f"/dev/shm/{name}", os.O_RDWR)
    attempt("the list", lambda: name in os.listdir("/dev/shm"))


def host(case):
    libc = ctypes.CDLL(None, use_errno=True)
    name = case.token
    os.umask(0)
    queue = libc.mq_open(f"/{name}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
    fd = os.open(f"/dev/shm/{name}", os.O_CREAT | os.O_RDWR, 0o666)
    os.umask(0o022)
    assert queue >= 0, os.strerror(ctypes.get_errno())
    case.cleanups += [lambda: os.close(queue), lambda: libc.mq_unlink(f"/{name}".encode()), lambda: os.close(fd),
                      lambda: os.unlink(f"/dev/shm/{name}")]
    yield {"args": [name]}


if __name__ == "__main__":
    main(attack)
