/*
 * child - between fork and exec of a command: the second lockdown table
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct spare_room;

/* What the parent reads when the program could not be executed. */
struct child_failure {
	int error;
	char stage[32];
};

/* Where a command that may report finds its pipe. Below, the agent's own places are still in use
 * until the last steps (os/agent_fds.h). */
enum { CHILD_FD_REPORT = 3 };

/* Everything a command needs, prepared before the fork; nothing here is allocated later. */
struct child {
	char *const *argv; /* argv[0] is looked up in PATH of `env` if it has no slash */
	char *const *env;
	const char *path; /* the value of PATH in `env` */
	const char *cwd;
	const char *workspace; /* where a relative `cwd` begins; NULL: where we are */
	int fds[3];            /* stdin, stdout, stderr */
	int tty_fd;            /* slave, becomes the controlling terminal; -1: none */
	int report_fd;         /* becomes descriptor CHILD_FD_REPORT; 0: none */
	int image_fd;          /* the program itself; 0: argv[0] names it */
	int failure_fd;
	int listeners_fd; /* -1: no listener */
	int listener;     /* set by the filter's step */
	int64_t ref;      /* of the call whose listener it is */
	int enter_fd;     /* first of AGENT_FD_ENTER_COUNT control group files, -1: none */
	int command_fd; /* of one that was forked ahead: what it runs comes here (spare.h); 0: none
			 */
	struct spare_room *room; /* for it; set by child_run() */
	pid_t parent;            /* the agent: a command does not begin without it */
	uint64_t open_files;     /* RLIMIT_NOFILE, 0: as it is */
	bool is_kept;            /* its keeper may serve the next one, too (idle.h) */
	int landlock_abi;
	const char *profile;
};

/* Order and reasons of the command's lockdown, for docs and tests. */
struct child_step {
	const char *name;
	int (*run)(struct child *child);
	const char *why;
};

extern const struct child_step child_steps[]; /* ends with a NULL name */

/* Runs the steps and executes the program. Does not return. */
_Noreturn void child_run(struct child *child);

/* All of them: ignored ones stay ignored across exec, and `yes | head` would never end. */
void child_default_signals(void);
