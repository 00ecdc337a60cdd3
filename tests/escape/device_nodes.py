"""Makes device nodes, and an overlay's whiteouts.

Would gain: the disk and the memory of the host as files.
"""
import os
import stat

from inside import attempt, control, main, sysc


def attack():
    scratch = os.environ["TMPDIR"]
    control("a FIFO", os.mkfifo, f"{scratch}/fifo")
    for place in (scratch, "/dev", "/dev/shm", os.getcwd()):
        attempt(f"memory in {place}", os.mknod, f"{place}/mem", stat.S_IFCHR | 0o666, os.makedev(1, 1))
        attempt(f"disk in {place}", os.mknod, f"{place}/disk", stat.S_IFBLK | 0o666, os.makedev(8, 0))
        attempt(f"whiteout in {place}", os.mknod, f"{place}/white", stat.S_IFCHR, 0)
        attempt(f"null in {place}", os.mknod, f"{place}/null2", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    attempt("with high bits", sysc, "mknodat", -100, f"{scratch}/h".encode(), stat.S_IFCHR | 1 << 32, os.makedev(1, 1))
    attempt("a socket", os.mknod, f"{scratch}/sock", stat.S_IFSOCK | 0o666)


if __name__ == "__main__":
    main(attack)
