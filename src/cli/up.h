/*
 * up - a sandbox that stays, from flags to its monitor; shared with the pool, which has monitors
 * wait
 */
#pragma once

#include "cli/project.h"
#include "monitor/stay.h"

struct up {
	const char *name;
	int place;
	int lock;
	int listener;
	int owner;                       /* a stream whose end is the sandbox's, -1 */
	const struct stay_port *port;    /* how the owner speaks; NULL: as libcaisson */
	int wall;                        /* a stream on which the owner is the wall too; 0: none */
	int told;                        /* where the parent waits for a struct csn_error, -1 */
	const char *layer_from;          /* see monitor/run.h; NULL */
	const struct approval *approval; /* the same */
	/* Is told first: code 0, or why there is no sandbox. NULL: nobody else. */
	void (*answer)(struct up *up, const struct csn_error *err);
	struct csn_error error; /* why there is no sandbox, code 0: there is one */
	struct csn_error end;   /* why one that was up ended, code 0: it was asked to */
};

#define UP_NONE                                                                  \
	(struct up)                                                              \
	{                                                                        \
		.place = -1, .lock = -1, .listener = -1, .owner = -1, .told = -1 \
	}

/* What a sandbox is to be. */
struct up_wish {
	const struct plan *plan;
	const struct cli_policy *policy;
	const struct cli_options *options;
};

/* The monitor's setup for it; borrows all of it. */
void up_setup(struct up *up, const struct up_wish *wish, struct stay_setup *ret_setup);

/* Nothing of the caller's terminal, shell or pipes is kept. 0 or -errno. */
int up_leave_caller(void);

/* As many descriptors as we may have. */
void up_raise_files(void);

/* Waits for the error that a child writes. 0, or a negative errno with its sentence. */
int up_await(int fd, struct csn_error *ret_err);

/* This process is the monitor of a sandbox as the flags say, until that ends. 0: it was up; or
 * -errno with a sentence. */
int up_become(struct cli *cli, struct up *up, struct csn_error *err);

/* libcaisson's monitor, which will be none: says so to who started it, before he reads that its
 * stream ended. Only what the flags say is known of it; they may be what was wrong. */
void up_refuse(const struct cli_options *options, const struct csn_error *err);

/* Starts one of this name as the flags say; `layer_from` is what its copy-on-write workspace begins
 * with (monitor/run.h), or NULL. 0 when it is up, or -errno with a sentence. */
int up_named(struct cli *cli, const char *name, const char *layer_from, struct csn_error *err);
