/*
 * job - a call that is done in slices
 *
 * The agent is one loop, so whatever may take long (a large folder, a stream) is cut: step() does
 * a bounded piece of work, a few milliseconds at most, and returns. A job that has more to do is
 * stepped again in the next turn, after the frames that came; one that waits for a frame is not.
 * While more output is queued than a reader takes, no job is stepped: an answer may be large.
 *
 * Life: job_new() in a verb's handler; steps, input and window as they come; JOB_OVER (it has
 * answered), job_fail() or a cancel ends it. Whatever ends it, done() is called once.
 *
 * What no slice helps against is a system call that does not return: a dead network file system,
 * a folder whose lock a command holds. The clock against that is the monitor's.
 */
#pragma once

#include "agent/agent.h"
#include "agent/verbs.h"

enum job_state {
	JOB_AGAIN, /* step it again */
	JOB_WAITS, /* until input or window comes for it */
	JOB_OVER   /* it has answered */
};

struct job_type {
	enum job_state (*step)(struct agent *agent, struct job *job);
	/* {data, Ref, stdin, Bin} or, with `is_end`, eof; the end of Bin may lie in agent->flow,
	 * from which it is taken. NULL: the call takes no input. */
	enum job_state (*input)(struct agent *agent, struct job *job, const struct term *bytes,
				bool is_end);
	void (*done)(struct job *job); /* frees what it holds, not the job; NULL: nothing */
};

/* The first member of a verb's own struct. */
struct job {
	const struct job_type *type;
	const struct verb *verb;
	int64_t ref;
	uint64_t order; /* older calls have the lower one */
	unsigned slot;
	int64_t window; /* bytes of output that the monitor takes now */
	bool waits;
};

/* A zeroed struct of `size` bytes that begins with a job; its first step comes by itself. NULL:
 * too many calls or no memory, and {failed, …} was sent. */
void *job_new(struct agent *agent, const struct call *call, const struct job_type *type,
	      size_t size);

/* Answers {failed, Ref, Errno, Sentence} and ends it; not from within its own functions. */
void job_fail(struct agent *agent, struct job *job, const struct csn_error *err);

/* The job of a call, NULL if there is none. */
struct job *job_find(struct agent *agent, int64_t ref);

/* Frames about a job. They may end it. */
void job_window(struct job *job, int64_t bytes);
void job_input(struct agent *agent, struct job *job, const struct term *bytes, bool is_end);
void job_cancel(struct agent *agent, struct job *job);

/* One step for each job whose turn it is. True: there is more to do at once. */
bool jobs_step(struct agent *agent);

/* Ends all without a word. */
void jobs_done(struct agent *agent);
