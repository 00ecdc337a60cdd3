/*
 * agent - the first process inside the wall
 *
 * Static, without privilege, without policy: it runs commands and file verbs that arrive as
 * frames (docs/protocol.md) and sends back what they do. Behind the process wall it is pid 1 of
 * its namespace; elsewhere it adopts orphans as a child subreaper. Its stream's end is its end.
 *
 * Trust: reads frames from the monitor (trusted) and bytes from commands (hostile, carried,
 * never interpreted). A command cannot reach it: other Landlock domain, not dumpable.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/idle.h"
#include "agent/resolve.h"
#include "agent/spare.h"
#include "base/buf.h"
#include "os/flow.h"
#include "wire/emit.h"
#include "wire/term.h"

enum {
	AGENT_CALLS = 64,         /* calls at once; detached commands count */
	AGENT_ENDED = 64,         /* ended detached commands that are remembered */
	AGENT_SEARCHES = 16,      /* of the calls, globs and greps */
	AGENT_WINDOW = 256 << 10, /* bytes that may be under way per call and direction */
	AGENT_OUT_MAX = 32 << 20, /* queued output; windows keep it far below */
	AGENT_DRAIN_MS = 100,     /* after a leader's exit, for what is still in its pipes */
};

/* What an epoll event belongs to. */
enum source_kind {
	SOURCE_STREAM, /* the monitor */
	SOURCE_SIGNALS,
	SOURCE_STDIN,
	SOURCE_STDOUT,
	SOURCE_STDERR,
	SOURCE_TTY,
	SOURCE_REPORT,
	SOURCE_FAILURE,
	SOURCE_SEARCH, /* `slot` is of the search */
	SOURCE_KEEPER,
	SOURCE_GATE_DOOR,
	SOURCE_GATE,         /* `slot` is of the connection */
	SOURCE_FORWARD_DOOR, /* of the forward */
	SOURCE_FORWARD       /* of the connection */
};

struct agent_source {
	enum source_kind kind;
	unsigned slot; /* of the exec, 0 for the agent's own */
};

struct exec;
struct forwards;
struct gates;
struct job;
struct search;

struct agent {
	int epoll_fd;
	int signal_fd;
	struct buf in;
	struct buf out;
	struct flow flow;    /* while a job takes input: the bytes of it that are not in the term */
	bool expects_bulk;   /* what comes is likely input of a job */
	bool is_out_watched; /* EPOLLOUT asked for */
	bool is_stopping;    /* ends when all is said */
	bool is_broken;      /* a frame was lost: ends at once, what would follow is a lie */
	bool is_init;        /* {init, …} came */
	bool is_pid_1;
	bool may_listen;  /* commands announce a listener */
	char profile[32]; /* name of the commands' syscall profile */
	int landlock_abi;
	char workspace[4096]; /* where commands start unless the call says otherwise */
	struct roots roots;   /* where paths of the file verbs begin */
	struct exec *execs[AGENT_CALLS];
	struct exec *ended[AGENT_ENDED]; /* the oldest first */
	unsigned ended_count;
	uint64_t exec_id; /* of the last exec */
	struct spare spare;
	struct idle idle;
	bool has_news; /* of detached commands, for those who follow them */
	struct job *jobs[AGENT_CALLS];
	uint64_t job_order; /* of the next job */
	struct search *searches[AGENT_SEARCHES];
	bool has_search;           /* AGENT_FD_SEARCH is there */
	struct gates *gates;       /* that commands may ask for; NULL: none */
	struct forwards *forwards; /* endpoints of the host's; NULL: none */
};

/* Queues frames; a failure (out of memory) ends the agent: a lost frame would be a lie. */
struct emit agent_frame(struct agent *agent);
void agent_send(struct agent *agent, struct emit *emit);

/* The same of a frame whose last part is a binary, not emitted yet: what the flow holds. It goes on
 * without a copy as far as the stream takes it now. The flow is empty afterwards. */
void agent_send_flow(struct agent *agent, struct emit *emit, struct flow *flow);

/* {failed, Ref, Reason, Detail} */
void agent_fail(struct agent *agent, int64_t ref, const char *reason, const char *detail);

/* Watches a descriptor (again), or stops watching it. One that cannot be watched ends the agent:
 * what comes on it would never be seen. */
void agent_watch(struct agent *agent, int fd, uint32_t events, struct agent_source source);
void agent_unwatch(struct agent *agent, int fd);

/* Frames from the monitor, by a table; see handlers in frames.c. `size` is the payload's. Returns a
 * negative errno when the stream is broken: the agent then ends. */
int agent_handle(struct agent *agent, int index, const struct term *frame, size_t size);
