/*
 * cleaner - what removes a sandbox's traces when its monitor is killed
 *
 * A forked process of a few pages beside the monitor, started before anything that it would have
 * to remove is made: whatever instant the monitor is killed at, somebody knows. It sleeps on a
 * socket whose other end only the monitor holds: one byte means all is done, the socket's end
 * means the monitor died. Then it ends the wall, kills what is in the control groups, removes
 * them, the placeholders of protected names and the scratch folder of a wall without mounts, and
 * is gone within a second or two. A run that makes none of these has no cleaner.
 *
 * What it would do is known before: groups and scratch by the run's id, placeholders by name and
 * parent, and by notes in shared memory about how far the monitor came. What even it could not
 * remove (it was killed too), the next start does: groups by limits_open(), the rest by
 * pending_sweep() and scratch_sweep().
 */
#pragma once

#include <sys/types.h>

#include "monitor/pending.h"
#include "monitor/protect.h"
#include "os/cgroup.h"

/* What it removes. Everything is the monitor's; the pointers hold in its fork too. */
struct cleaner_work {
	const char *id;                    /* of the run */
	const struct cgroup_probe *probe;  /* where its groups will be; NULL: none */
	struct protect *protect;           /* whose placeholders; NULL: none */
	const char *scratch_dir;           /* "/tmp/caisson-…", NULL */
	struct pending *pending;           /* NULL: no note */
	bool has_program;                  /* a program of the host's is the wall */
	void (*take_down)(const char *id); /* where that was killed (backend.h); NULL */
	const char *state_root;            /* for `remove` */
	void (*remove)(const char *state_root, const char *id); /* backend.h; NULL: nothing */
};

struct cleaner {
	pid_t pid; /* -1: none was needed */
	int socket;
};

#define CLEANER_NONE     \
	(struct cleaner) \
	{                \
		-1, -1   \
	}

/* Will there be anything to remove? */
bool cleaner_is_needed(const struct cleaner_work *work);

/* Forks it. 0 or -errno. Call it before anything of its work is made. */
int cleaner_start(const struct cleaner_work *work, struct cleaner *ret_cleaner);

/* The wall is up: `pidfd` is its first process. Until it has ended nothing is removed, because
 * what it must not write would be unprotected. Its end is that of every other, or it is given the
 * time to end by itself what it started (`is_patient`). */
void cleaner_watch(const struct cleaner *cleaner, int pidfd, bool is_patient);

/* Does the work here, the end of a run whose monitor lives; `group` is what it made, or NULL. */
void cleaner_clean(const struct cleaner_work *work, const struct cgroup *group);

/* All is done: lets it go and reaps it. */
void cleaner_stop(struct cleaner *cleaner);
