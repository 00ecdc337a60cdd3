"""Becomes another user.

Would gain: files of root's or of other users' that the wall shows because nobody inside may read them.
"""
import os

from inside import attempt, main, sysc


def fs_id():
    sysc("setfsuid", 0)
    return sysc("setfsuid", -1) == 0


def with_map(name, text):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)


def attack():
    for target in (0, 1, 65534, os.getuid() + 1):
        attempt(f"setuid {target}", os.setuid, target)
        attempt(f"setgid {target}", os.setgid, target)
        attempt(f"setresuid {target}", os.setresuid, target, target, target)
        attempt(f"setresgid {target}", os.setresgid, target, target, target)
        attempt(f"seteuid {target}", os.seteuid, target)
    attempt("setfsuid", fs_id)
    attempt("setgroups", os.setgroups, [0])
    attempt("no groups", os.setgroups, [])
    attempt("uid_map", with_map, "uid_map", "0 0 1")
    attempt("gid_map", with_map, "gid_map", "0 0 1")
    attempt("setgroups file", with_map, "setgroups", "allow")
    attempt("chown to root", os.chown, os.environ["TMPDIR"], 0, 0)


if __name__ == "__main__":
    main(attack)
