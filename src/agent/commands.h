/*
 * commands - those that run and those that ended, found by tag or Ref: ps, logs, wait, kill
 *
 * A tag is unique among the living. What a detached command leaves (status, times, its ring) is
 * kept until a command with the same tag starts, `wait` is told to forget it, or 64 more, or
 * 16 MiB of output, have ended. Calls that follow a command hold its id, never a pointer: it may be
 * forgotten meanwhile.
 */
#pragma once

#include "agent/exec.h"
#include "agent/job.h"

/* Does a living command have this tag? */
bool commands_has_tag(const struct agent *agent, const char *tag);

/* Forgets ended ones with this tag; NULL: none. */
void commands_forget_tag(struct agent *agent, const char *tag);

/* Takes an ended, detached exec, which has no slot any more; the oldest gives way. */
void commands_keep(struct agent *agent, struct exec *exec);

/* Forgets an ended one. */
void commands_forget(struct agent *agent, uint64_t id);

/* NULL: forgotten. */
struct exec *commands_by_id(const struct agent *agent, uint64_t id);

/* The one that a call names by `tag` or `ref`, the living before the ended; NULL: {failed, …} was
 * sent. */
struct exec *commands_named(struct agent *agent, const struct call *call);

/* Has it ended, its output with it? */
bool commands_is_over(const struct agent *agent, const struct exec *exec);

/* Lets those step who follow a command that has news, or whose clock says so; returns ms until the
 * next one's does, -1: none. */
int commands_wake(struct agent *agent, uint64_t now_ms);

/* Frees what is kept. */
void commands_done(struct agent *agent);

/* ---- handlers for the table of verbs ---- */

/* What runs and what is remembered, in one answer. */
void ps_start(struct agent *agent, const struct call *call);

/* TERM and then KILL, or one signal; answered at once. */
void kill_start(struct agent *agent, const struct call *call);

/* A job of logs.c: the ring's content as `data`. */
void logs_start(struct agent *agent, const struct call *call);

/* A job of wait.c: answered when what is waited for came, or cannot come any more. */
void wait_start(struct agent *agent, const struct call *call);

extern const struct job_type logs_type, wait_type;

/* When a `wait` must be stepped again though nothing happened. */
uint64_t wait_next_ms(const struct job *job);
