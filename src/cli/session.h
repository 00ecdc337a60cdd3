/*
 * session - a command in a sandbox that stays, and who called for it: streams, terminal, signals
 *
 *   stdin ──────┐                              ┌── stdout, stderr
 *               ├─ csn_exec(): one poll() ─────┤
 *   signalfd ───┘                              └── waits for the signals too
 *
 * Life: session_begin() takes the signals and makes the terminal raw, session_request() fills in
 * what a request needs for it; after csn_exec() session_end() gives both back. While it is open no
 * signal ends this process but KILL, so the terminal is restored on every other way out.
 *
 * The first INT, TERM, HUP or QUIT goes to the command, which has a second to end by itself; then,
 * or at the next one, it is cancelled, and at one more we leave without waiting. STOP and CONT give
 * the terminal back and take it again.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "caisson.h"
#include "cli/tty.h"

struct session {
	csn_sandbox *sandbox; /* borrowed */
	uint64_t id;          /* of its call */
	struct tty tty;
	bool has_tty; /* the command has one */
	int signal_fd;
	sigset_t old_mask;
	bool has_read;  /* some of our input: it went with the call */
	int end_signal; /* the first that asked for the end, or 0; SIGPIPE: our reader left */
	bool is_cancelled;
};

/* 0, or -1 with a sentence and nothing taken. */
int session_begin(struct session *session, csn_sandbox *sandbox, bool has_tty, csn_error *err);

/* Fills in call.id, the streams and callbacks, the terminal; `data` is the session's. */
void session_request(struct session *session, csn_exec_request *request);

void session_end(struct session *session);

/* The exit status: that of a signal of ours, or the command's. */
int session_status(const struct session *session, int status);
