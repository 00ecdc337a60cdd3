/*
 * mcp - one sandbox for a Model Context Protocol client on stdin and stdout
 *
 *   stdin ─▶ lines ─▶ rpc ─▶ jobs: a queue ─▶ worker threads ─▶ tools ─▶ libcaisson ─▶ monitor
 *   stdout ◀─ out ◀──┴────────── answers, progress, log ◀────────┘
 *
 * The first thread reads, answers what needs no sandbox, and writes what a slow client left over;
 * each tool call occupies a worker, so a command that never ends holds up nobody. The client is
 * trusted as the person who started us is; what it passes on comes from a model, and what commands
 * print from anybody: both are bounded and checked before they go further.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "caisson.h"
#include "serve/mcp_box.h"
#include "serve/mcp_jobs.h"
#include "serve/mcp_out.h"

enum {
	MCP_LINE_BYTES = 16 << 20, /* of one message */
	MCP_TEXT_BYTES = 50 << 10, /* of text in one answer: what a model reads with profit */
	MCP_LINES = 2000,          /* of a file in one answer */
};

/* JSON-RPC's codes, and MCP's one for a resource that is not there. */
enum mcp_code {
	MCP_PARSE_ERROR = -32700,
	MCP_INVALID_REQUEST = -32600,
	MCP_NO_METHOD = -32601,
	MCP_INVALID_PARAMS = -32602,
	MCP_NO_RESOURCE = -32002,
};

/* Of RFC 5424, as logging/setLevel names them. */
enum mcp_level { MCP_DEBUG, MCP_INFO, MCP_NOTICE, MCP_WARNING, MCP_ERROR, MCP_LEVELS = 8 };

/* What the command line decided; borrowed by all, changed by none. */
struct mcp_config {
	csn_options options;
	const char *at;       /* where the workspace stands inside; NULL: unknown */
	const char *run_root; /* where the records are; NULL: there are none */
	char *about;          /* the policy in effect as YAML, owned; NULL: unknown */
	bool may_commit;
	bool is_read_only; /* only the tools that change nothing */
	bool keeps_alive;  /* a client that is silent is still there */
};

struct mcp {
	const struct mcp_config *config;
	struct mcp_out out;
	struct mcp_box box;
	struct mcp_jobs jobs;
	const char *version; /* of the protocol; NULL until `initialize` */
	int log_level;       /* enum mcp_level; read and written atomically */
};

/* Serves until the client is gone; the exit status. `in_fd` and `out_fd` stay open. */
int mcp_serve(const struct mcp_config *config, int in_fd, int out_fd);

/* One line that the client sent: answers it, or queues a job. */
void mcp_rpc_line(struct mcp *mcp, const char *text, size_t size);

/* Answers a request with `result` (taken), or an error. `id` is borrowed; NULL: null. */
void mcp_rpc_answer(struct mcp *mcp, const json_t *id, json_t *result);
__attribute__((format(printf, 4, 5))) void
mcp_rpc_error(struct mcp *mcp, const json_t *id, enum mcp_code code, const char *format, ...);

/* Sends a notification; `params` is taken. */
void mcp_rpc_notify(struct mcp *mcp, const char *method, json_t *params);

/* Tells the client's log, if it wants that level; `data` is taken. */
void mcp_log(struct mcp *mcp, enum mcp_level level, json_t *data);

/* resources/list, resources/templates/list, resources/read: answered at once. */
void mcp_resources_list(struct mcp *mcp, const json_t *id, const json_t *params);
void mcp_resources_templates(struct mcp *mcp, const json_t *id, const json_t *params);
void mcp_resources_read(struct mcp *mcp, const json_t *id, const json_t *params);
