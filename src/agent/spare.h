/*
 * spare - the next command's keeper and leader, forked while the agent has nothing to do
 *
 *   agent ──fork── keeper ──fork── leader, waits ◄── {what to run, its descriptors} ── agent
 *
 * A call then costs no fork and no filter: the leader walks the same table of steps (child.c) as
 * one that was forked for its call, and waits where that says "command": in its own domain, behind
 * the usual filter, in no control group yet. There is one at most, from {init, …} on where that
 * asks for it, else after the first command. Where a keeper is idle (idle.h) it forks the leader,
 * and the agent nothing. Where there is none, or the call is larger than a message or has another
 * filter, the agent forks as ever.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct agent;
struct child;
struct exec;

struct spare {
	pid_t keeper;   /* 0: none */
	int keeper_fd;  /* orders and reports, as of any keeper */
	unsigned turns; /* as keeper_turns of struct exec */
	int command_fd; /* to the leader; its end is the leader's end */
	bool is_wanted; /* commands will come */
};

/* Nothing yet; the descriptors are -1. */
void spare_init(struct spare *spare);

/* Should one be forked, once there is nothing else to do? */
bool spare_is_due(const struct agent *agent);

/* Forks one. A failure is no fault: the next command forks for itself. */
void spare_fork(struct agent *agent);

/* Tells the leader what to run and gives the keeper to `exec`. True: done. False: there is none, or
 * it cannot be told (and is gone); `exec` is then untouched. */
bool spare_use(struct agent *agent, const struct child *child, struct exec *exec);

/* A child of the agent changed its state, as waitpid() with WUNTRACED says it. Was it the spare
 * keeper? One that ended is forgotten, one that somebody stopped goes on. */
bool spare_child(struct agent *agent, pid_t pid, int status);

/* The leader's side: waits for what it is to run, and fills `child` from it. What that points to
 * lives in child->room. 0 or a negative errno; does not return where the agent wants nothing. */
int spare_receive(struct child *child);
