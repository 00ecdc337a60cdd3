/*
 * mcp_jobs - calls of tools that wait or run, a thread each
 *
 * Threads are started as they are needed, at most MCP_WORKERS, and stay. A job belongs to the list
 * from mcp_jobs_add() until its work has returned; it is found there by its request's id, to be
 * cancelled. Whoever cancels one that waits, runs or has ended may be late: that is no error.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "caisson.h"

enum { MCP_WORKERS = 16, MCP_WAITING = 64 };

struct mcp;
struct mcp_tool;

struct mcp_job {
	struct mcp_job *next;
	json_t *id;      /* owned */
	json_t *request; /* owned; `args` and `token` lie in it */
	json_t *args;
	json_t *token; /* for progress; NULL: none is wanted */
	const struct mcp_tool *tool;
	bool is_running, is_cancelled,
		is_answered;  /* this and what follows: under the lock of the jobs */
	csn_sandbox *sandbox; /* while a call of the library may run */
	uint64_t call_id;
};

struct mcp_jobs {
	struct mcp *mcp; /* borrowed */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a job came or went, or all is over */
	struct mcp_job *first;  /* all, the oldest first; owned */
	unsigned waiting, idle, workers;
	pthread_t threads[MCP_WORKERS];
	bool is_over;
};

/* None, and no thread; `mcp` is borrowed. */
void mcp_jobs_init(struct mcp_jobs *jobs, struct mcp *mcp);

enum mcp_jobs_said { MCP_JOB_TAKEN, MCP_JOB_BUSY, MCP_JOB_SAME_ID };

/* Takes `job` (from calloc) and all it owns, if it says so; else it stays the caller's. */
enum mcp_jobs_said mcp_jobs_add(struct mcp_jobs *jobs, struct mcp_job *job);
void mcp_job_free(struct mcp_job *job);

/* Cancels the one with that id, or with NULL all of them. */
void mcp_jobs_cancel(struct mcp_jobs *jobs, const json_t *id);

/*
 * A number for the job's next call of the library: csn_call.id. What was cancelled before is
 * cancelled then.
 */
uint64_t mcp_job_call(struct mcp_jobs *jobs, struct mcp_job *job, csn_sandbox *sandbox);
bool mcp_job_is_cancelled(struct mcp_jobs *jobs, const struct mcp_job *job);

/* May it be answered? Not if it was cancelled; from here on its id is free for another. */
bool mcp_job_may_answer(struct mcp_jobs *jobs, struct mcp_job *job);

/* How many wait or run. */
unsigned mcp_jobs_count(struct mcp_jobs *jobs);

/* No more are taken; waits until `until_ms` (base/clock.h) for those there are. Did all end? */
bool mcp_jobs_end(struct mcp_jobs *jobs, uint64_t until_ms);
