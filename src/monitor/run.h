/*
 * run - one command behind a wall, from a decided plan to a typed result
 *
 * What `caisson run` is: this process is the monitor. run_execute() refuses, starts, watches,
 * ends and accounts; it returns when the sandbox is gone and the record is closed. Every way
 * the command can end is a result, not an error; what went wrong on our side is one `error`
 * object in the same result.
 */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "audit/audit.h"
#include "base/error.h"
#include "monitor/ending.h"
#include "plan/plan.h"

struct approval;

/* What the owner of a long run wants now. */
struct run_wish {
	enum ending ending; /* END_NONE: it may go on */
	const char *clock;  /* of a timeout; static */
	uint64_t at_ms;     /* when to ask again, CLOCK_NEVER */
	size_t window;      /* bytes of reports that are done with: as many more may come */
};

/*
 * Whose a long run is: who keeps its books (src/jobs). The run then has a report stream, its output
 * goes to the owner and is never a reason to end it, and the record is his: the run writes its
 * events there and gives it back. The calls are made while the run goes on, by its loop.
 */
struct run_owner {
	struct record *record;       /* open; borrowed until the run is over */
	const char *permission_mode; /* for the log, as the worker is told it */
	const char *const *env;      /* "NAME=VALUE" for the command, no secrets; NULL: none */
	const char *tools;           /* host folder for the front of PATH, NULL: none */
	uint64_t grace_ms;           /* from being asked to end until the kill */
	/* Bytes of the report stream, hostile; at most as many as the window has room for. */
	void (*report)(void *data, struct chain *chain, const void *bytes, size_t size);
	void (*output)(void *data, bool is_stderr, const void *bytes, size_t size);
	/* While the command runs: before each wait, and at `at_ms` at the latest. */
	void (*look)(void *data, struct chain *chain, uint64_t now_ms, struct run_wish *ret_wish);
	void *data;
};

struct run_setup {
	const struct plan *plan;
	const char *const *argv;       /* NULL-terminated; NULL with `text` */
	const char *text;              /* for bash, or sh where there is no bash */
	const char *cwd;               /* inside, for a wall with a view of its own */
	const char *host_cwd;          /* the caller's, for a wall without */
	const char *const *caller_env; /* "NAME=VALUE", for what the plan passes and for PATH */
	int stdin_fd;                  /* -1: the command's input is empty */
	int stdout_fd, stderr_fd;      /* -1: kept in the record only */
	int tty_fd;                    /* the caller's terminal when the command gets a pty; -1 */
	const char *run_root;          /* NULL: no record */
	const char *hidden_root;       /* the run root, with a record or without: never lent */
	const char *hidden_place;      /* of the sockets of sandboxes that stay: never lent */
	const char *home;              /* the caller's home, real, or NULL: never lent */
	const char *sandbox;           /* the name of one that stays; NULL */
	const char *const *tags;       /* NULL-terminated, may be NULL */
	const struct run_owner *owner; /* of a long run; NULL: the record is the run's own */
	int wall_fd; /* the caller's own wall: a stream that becomes the run's; 0: none */
	const char *layer_from; /* absolute: copy_fork()'s folder, which is moved into the record
				   and begins the copy-on-write workspace; NULL: nothing changed */
	const struct approval *approval; /* used up for this start; NULL: none, and a plan that
					    needs one is refused */
};

struct run_outcome {
	int status;     /* what the CLI exits with */
	json_t *result; /* caisson.result/1, owned */
	char run_id[40];
	bool is_recorded;
	struct csn_error error; /* code 0: none */
};

/* 0 when a result exists, whatever it says; a negative errno only when out of memory. */
int run_execute(const struct run_setup *setup, struct run_outcome *ret_outcome);
void run_outcome_done(struct run_outcome *outcome);
