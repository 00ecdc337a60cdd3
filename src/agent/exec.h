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
#include "base/arena.h"

struct exec {
	int64_t ref;
	unsigned slot;
	pid_t pid;          /* leader; its own session and process group */
	int stdin_fd;       /* write end of the command's stdin, -1: closed or none */
	int out_fd, err_fd; /* read ends, -1: at their end */
	int tty_fd;         /* pty master, -1: none */
	int failure_fd;     /* struct exec_failure, or end of file: the program was executed */
	struct buf input;   /* bytes for stdin not written yet */
	bool is_input_over;
	int64_t window; /* bytes of output that the monitor takes now */
	bool is_reaped;
	bool is_failed;
	int status; /* of waitpid, once reaped */
	struct rusage usage;
	uint64_t drain_until_ms;
	int error; /* errno of a program that could not be executed */
	char stage[32];
	char shell[16]; /* the shell chosen for a `command` text, "" for an argv */
};

/* Starts what a checked {call, Ref, exec, Map} asks for; answers {failed, …} by itself. */
void exec_start(struct agent *agent, int64_t ref, const struct term *map);

/* The exec of a call, NULL if there is none. */
struct exec *exec_find(struct agent *agent, int64_t ref);

/* A descriptor of it is ready. */
void exec_ready(struct agent *agent, struct exec *exec, enum source_kind kind);

/* Bytes for its stdin, or (size 0, is_end) the end of it. -EMSGSIZE when the window was overrun. */
int exec_input(struct agent *agent, struct exec *exec, const void *data, size_t size, bool is_end);

/* The monitor takes `bytes` more output. */
void exec_window(struct agent *agent, struct exec *exec, int64_t bytes);

/* Signals the command: its whole tree. */
void exec_signal(struct agent *agent, struct exec *exec, int signal);

/* The size of its terminal; nothing without one. */
void exec_resize(struct exec *exec, unsigned rows, unsigned cols);

/* Its leader was reaped. */
void exec_reaped(struct agent *agent, struct exec *exec, int status, const struct rusage *usage);

/* Answers and frees those that are over; returns ms until the next one must be looked at, -1: none.
 */
int exec_finish(struct agent *agent, uint64_t now_ms);
