/*
 * launch - everything between clone and exec
 *
 * The lockdown is a table of steps, carried out top to bottom in the child. A step that
 * fails kills the child: nothing runs behind half a wall. The table is data, so the audit
 * log prints it and tests check its order. Nothing here allocates.
 *
 * Runs in: the sandbox's first process. Privilege: all capabilities of a user namespace of
 * its own until "caps", none after. Reads: what the monitor prepared, nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/error.h"
#include "launch/rootfs.h"
#include "launch/stage.h"
#include "os/agent_fds.h"
#include "os/landlock.h"

enum { LAUNCH_RULES = 1024, LAUNCH_ORDER = 32 << 10, LAUNCH_UID = 1000, LAUNCH_GID = 1000 };

struct launch_rule {
	const char *path; /* as seen inside; a missing one is skipped */
	enum landlock_grant grant;
	bool is_plain; /* untrusted code may have made it: links are not followed */
};

struct launch_limit {
	int resource;
	rlim_t value;
};

struct launch {
	size_t rule_count;
	struct launch_limit limits[8];
	size_t limit_count;
	int landlock_abi;
	bool landlock_tcp; /* TCP too is denied by Landlock (no network namespace) */
	bool is_loopback_up;
	uid_t private_uid;   /* without a user namespace: the id to become, 0: stay who we are */
	unsigned cpu_count;  /* affinity to this many of the allowed CPUs; 0: all */
	unsigned cpu_first;  /* and from which on, of the allowed ones, modulo their number */
	const char *workdir; /* agent's own working directory */
	char *const *agent_argv;
	const char *program; /* of the host's, executed instead of the agent; NULL */
	char *const *env;    /* its environment; the agent has none */
	int stderr_fd;       /* its complaints; -1: nowhere */
	int agent_enter[AGENT_FD_ENTER_COUNT]; /* files of the agent's control groups, -1: none */
	int cmd_enter[AGENT_FD_ENTER_COUNT];   /* the same of the commands' */
	bool has_tty;                          /* make a terminal before files are restricted */
	int terminals_fd;                      /* where those for later commands come from; -1 */
	int tty_fds[2];                        /* by the step: its sides, or that one; -1: none */
	int agent_fd;                          /* closed by exec */
	int search_fd;                         /* stays open for the agent; -1: none */
	int life_fd;                           /* end of file: the monitor is gone */
	int sync_fd;                           /* one byte: the id maps are written */
	int netns_fd;                          /* a net namespace comes here by os/pass.h */
	int order_fd; /* prepared ahead: the agent waits here for launch_order(); -1: it does not */
	int stream_fd;
	int listeners_fd;
	int error_fd;         /* a struct csn_error goes here when a step fails; closed by exec */
	struct stage stage;   /* where a runtime finds the tree; only by launch_oci_steps */
	struct rootfs rootfs; /* unused by walls without a mount namespace */
	struct launch_rule rules[LAUNCH_RULES];
};

struct launch_step {
	const char *name;
	int (*run)(struct launch *launch, struct csn_error *err);
	const char *why; /* why it stands where it stands */
};

/* The tables, one a wall, in order; each ends with a NULL name. */
extern const struct launch_step launch_process_steps[];
extern const struct launch_step launch_landlock_steps[];
extern const struct launch_step launch_local_steps[];   /* no wall: clocks and caps only */
extern const struct launch_step launch_command_steps[]; /* `program`, which is the wall */
extern const struct launch_step launch_oci_steps[];     /* `program`, an OCI runtime: stage.h */
/* Of a wall prepared ahead: its agent does last what "landlock" does elsewhere; for the record. */
extern const struct launch_step launch_ahead_step;

/* An empty one, for free(); NULL: no memory. Its long lists are not cleared: 48 KiB, of which a
 * launch uses two, would be a dozen page faults. */
struct launch *launch_new(void);

/* Adds a Landlock rule. 0, or -E2BIG when the table is full. */
int launch_allow(struct launch *launch, const char *path, enum landlock_grant grant);
/* The same for a name in a folder that untrusted code wrote: skipped if it is a symbolic link. */
int launch_allow_plain(struct launch *launch, const char *path, enum landlock_grant grant);

/* Adds an rlimit (soft and hard, never above what the caller has). */
void launch_limit(struct launch *launch, int resource, uint64_t value);

/*
 * Lets an agent go on that waits behind the rest of its wall: writes the order, with the ABI and
 * the rules of `launch`, which is all that is used of it. 0, -E2BIG, or another negative errno.
 */
int launch_order(int order_fd, const struct launch *launch);

/*
 * Of an agent that was prepared ahead: the limits of the calling process, lowered by those of
 * `launch`, are from here on its own, as if it were started now. 0 or -errno with a sentence.
 */
int launch_give_limits(const struct launch *launch, pid_t pid, struct csn_error *err);

/* Walks the steps and executes the agent. Does not return. */
_Noreturn void launch_run(struct launch *launch, const struct launch_step *steps);
