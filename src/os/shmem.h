/*
 * shmem - files in memory that a tree of processes holds by descriptors
 *
 * A memfd that nobody maps is in no process's count, and neither is a mapped one's part that was
 * written with write(2) or given back with MADV_DONTNEED. As long as somebody holds a descriptor
 * of it, stat(2) through /proc/PID/task/TID/fd tells how much it holds. Every thread is looked
 * at: one that was cloned without CLONE_FILES has descriptors of its own, and those of a leader
 * that has ended are gone.
 *
 * Two places are seen and cannot be looked into: descriptors that wait in a socket's queue, and
 * shared memory that is mapped, has no descriptor and was given back by all. What this machine has
 * more of than before, and nobody is known to hold, may be there: shmem_hidden(). System V segments
 * have no descriptors; sysv.h counts them.
 *
 * Needs the right to ptrace the processes (PTRACE_MODE_READ): the same user, and dumpable or in a
 * user namespace beneath ours. One that is not dumpable there is looked at by copies of its
 * descriptors; of its threads with a table of their own only since Linux 6.9.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	SHMEM_FILES = 4096,         /* told apart; what is more counts once for each descriptor */
	SHMEM_DESCRIPTORS = 262144, /* the most that one look goes through */
};

struct shmem_look {
	uint64_t bytes; /* that the files hold, swapped or not */
	uint32_t files;
	bool is_cut;   /* there were more descriptors: the number may be too low */
	bool is_blind; /* some process did not let us look */
	bool has_sysv; /* set by the caller, who counts System V segments: mapped they overlap */
	dev_t dev;     /* the kernel's own mount of memory files */
	uint64_t inodes[SHMEM_FILES * 2]; /* by hash; 0: free */
};

/*
 * All memory of this machine that is in files, and all that is swapped out, files or not: no tree
 * can hold more in files than both. A system call of less than a microsecond, to find out whether
 * a look is worth its cost. Without that call both are large.
 */
uint64_t shmem_host_bytes(uint64_t *ret_swap_bytes);

/* The processes of a tree; `proc_fd` is /proc. Borrowed. */
struct shmem_tree {
	int proc_fd;
	const pid_t *pids;
	int count;
};

/*
 * Looks through the descriptors of all processes: two microseconds for each descriptor. A process
 * that ended meanwhile is no failure. 0 or a negative errno.
 */
int shmem_look(const struct shmem_tree *tree, struct shmem_look *ret_look);

/*
 * What the processes have mapped of the files of a look, or of files on `apart_dev` (0: none):
 * it is in their proportional memory and in the files too. Reads smaps, a millisecond for a
 * thousand mappings. -EFBIG: there were too many. -EACCES: some process forbids it.
 */
int shmem_overlap(const struct shmem_look *look, const struct shmem_tree *tree, dev_t apart_dev,
		  uint64_t *ret_bytes);

/* Where files may be that no look finds. */
struct shmem_hidden {
	bool has_queue; /* descriptors wait in some socket; there is no bound to their files */
	uint64_t loose_bytes; /* of shared mappings without a descriptor: used or not, not mapped in
			       */
};

/*
 * Looks for both after a look. Dearer than that: reads every socket's fdinfo and all of smaps. The
 * look's table is used up. What cannot be read counts as nothing; a mapping that several
 * processes have counts once.
 */
void shmem_hidden(struct shmem_look *look, const struct shmem_tree *tree,
		  struct shmem_hidden *ret_hidden);
