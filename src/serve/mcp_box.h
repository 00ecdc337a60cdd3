/*
 * mcp_box - the one sandbox, made when it is first needed
 *
 * An agent program starts all its servers at once and uses few of them, so nothing is made before
 * the first call of a tool. A sandbox that is lost (its monitor was killed, its idle clock ran out)
 * is given up when its last call has returned; the next call makes a new one.
 *
 * Life: mcp_box_take() before a call, mcp_box_give() after it, by any thread; mcp_box_close() when
 * no call runs any more.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "caisson.h"

enum { MCP_BOX_ID = 64, MCP_BOX_PAST = 16 };

struct mcp_config;

/* What is known of the sandbox that a call works in; copied. */
struct mcp_box_facts {
	char id[MCP_BOX_ID]; /* of its record; "": none */
	char mode[8];        /* of its workspace: "cow"; "": there is none */
	char workspace[512]; /* on the host; "": none, or a longer one */
	bool is_new;         /* nobody was told of it yet: the first taker */
	bool is_next;        /* one before it was lost */
};

struct mcp_box {
	const struct mcp_config *config; /* borrowed */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	csn_sandbox *sandbox; /* owned; NULL: none */
	struct mcp_box_facts facts;
	bool is_opening, is_lost, is_over;
	unsigned users;
	char past[MCP_BOX_PAST][MCP_BOX_ID]; /* records of all there were, as a ring */
	unsigned past_count;
};

/* Empty; `config` is borrowed. */
void mcp_box_init(struct mcp_box *box, const struct mcp_config *config);

/*
 * The sandbox, for one call; it may be made for it, which is waited for. `ret_facts` may be NULL.
 * 0, or -code with a sentence.
 */
int mcp_box_take(struct mcp_box *box, csn_sandbox **ret_sandbox, struct mcp_box_facts *ret_facts,
		 csn_error *err);
void mcp_box_give(struct mcp_box *box, bool is_lost);

/* Somebody is there: the sandbox's idle clock begins anew. Makes none. */
void mcp_box_beat(struct mcp_box *box);

/* The ids of records of this server's sandboxes, the newest first; how many. */
unsigned mcp_box_records(struct mcp_box *box, char ret_ids[MCP_BOX_PAST][MCP_BOX_ID]);

/* No call is made any more. */
void mcp_box_end(struct mcp_box *box);
/* Ends the sandbox; waits until nothing of it is left. No call may run. */
void mcp_box_close(struct mcp_box *box);
