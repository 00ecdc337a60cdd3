"""Takes all memory there is.

Would gain: the host's memory; its OOM killer then ends other people's programs.
"""
from inside import main, say


def attack():
    held = []
    for _ in range(64):
        held.append(bytearray(b"x" * (8 << 20)))
    say(attempt="half a gigabyte", got=True, errno=None)


def host(case):
    yield {"flags": ["--memory", "96MiB"]}


if __name__ == "__main__":
    main(attack)
