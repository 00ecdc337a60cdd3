/*
 * sample - what can be seen of a limit without its controller
 *
 * The monitor calls this once a tick where there is no control group. A sample is a look at a
 * moment: what came and went between two looks was not seen, and results say `sampled`. Memory
 * that no process maps is in no process's count: memfds are looked for in the descriptors
 * (shmem.h), System V segments where they are (sysv.h), scratch is looked at by itself.
 * docs/limits.md names what stays unseen.
 *
 * Work per call is bounded; a tree beyond the bounds is cut and says so. Nothing is allocated.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	SAMPLE_PROCESSES = 1024, /* the most that one call looks at */
	SAMPLE_THREADS = 4096,
};

/* The descendants of a process, itself left out. */
struct sample_tree {
	uint32_t processes;
	uint32_t threads;
	uint64_t mem_bytes;  /* private and shared memory, memory files; swap if is_exact */
	uint64_t file_bytes; /* the part of it that is in memory files */
	bool is_exact;       /* pages that processes share were counted once, not in each */
	bool is_cut;         /* there were more than the bounds: the numbers are too low */
};

/*
 * Between two looks at one tree: when its descriptors were last gone through. Zeroed is a start.
 * That costs two microseconds a descriptor, so it is done only if all files in memory of this
 * machine together could bring the tree above its limit, and then when their sum has changed by
 * a part of the limit, or a second has gone by, or the tree seems to be above the limit. What a
 * look found to be counted twice is left out until the next, or a tree whose files are mapped would
 * be looked at each time.
 *
 * What the machine has more of than at the first look, and nobody is known to hold, is the tree's
 * (`hidden_bytes`) as far as the tree has where to hide it: shared mappings of that size that it
 * gave back, for more than a second descriptors that wait in sockets, or processes that twice in a
 * row did not let us look.
 */
struct sample_files {
	dev_t apart_dev;      /* a file system whose files the caller counts; 0: none, */
	uint64_t apart_bytes; /* and how much memory they take now */
	bool has_ipc; /* set by the caller: the root has an IPC namespace and a user namespace
			 beneath ours; its System V segments are the tree's */
	bool is_sysv_refused;                     /* they cannot be counted on this machine */
	uint64_t bytes;                           /* as of the last look */
	uint64_t sysv_bytes, sysv_resident_bytes; /* of System V segments then; without swap */
	uint64_t hidden_bytes;
	uint64_t host_bytes;               /* the machine's files in memory at that look, */
	uint64_t least_bytes;              /* and the least of it that any call has seen */
	uint64_t overlap_bytes;            /* mapped parts of files, taken off at that look, */
	uint64_t cheap_bytes, exact_bytes; /* and the two counts of memory there; 0: not exact */
	uint64_t looked_us;                /* 0: never */
	uint64_t rest_us;                  /* rather no look before, for the last one was dear */
	uint64_t queued_us;   /* since then descriptors wait in sockets; 0: they do not */
	uint32_t blind_looks; /* in a row at which a process did not let us look */
	bool was_blind;       /* there were two in a row */
};

struct sample_scratch {
	uint64_t size_bytes; /* 0: the file system has no size of its own */
	uint64_t free_bytes;
	uint64_t inodes; /* 0: no limit */
	uint64_t free_inodes;
	bool is_full; /* the next write or the next file fails */
};

/*
 * Looks at all descendants of `root`, the wall's first process: its pid namespace's init or the
 * agent, to which orphans return. Adding up is cheap but counts pages that processes share once
 * each; only if the sum is above `exact_above_bytes` are they counted again, exactly, which costs
 * milliseconds for a large tree. Two looks in a row must agree before anybody is killed for it: a
 * number may have been given to another process between list and look. `files` NULL: memory files
 * count only where they are mapped.
 *
 * -ESRCH: `root` is gone. -ENOTSUP: the kernel does not list children (CONFIG_PROC_CHILDREN).
 */
int sample_tree(pid_t root, uint64_t exact_above_bytes, struct sample_files *files,
		struct sample_tree *ret_tree);

/* Room in the file system of a descriptor (O_PATH will do). 0 or a negative errno. */
int sample_scratch(int fd, struct sample_scratch *ret_scratch);
