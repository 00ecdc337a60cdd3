/*
 * exec - one command: started, pumped, reaped
 *
 * Life: exec_start() forks; the child takes on its own Landlock domain, control groups, limits
 * and the command's filter, waits until the monitor holds the listener, executes. The exec
 * lives until its leader was reaped and its pipes are empty (or the drain time is over); then
 * {reply, Ref, …} is sent and the slot is free.
 */
#pragma once

#include <sys/resource.h>

#include "agent/agent.h"
#include "agent/streams.h"

struct exec {
	int64_t ref;
	unsigned slot;
	pid_t pid; /* leader; its own session and process group */
	struct streams streams;
	int failure_fd;      /* struct child_failure, or end of file: the program was executed */
	uint64_t kill_at_ms; /* its tree, CLOCK_NEVER: by nobody but the monitor */
	bool is_last; /* the agent ends after its reply: a sandbox for one command needs no round
			 trip */
	bool is_late; /* killed at that time */
	bool is_reaped;
	bool is_failed;
	int status; /* of waitpid, once reaped */
	struct rusage usage;
	uint64_t drain_until_ms; /* once reaped: how long others' output is still waited for */
	int error;               /* errno of a program that could not be executed */
	char stage[32];
};

/* Starts what a checked {call, Ref, exec, Map} asks for; answers {failed, …} by itself. */
void exec_start(struct agent *agent, int64_t ref, const struct term *map);

/* The exec of a call, NULL if there is none. */
struct exec *exec_find(struct agent *agent, int64_t ref);

/* A descriptor of it is ready. */
void exec_ready(struct agent *agent, struct exec *exec, enum source_kind kind);

/* SIGKILL and SIGTERM go to everything that any call started, other signals to the command's
 * process group. A sandbox that runs several calls at once needs a subreaper for each: there is
 * none yet. */
void exec_signal(struct agent *agent, struct exec *exec, int signal);

/* Its leader was reaped. */
void exec_reaped(struct exec *exec, int status, const struct rusage *usage);

/* Answers and frees those that are over; returns ms until the next one must be looked at, -1: none.
 */
int exec_finish(struct agent *agent, uint64_t now_ms);
