"""Weakens the protection of its memory by another personality, and maps page zero.

Would gain: executable stacks and known addresses in whatever is executed next; null pointers of the
kernel that point to one's own data.
"""
from inside import attempt, control, main, sysc


def attack():
    control("ask", sysc, "personality", 0xffffffff)
    for name, persona in (("READ_IMPLIES_EXEC", 0x400000), ("ADDR_COMPAT_LAYOUT", 0x200000),
                          ("MMAP_PAGE_ZERO", 0x100000), ("LINUX32", 8), ("UNAME26", 0x20000), ("BSD", 6),
                          ("STICKY_TIMEOUTS", 0x4000000)):
        attempt(name, sysc, "personality", persona)
    attempt("page zero", lambda: sysc("mmap", 0, 4096, 3, 0x32, -1, 0) == 0)


if __name__ == "__main__":
    main(attack)
