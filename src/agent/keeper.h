/*
 * keeper - the small reaper of one command, and then perhaps of the next
 *
 *   agent ──fork── keeper ──fork── command (leader) ── … its descendants
 *     └── orders ──►┘ └── reports ──► agent              one SOCK_SEQPACKET pair, no other tie
 *
 * A child subreaper: whoever loses his parent among the command's descendants becomes its child, so
 * the command's tree is the keeper's, and no other command's. When the leader ended it kills what
 * is left until none is left, and reports the leader's end. Nobody learns of the command from the
 * keeper's own status: whoever could kill the keeper could choose it.
 *
 * Then it is gone itself, or, where commands cannot reach it and the agent says so (idle.h), forks
 * the leader of another command: a subreaper without a child (ECHILD) has no descendant, so nothing
 * of the one before is in the tree of the next. Between two it has its end of the pair and what a
 * leader asks for, and no descriptor of a command. An order that comes then was for the last one,
 * since the agent says everything about that before it asks for another, and is passed over.
 *
 * The command cannot reach it: another Landlock domain (ABI 6), not dumpable. Where the kernel has
 * no such scope a command may kill or stop its keeper: then its orphans are the agent's, which
 * misses the report, kills what is nobody else's, or ends (exec.c).
 *
 * A sandbox for one command has none: everything dies with the agent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "agent/child.h"

struct keeper_order {
	int32_t signal;
	int32_t is_tree; /* all descendants; else the leader's process group */
	int32_t is_next; /* no signal: fork another leader; its command_fd comes with this */
};

enum keeper_word { KEEPER_STARTED = 1, KEEPER_ENDED };

struct keeper_report {
	int32_t word;
	int32_t pid;    /* of the leader */
	int32_t status; /* of waitpid, when it ended */
	int32_t error;  /* errno of a command that could not be forked, 0: none */
	struct rusage usage;
};

/* The keeper's life, in the process that the agent forked for it; `agent` is the agent's pid, `fd`
 * its end of the pair. All descriptors but those of `child` are closed. Does not return. */
_Noreturn void keeper_run(struct child *child, pid_t agent, int fd);

/* The agent's side. An order to a keeper that is gone or does not read is dropped: clocks tell. */
void keeper_order(int fd, int signal, bool is_tree);

/* Asks a keeper whose last report was an end for another leader; `command_fd` stays the caller's.
 * 0 or a negative errno: it is gone. */
int keeper_next(int fd, int command_fd);

/* The next report. 1; 0: there is none now; -EPIPE: there will be none. */
int keeper_read(int fd, struct keeper_report *ret_report);
