/*
 * idle - keepers whose command is over, kept for the next ones
 *
 *   exec ──its keeper said: ended, nobody is left── idle ──another leader── spare ── exec …
 *
 * It saves the agent a fork, and the kernel a process, for each command. Kept is only a keeper that
 * no command can reach: where the kernel cuts signals by Landlock scopes, and behind a filter,
 * which leaves nobody the limits or the scheduling of another process (profiles/command.profile).
 * So what the next leader inherits is what the keeper had from the agent.
 *
 * A keeper's memory is the agent's at the time of its fork, and stays allocated: hence few, and an
 * end after some commands.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct agent;
struct exec;
struct spare;

enum { IDLE_MAX = 3, IDLE_TURNS = 64 };

struct idle {
	struct idle_keeper {
		pid_t pid;
		int fd;
		unsigned turns;
	} keepers[IDLE_MAX];
	unsigned count;
};

/* May the keeper of a command of this profile serve another one? */
bool idle_may_keep(const struct agent *agent, const char *profile);

/* Takes the keeper of a command whose end it reported, and its descriptor. False: it is not to
 * serve again, and stays the exec's, who closes its stream. */
bool idle_keep(struct idle *idle, struct exec *exec);

/* Has one of them fork a leader that gets `command`, and gives it to `spare`. False: there is none;
 * `spare` is then untouched. */
bool idle_take(struct idle *idle, int command, struct spare *spare);

/* Their pids, at most IDLE_MAX; returns how many. */
size_t idle_pids(const struct idle *idle, pid_t *ret_pids);

/* A child of the agent changed its state, as waitpid() with WUNTRACED says it. Was it one of them?
 * One that ended is forgotten, one that somebody stopped goes on. */
bool idle_child(struct idle *idle, pid_t pid, int status);
