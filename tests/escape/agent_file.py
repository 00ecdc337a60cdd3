"""Overwrites caisson's own programs, which belong to the caller in a build folder.

Would gain: the next sandbox's agent, and the next caisson that the caller starts.
"""
import os

from inside import agent, attempt, main, opens


def attack(folder):
    for name in ("caisson", "caisson-agent"):
        attempt(f"write {name}", opens, f"{folder}/{name}", os.O_WRONLY)
        attempt(f"replace {name}", os.rename, f"{os.environ['TMPDIR']}/x", f"{folder}/{name}")
        attempt(f"remove {name}", os.unlink, f"{folder}/{name}")
        attempt(f"rights of {name}", os.chmod, f"{folder}/{name}", 0o777)
    attempt("beside them", opens, f"{folder}/new", os.O_WRONLY | os.O_CREAT)
    attempt("the running agent", opens, f"/proc/{agent()}/exe", os.O_WRONLY)
    attempt("the running agent, mapped", opens, f"/proc/{agent()}/map_files", os.O_RDONLY)


def host(case):
    from hosts import picture
    folder = case.copy_programs(case.base / "bin")
    case.caisson = str(folder / "caisson")
    case.give()
    before = picture(folder)
    yield {"args": [str(folder)]}
    assert picture(folder) == before


if __name__ == "__main__":
    main(attack)
