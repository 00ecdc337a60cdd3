/* Sandbox and Mount: what holds in here, and lending more of the host. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "serve/mcp_text.h"
#include "serve/mcp_tool.h"

/* The features that walls enforce, in words for a model. */
static const struct {
	const char *name, *what;
} features[] = {
	{ "fs-view", "only the workspace, mounts and the system's programs are visible" },
	{ "fs-write", "writing works where it is lent, and in /tmp" },
	{ "fs-hide", "hidden files of the workspace cannot be read" },
	{ "fs-protect", "protected files of the workspace cannot be changed" },
	{ "fs-cow", "changes of the workspace go to a copy" },
	{ "net-none", "no network" },
	{ "net-loopback", "no network but the sandbox's own 127.0.0.1" },
	{ "pids", "no process outside is visible" },
	{ "syscalls", "only the usual system calls" },
	{ "privilege", "no privileges, and none to be had" },
	{ "identity", "a user id that owns nothing else" },
	{ "time", "commands end at their time" },
	{ "output", "output is limited" },
	{ "memory", "memory is limited" },
	{ "processes", "the number of processes is limited" },
	{ "cpu", "processors are limited" },
	{ "scratch", "/tmp is limited" },
};

static json_t *say_features(struct mcp_call *call, struct buf *text)
{
	json_t *list = json_array();

	buf_add_text(text, "Enforced by the wall:\n");
	for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
		if (!csn_enforces(call->sandbox, features[i].name))
			continue;
		buf_printf(text, "- %s: %s\n", features[i].name, features[i].what);
		json_array_append_new(list, json_string(features[i].name));
	}
	return list;
}

static void say_bytes(struct buf *text, const char *what, uint64_t used, uint64_t limit)
{
	char most[32] = "no limit", now[32] = "?";

	if (limit != CSN_NONE)
		str_format_size(limit, most, sizeof most);
	if (used != CSN_NONE)
		str_format_size(used, now, sizeof now);
	buf_printf(text, "- %s: %s of %s\n", what, now, most);
}

static void say_usage(struct buf *text, const csn_stats_result *stats)
{
	buf_add_text(text, "Used now:\n");
	say_bytes(text, "memory", stats->mem_bytes, stats->mem_limit);
	say_bytes(text, "scratch", stats->scratch_bytes, stats->scratch_limit);
	buf_printf(text, "- commands that run: %" PRIu64 "\n", stats->commands);
}

int mcp_sandbox(struct mcp_call *call)
{
	const struct mcp_config *config = call->mcp->config;
	csn_call id = mcp_call_id(call, 0);
	_cleanup_buf_ struct buf text = { 0 };
	csn_stats_result *stats;
	int r = csn_stats(call->sandbox, &id, &stats, &call->err);

	if (r < 0)
		return r;
	buf_init(&text, MCP_TEXT_BYTES);
	buf_printf(&text, "Sandbox %s: tier %s, wall %s.\n", stats->sandbox_id, stats->tier,
		   stats->backend);
	buf_printf(&text, "Workspace: %s, mode %s (on the host: %s).\n",
		   config->at ? config->at : "?", stats->mode ? stats->mode : "none",
		   stats->workspace ? stats->workspace : "none");
	mcp_give(call, "enforced", say_features(call, &text));
	say_usage(&text, stats);
	if (config->about) {
		buf_add_text(&text, "The policy in effect:\n");
		buf_add_text(&text, config->about);
		mcp_give_text(call, "policy", config->about);
	}
	mcp_text(call, buf_at(&text), buf_size(&text));
	mcp_give_text(call, "sandbox_id", stats->sandbox_id);
	mcp_give_text(call, "tier", stats->tier);
	mcp_give_text(call, "backend", stats->backend);
	mcp_give_text(call, "workspace", config->at ? config->at : "");
	mcp_give_text(call, "mode", stats->mode ? stats->mode : "none");
	csn_free(stats);
	return 0;
}

int mcp_mount(struct mcp_call *call)
{
	const char *host = mcp_arg(call, "host_path"), *at = mcp_arg(call, "path");
	csn_mount_request request = { .call = mcp_call_id(call, 0),
				      .host = host,
				      .at = at,
				      .writable = mcp_arg_is(call, "writable") };
	int r = csn_mount(call->sandbox, &request, &call->err);

	if (r == -CSN_NOT_SUPPORTED)
		return mcp_fail(call, CSN_NOT_SUPPORTED,
				"not supported: this sandbox's wall cannot mount while it runs; a "
				"person lends a path at its start, with --mount");
	if (r < 0)
		return r;
	mcp_say(call, "%.500s is mounted at %.500s, %s.", host, at,
		request.writable ? "writable" : "read-only");
	mcp_give_text(call, "path", at);
	mcp_give_bool(call, "writable", request.writable);
	return 0;
}
