/*
 * search - glob and grep: a program of its own for each call
 *
 * The agent starts caisson-search, which it was handed as descriptor AGENT_FD_SEARCH, reads its
 * answer (search/answer.h) from a pipe, checks and translates it into one reply. An expression that
 * does not end, a file system that does not answer or a million folders hold nothing but that
 * process: it is killed at `timeout_ms`, by a cancel, or with the agent, and the other calls go on.
 *
 * The process is in the commands' control groups, in a Landlock domain of its own, and under the
 * agent's filter. Its start folder is opened in it, by the same rules as every path (resolve.h).
 *
 * Life: search_glob(), search_grep() in the table of verbs; search_ready() as the answer comes;
 * search_reaped(); search_finish() answers when the pipe has ended and the process is gone.
 * Without the descriptor the two verbs are not there.
 */
#pragma once

#include "agent/agent.h"
#include "agent/verbs.h"

struct search;

/* Was the program handed over? Asked once, before any other descriptor is opened. */
bool search_is_lent(void);

/* Is there a program to start? */
bool search_is_there(const struct agent *agent);

/* Handlers for the table of verbs. */
void search_glob(struct agent *agent, const struct call *call);
void search_grep(struct agent *agent, const struct call *call);

/* The search of a call, NULL if there is none. */
struct search *search_find(struct agent *agent, int64_t ref);

/* Ends it; it answers {failed, Ref, cancelled, …}. */
void search_cancel(struct search *search);

/* Something came from the one in this slot, or it ended. */
void search_ready(struct agent *agent, unsigned slot);

/* A child is gone that was no command. */
void search_reaped(struct agent *agent, pid_t pid, int status);

/* The processes that run, at most AGENT_SEARCHES; returns how many. */
size_t search_pids(const struct agent *agent, pid_t *ret_pids);

/* Answers and frees those that are over; ms until the next one must be looked at, -1: none. */
int search_finish(struct agent *agent, uint64_t now_ms);

/* Kills all without a word. */
void search_done(struct agent *agent);
