/*
 * cleaner - what removes a sandbox's traces when its monitor is killed
 *
 * A forked process of a few pages beside the monitor. It sleeps on a pipe whose other end only
 * the monitor holds: one byte means all is done, the pipe's end means the monitor died. Then it
 * kills what is in the control groups, removes them, the placeholders of protected names and the
 * scratch folder of a wall without mounts, and is gone within a second or two. What even it could
 * not remove (it was killed too), the next start does: limits_sweep().
 */
#pragma once

#include <sys/types.h>

#include "monitor/protect.h"
#include "os/cgroup.h"

/* What it removes. Copied by fork; everything is the monitor's. */
struct cleaner_work {
	const struct cgroup *group;    /* NULL: none */
	const struct protect *protect; /* whose placeholders; NULL: none */
	const char *scratch_dir;       /* "/tmp/caisson-…", NULL */
};

struct cleaner {
	pid_t pid; /* -1: none was needed */
	int pipe_fd;
};

#define CLEANER_NONE     \
	(struct cleaner) \
	{                \
		-1, -1   \
	}

/* Forks it, if there is anything to remove. 0 or -errno. Call it before the wall starts. */
int cleaner_start(const struct cleaner_work *work, struct cleaner *ret_cleaner);

/* Does the work here: the end of a run whose monitor lives. */
void cleaner_clean(const struct cleaner_work *work);

/* All is done: lets it go and reaps it. */
void cleaner_stop(struct cleaner *cleaner);
