"""Uses the supplementary groups that the caller has.

Would gain: files that a group of the caller's may read, where a mount lends them.
"""
import os

from inside import attempt, main, reads


def attack():
    attempt("a file of the group's", reads, "group-file")
    attempt("any group but one's own", lambda: bool(set(os.getgroups()) - {os.getgid()}))


def host(case):
    if os.geteuid() == 0 and case.who == "user":
        case.groups = [54400]
    (case.ws / "group-file").write_text("group")

    def run(flags, command):
        case.give()
        case.give = lambda: None
        if os.geteuid() == 0:
            os.chown(case.ws / "group-file", 65533, 54400)
        os.chmod(case.ws / "group-file", 0o040)
        return case.run(flags, command)

    yield {"run": run}


if __name__ == "__main__":
    main(attack)
