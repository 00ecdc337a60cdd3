/* See mcp_box.h. One thread opens while the others wait for it; none holds the lock meanwhile. */
#include "serve/mcp_box.h"

#include <stdio.h>
#include <string.h>

#include "serve/mcp.h"

static int fail(csn_error *err, int code, const char *sentence)
{
	err->code = code;
	snprintf(err->stage, sizeof err->stage, "sandbox");
	snprintf(err->text, sizeof err->text, "%s", sentence);
	return -code;
}

void mcp_box_init(struct mcp_box *box, const struct mcp_config *config)
{
	*box = (struct mcp_box){ .config = config };
	pthread_mutex_init(&box->lock, NULL);
	pthread_cond_init(&box->changed, NULL);
}

/* What it says of itself. Nothing depends on it: without an answer the texts say less. */
static void learn(csn_sandbox *sandbox, bool has_record, struct mcp_box_facts *ret_facts)
{
	csn_stats_result *stats;

	memset(ret_facts, 0, sizeof *ret_facts);
	if (csn_stats(sandbox, NULL, &stats, NULL) < 0)
		return;
	if (has_record)
		snprintf(ret_facts->id, sizeof ret_facts->id, "%s", stats->sandbox_id);
	snprintf(ret_facts->mode, sizeof ret_facts->mode, "%s", stats->mode ? stats->mode : "");
	if (stats->workspace && strlen(stats->workspace) < sizeof ret_facts->workspace)
		memcpy(ret_facts->workspace, stats->workspace, strlen(stats->workspace) + 1);
	csn_free(stats);
}

/* Under the lock, which is let go meanwhile. */
static int open_box(struct mcp_box *box, csn_error *err)
{
	struct mcp_box_facts facts = { 0 };
	csn_sandbox *sandbox;

	box->is_opening = true;
	pthread_mutex_unlock(&box->lock);
	sandbox = csn_open(&box->config->options, err);
	if (sandbox)
		learn(sandbox, box->config->run_root != NULL, &facts);
	pthread_mutex_lock(&box->lock);
	box->is_opening = false;
	pthread_cond_broadcast(&box->changed);
	if (!sandbox)
		return err->code > 0 ? -err->code : -CSN_EIO;
	facts.is_new = true;
	facts.is_next = box->past_count > 0;
	snprintf(box->past[box->past_count++ % MCP_BOX_PAST], MCP_BOX_ID, "%s", facts.id);
	box->sandbox = sandbox;
	box->facts = facts;
	box->is_lost = false;
	return 0;
}

/* Under the lock: the one that was lost, when nobody uses it any more. */
static void drop_lost(struct mcp_box *box)
{
	csn_sandbox *lost = box->sandbox;

	if (!lost || !box->is_lost || box->users > 0 || box->is_opening)
		return;
	box->sandbox = NULL;
	box->is_opening = true;
	pthread_mutex_unlock(&box->lock);
	csn_close(lost);
	pthread_mutex_lock(&box->lock);
	box->is_opening = false;
	pthread_cond_broadcast(&box->changed);
}

/* Under the lock. */
static int take(struct mcp_box *box, csn_error *err)
{
	while (!box->is_over && (box->is_opening || box->is_lost)) {
		if (box->is_opening || box->users > 0)
			pthread_cond_wait(&box->changed, &box->lock);
		else if (box->sandbox)
			drop_lost(box);
		else
			box->is_lost = false;
	}
	if (box->is_over)
		return fail(err, CSN_CANCELLED, "the client is gone");
	return box->sandbox ? 0 : open_box(box, err);
}

int mcp_box_take(struct mcp_box *box, csn_sandbox **ret_sandbox, struct mcp_box_facts *ret_facts,
		 csn_error *err)
{
	int r;

	pthread_mutex_lock(&box->lock);
	r = take(box, err);
	if (r == 0) {
		box->users++;
		*ret_sandbox = box->sandbox;
		if (ret_facts) {
			*ret_facts = box->facts;
			box->facts.is_new = false;
		}
	}
	pthread_mutex_unlock(&box->lock);
	return r;
}

void mcp_box_give(struct mcp_box *box, bool is_lost)
{
	pthread_mutex_lock(&box->lock);
	box->users--;
	box->is_lost |= is_lost;
	pthread_cond_broadcast(&box->changed);
	pthread_mutex_unlock(&box->lock);
}

void mcp_box_beat(struct mcp_box *box)
{
	csn_ps_result *commands;
	csn_sandbox *sandbox = NULL;
	int r;

	pthread_mutex_lock(&box->lock);
	if (box->sandbox && !box->is_lost && !box->is_opening) {
		sandbox = box->sandbox;
		box->users++;
	}
	pthread_mutex_unlock(&box->lock);
	if (!sandbox)
		return;
	r = csn_ps(sandbox, &(csn_call){ .timeout_ms = 2000 }, &commands, NULL);
	if (r == 0)
		csn_free(commands);
	mcp_box_give(box, r == -CSN_LOST);
}

unsigned mcp_box_records(struct mcp_box *box, char ret_ids[MCP_BOX_PAST][MCP_BOX_ID])
{
	unsigned count = 0;

	pthread_mutex_lock(&box->lock);
	for (unsigned i = 0; i < box->past_count && i < MCP_BOX_PAST; i++) {
		const char *id = box->past[(box->past_count - 1 - i) % MCP_BOX_PAST];

		if (*id)
			memcpy(ret_ids[count++], id, MCP_BOX_ID);
	}
	pthread_mutex_unlock(&box->lock);
	return count;
}

void mcp_box_end(struct mcp_box *box)
{
	pthread_mutex_lock(&box->lock);
	box->is_over = true;
	pthread_cond_broadcast(&box->changed);
	pthread_mutex_unlock(&box->lock);
}

void mcp_box_close(struct mcp_box *box)
{
	csn_close(box->sandbox);
	box->sandbox = NULL;
	pthread_cond_destroy(&box->changed);
	pthread_mutex_destroy(&box->lock);
}
