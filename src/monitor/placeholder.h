/*
 * placeholder - an empty folder on the host in the place of a protected name that is absent
 *
 * It stands in a workspace that untrusted code writes, and it must be gone after the run, even
 * if the monitor was killed between any two of its steps. So it can be told from anything else:
 *
 *   mark   mkdir() gives it the mode of a folder that nobody may write, and the sticky bit;
 *          a folder has its mode from its first instant on
 *   note   device, inode, mode and owner, noted as soon as it is there
 *   lock   every run that relies on it holds a shared lock: two runs in one workspace share it,
 *          and the last one removes it; without the lock the first one would take the second
 *          one's protection away, because removing a folder detaches the mounts on it
 *
 * A marked folder that a lost run left is taken over like one that another run holds. Only
 * rmdir() is used: what is no longer an empty folder is not ours any more.
 */
#pragma once

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

enum { PLACEHOLDER_NAME = 256 };

enum placeholder_state {
	PLACEHOLDER_NONE,  /* never made, or it is somebody's own */
	PLACEHOLDER_MEANT, /* about to be made: only the mark tells it */
	PLACEHOLDER_HELD   /* made or shared; what follows is known */
};

/* What is noted of one, for a cleaner that shares this memory. All zero: none. */
struct placeholder_note {
	uint32_t state; /* enum placeholder_state, written last */
	uint32_t mode;
	uint64_t dev, ino;
	uint32_t uid;
};

/* Its parent is a descriptor: a path could lead elsewhere later. */
struct placeholder {
	int parent_fd; /* owned */
	int fd;        /* the lock, owned; -1: none */
	char name[PLACEHOLDER_NAME];
};

/* Has it the mark, and is it the caller's? */
int placeholder_is_marked(const struct stat *st);

/*
 * Makes it, or shares the one that is there, and keeps the note. 1: it stands; 0: something of
 * somebody else's has that name now; or -errno.
 */
int placeholder_make(struct placeholder *placeholder, struct placeholder_note *note);

/*
 * Removes the folder `name` if it is what the note says; waits `wait_ms` for the lock of another
 * run, or of a process that is about to end. 0: it is not there any more, or not ours; -EBUSY:
 * another run relies on it, and removes it; or -errno.
 */
int placeholder_remove(int parent_fd, const char *name, const struct placeholder_note *note,
		       uint64_t wait_ms);
