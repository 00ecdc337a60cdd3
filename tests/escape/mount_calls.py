"""Changes the view of files: mounts, unmounts, moves the root.

Would gain: a writable root, the files beneath the covers, another root.
"""
import ctypes
import os

from inside import attempt, main, reach, sysc

ROOT, NONE = b"/", ctypes.c_char_p(None)
REMOUNT, BIND, RECURSIVE = 32, 4096, 16384


def attack():
    scratch = os.environ["TMPDIR"].encode()
    os.mkdir(scratch + b"/m")
    reach("tmpfs", sysc, "mount", b"none", scratch + b"/m", b"tmpfs", 0, NONE)
    reach("proc", sysc, "mount", b"none", scratch + b"/m", b"proc", 0, NONE)
    reach("bind", sysc, "mount", ROOT, scratch + b"/m", NONE, BIND | RECURSIVE, NONE)
    reach("root writable", sysc, "mount", NONE, ROOT, NONE, REMOUNT | BIND, NONE)
    reach("workspace writable", sysc, "mount", NONE, os.getcwd().encode(), NONE, REMOUNT | BIND, NONE)
    reach("overlay", sysc, "mount", b"none", scratch + b"/m", b"overlay", 0, b"lowerdir=/,upperdir=/tmp,workdir=/tmp")
    reach("umount a cover", sysc, "umount2", b"/proc/keys", 2)
    reach("umount proc", sysc, "umount2", b"/proc", 2)
    reach("umount nothing", sysc, "umount2", scratch + b"/m", 0)
    reach("pivot_root", sysc, "pivot_root", scratch, scratch)
    attempt("chroot", sysc, "chroot", scratch)
    reach("fsopen", sysc, "fsopen", b"tmpfs", 0)
    reach("fspick", sysc, "fspick", -100, ROOT, 0)
    reach("fsconfig", sysc, "fsconfig", 0, 0, 0, 0, 0)
    reach("fsmount", sysc, "fsmount", 0, 0, 0)
    reach("open_tree", sysc, "open_tree", -100, ROOT, 1)
    reach("open_tree without a clone", sysc, "open_tree", -100, ROOT, 0)
    reach("move_mount", sysc, "move_mount", -100, ROOT, -100, scratch, 0)
    reach("mount_setattr", sysc, "mount_setattr", -100, ROOT, 0, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32)
    reach("quotactl", sysc, "quotactl", 0x80000300, NONE, 0, 0)


if __name__ == "__main__":
    main(attack)
