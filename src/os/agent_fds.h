/*
 * agent_fds - where descriptors lie when the agent begins
 *
 * The contract between whoever launches an agent and the agent: frames in and out, nothing, the
 * socket on which a command announces its listener, and the files of the commands' control
 * groups, to which a process writes "0" to enter; and where the wall lets nobody open one later,
 * both sides of a terminal, or in the place of the first a socket through which they come
 * (os/terminal.h). What a wall does not have is /dev/null.
 *
 * Behind them, and simply not open where a run has no use for it, is the program of the verbs glob
 * and grep: open for reading, executable, and granted to the agent where Landlock restricts it.
 *
 * One that was prepared ahead is executed before it is known what is lent, with AGENT_AHEAD as its
 * only argument. It says so by a byte, waits for an order, takes Landlock on by it, and closes both
 * descriptors; a failure is a struct csn_error on the second, as of any step of the lockdown.
 */
#pragma once

#include <stdint.h>

enum {
	AGENT_FD_IN = 0,
	AGENT_FD_OUT = 1,
	AGENT_FD_LISTENERS = 3,
	AGENT_FD_ENTER = 4,
	AGENT_FD_ENTER_COUNT = 3,
	AGENT_FD_TTY = AGENT_FD_ENTER + AGENT_FD_ENTER_COUNT, /* a terminal, or where they come */
	AGENT_FD_TTY_PEER,
	AGENT_FD_END,
	AGENT_FD_SEARCH = AGENT_FD_END, /* caisson-search, or closed */
	AGENT_FD_ORDER,   /* of one prepared ahead: it says a byte, a struct agent_order comes, */
	AGENT_FD_FAILURE, /* and why it could not be carried out goes here */
};

#define AGENT_AHEAD "--ahead"

/* In front of `count` rules. */
struct agent_order {
	uint32_t landlock_abi; /* 0: none is taken on */
	uint32_t count;
};

/* In front of `size` bytes, its NUL counted, that name what is granted. */
struct agent_rule {
	uint32_t size;  /* at most AGENT_RULE_PATH */
	uint32_t grant; /* enum landlock_grant */
};

enum { AGENT_RULE_PATH = 4096 };

/*
 * What a command's process says on AGENT_FD_LISTENERS: the number of its listener, and whose it is;
 * the kernel adds which process. The answer, when the listener was taken, is the Ref alone: one
 * that its process did not live to read is not taken for that of the next.
 */
struct agent_listener {
	int32_t number;
	int32_t unused;
	int64_t ref; /* of the call */
};
