"""Uses kernel keyrings, which know no namespaces of their own but the user's.

Would gain: keys of the caller's session (file system encryption, Kerberos), and a helper program
that the kernel starts as root for request_key.
"""
from inside import main, reach, sysc


def attack():
    for special in range(-8, 0):
        reach(f"keyctl: id of {special}", sysc, "keyctl", 0, special, 1)
        reach(f"keyctl: read {special}", sysc, "keyctl", 11, special, 0, 0)
    reach("new session", sysc, "keyctl", 1, b"mine")
    reach("persistent keyring", sysc, "keyctl", 22, -1, -2)
    reach("add_key", sysc, "add_key", b"user", b"csn", b"x", 1, -4)
    reach("request_key", sysc, "request_key", b"user", b"csn", b"x", -4)


if __name__ == "__main__":
    main(attack)
