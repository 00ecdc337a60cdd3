/*
 * exec - one command: started, pumped, reaped
 *
 *   queued ──► starting ──► running ──► reaped ──► answered
 *              fork to exec             its output may still come
 *
 * exec_start() forks a keeper (keeper.h), which forks the command; of a sandbox for one command
 * (`last`) the agent is the parent itself. The child takes on its own Landlock domain, control
 * groups, limits and the command's filter, waits until the monitor holds the listener, executes.
 * Listeners are told apart by their Ref, but all answers come on one socket: where commands
 * announce one, only one is starting, and others are queued.
 *
 * A call is answered when the leader was reaped, its tree is dead and the pipes are empty (or the
 * drain time is over). A detached one is answered as soon as its program was executed; its output
 * goes to a ring, and what is left of it when it ended is kept by detached.h.
 */
#pragma once

#include <sys/resource.h>

#include "agent/agent.h"
#include "agent/command.h"
#include "agent/ring.h"
#include "agent/streams.h"
#include "base/arena.h"

struct exec {
	int64_t ref;
	uint64_t id; /* of this agent's life: a Ref may come again */
	unsigned slot;
	char *tag;             /* NULL: none */
	pid_t pid;             /* leader; its own session and process group; 0: not known yet */
	pid_t keeper;          /* its parent, 0: gone, or the agent is (is_last) */
	int keeper_fd;         /* orders and reports, -1: none */
	unsigned keeper_turns; /* this is its so manyth command; 0: it ends with it */
	struct streams streams;
	struct ring ring;      /* of a detached one */
	int failure_fd;        /* struct child_failure, or end of file: the program was executed */
	uint64_t kill_at_ms;   /* its tree, CLOCK_NEVER: by nobody but the monitor */
	uint64_t kill_then_ms; /* the same after a polite end, CLOCK_NEVER: none was asked for */
	uint64_t keeper_by_ms; /* when its keeper must have obeyed, CLOCK_NEVER: nothing asked */
	int64_t started_wall_ms;
	unsigned stops; /* of its keeper */
	bool is_last;   /* the agent ends after its reply: a sandbox for one command needs no round
			   trip */
	bool is_detached;
	bool is_answered; /* and detached: the Ref is free */
	bool is_queued;
	bool is_late; /* killed at that time */
	bool is_reaped;
	bool is_failed;
	bool is_lost; /* nobody saw its end */
	int status;   /* of waitpid, once reaped */
	struct rusage usage;
	uint64_t drain_until_ms; /* once reaped: how long others' output is still waited for */
	int error;               /* errno of a program that could not be executed */
	char stage[32];
	uint8_t early[64]; /* signals for one that has not begun, each once, in their order */
	unsigned early_count;
	struct command command; /* of a queued one, in `arena` */
	struct arena arena;
};

/* Starts what a checked {call, Ref, exec, Map} asks for, or puts it into the queue; answers
 * {failed, …} by itself. */
void exec_start(struct agent *agent, int64_t ref, const struct term *map);

/* The exec of a call that is not answered, NULL if there is none. */
struct exec *exec_find(struct agent *agent, int64_t ref);

/* A descriptor of it is ready. */
void exec_ready(struct agent *agent, struct exec *exec, enum source_kind kind);

/* SIGKILL and SIGTERM go to everything that it started (and, where it has no keeper, any call),
 * other signals to the command's process group; one that is queued gets them when it has begun,
 * each number once, as the kernel keeps them. */
void exec_signal(struct agent *agent, struct exec *exec, int signal);

/* The size of its terminal; one that is queued begins with it. */
void exec_resize(struct exec *exec, unsigned rows, unsigned cols);

/* A child of the agent changed its state, as waitpid() with WUNTRACED says it. Was it one's? */
bool exec_child(struct agent *agent, pid_t pid, int status, const struct rusage *usage);

/* Answers and frees those that are over, starts queued ones; returns ms until the next one must be
 * looked at, -1: none. */
int exec_finish(struct agent *agent, uint64_t now_ms);

/* Kills its tree; nobody waits for what it wrote. */
void exec_cancel(struct agent *agent, struct exec *exec);

/* Asks its tree to end, and kills what is left of it 500 ms later. */
void exec_end(struct agent *agent, struct exec *exec);

/* Frees what it holds, and itself. */
void exec_free(struct agent *agent, struct exec *exec);

/* ---- exec_fork.c ---- */

/* Makes the streams and forks keeper and command, or the command alone. 0 or a negative errno. */
int exec_fork(struct agent *agent, struct exec *exec, const struct command *command);

/* ---- exec_reply.c ---- */

/* {reply, Ref, …}: how it ended, or that a detached one runs; or {failed, Ref, lost, …}. */
void exec_reply(struct agent *agent, const struct exec *exec);

/* {fact, …}: a detached one, answered long ago, is over. */
void exec_tell_end(struct agent *agent, const struct exec *exec);

/* exit_code and signal, two pairs: null where it has none, or has not ended. */
void exec_emit_status(struct emit *emit, const struct exec *exec);
