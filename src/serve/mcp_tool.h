/*
 * mcp_tool - the tools that a model is shown, as data
 *
 * A tool is a row: name, texts, what it takes and gives, hints, its function. The schemas of
 * tools/list and the checks of arguments come from the same fields, so they cannot differ.
 *
 * A tool's function works in a thread of its own, with a sandbox that stays while it does. It adds
 * texts and structured content, and returns 0, or -code with a sentence in `err`: then what it
 * added is dropped, and the sentence is the answer. Both are results for the model.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"
#include "caisson.h"
#include "serve/mcp.h"

enum mcp_type { MCP_STRING, MCP_INTEGER, MCP_BOOLEAN, MCP_STRINGS, MCP_OBJECTS };

/* An argument, or a field of structured content. A table ends with a NULL name. */
struct mcp_field {
	const char *name;
	enum mcp_type type;
	bool is_required;
	int64_t min, max; /* of an integer; both 0: any that is not negative */
	const char *what; /* for the model */
	const struct mcp_field *of;
};

enum mcp_hint {
	MCP_READS = 1 << 0,       /* changes nothing */
	MCP_DESTROYS = 1 << 1,    /* may overwrite or remove */
	MCP_IDEMPOTENT = 1 << 2,  /* twice is once */
	MCP_FOR_READERS = 1 << 3, /* is in the set `read-only` too */
	MCP_IS_COMMIT = 1 << 4,   /* is there with --allow-commit only */
};

struct mcp_call {
	struct mcp *mcp;
	struct mcp_job *job;
	csn_sandbox *sandbox;
	struct mcp_box_facts facts;
	json_t *content;    /* owned, an array */
	json_t *structured; /* owned, an object */
	struct buf note;    /* said after all texts */
	bool is_error;
	csn_error err;
};

struct mcp_tool {
	const char *name, *title, *text;
	const struct mcp_field *takes, *gives;
	unsigned hints;
	int (*run)(struct mcp_call *call);
};

/* All tools in the order of tools/list; the last has a NULL name. */
extern const struct mcp_tool mcp_tools[];

/* Is it shown to this client? */
bool mcp_tool_is_shown(const struct mcp_config *config, const struct mcp_tool *tool);
/* NULL: there is none, or it is not shown. */
const struct mcp_tool *mcp_tool_find(const struct mcp_config *config, const char *name);
/* Its entry of tools/list; the caller's, NULL without memory. */
json_t *mcp_tool_describe(const struct mcp_tool *tool);

/* Does a job and answers its request. */
void mcp_tool_work(struct mcp *mcp, struct mcp_job *job);

/* ---- for the tools' functions --------------------------------------------------------------- */

/* An argument, which was checked; NULL, `other` or false if it was left out. Borrowed. */
const char *mcp_arg(const struct mcp_call *call, const char *name);
size_t mcp_arg_size(const struct mcp_call *call, const char *name);
int64_t mcp_arg_int(const struct mcp_call *call, const char *name, int64_t other);
bool mcp_arg_is(const struct mcp_call *call, const char *name);

/* For a request's `call`: another number each time, so that a cancel reaches it. */
csn_call mcp_call_id(struct mcp_call *call, uint32_t timeout_ms);

/* Adds a text; what is no UTF-8 in it becomes U+FFFD. */
void mcp_text(struct mcp_call *call, const void *bytes, size_t size);
/* Adds a sentence: one line, in which what is unsafe to print is escaped. */
__attribute__((format(printf, 2, 3))) void mcp_say(struct mcp_call *call, const char *format, ...);
/* Adds one after the texts. */
__attribute__((format(printf, 2, 3))) void mcp_note(struct mcp_call *call, const char *format, ...);

/* Sets a field of the structured content. */
void mcp_give_text(struct mcp_call *call, const char *name, const char *text);
void mcp_give_bytes(struct mcp_call *call, const char *name, const void *bytes, size_t size);
void mcp_give_int(struct mcp_call *call, const char *name, uint64_t value);
void mcp_give_bool(struct mcp_call *call, const char *name, bool value);
void mcp_give(struct mcp_call *call, const char *name, json_t *value); /* taken */

/* Fills `err` and returns -code: the tool's answer. */
__attribute__((format(printf, 3, 4))) int mcp_fail(struct mcp_call *call, int code,
						   const char *format, ...);

/* ---- the tools ------------------------------------------------------------------------------ */

/* Lines of a text file, or an image. 0, or -code with call->err. */
int mcp_read(struct mcp_call *call);
/* Replaces a file. 0, or -code with call->err. */
int mcp_write(struct mcp_call *call);
/* Replaces a text that occurs once. 0, or -code with call->err. */
int mcp_edit(struct mcp_call *call);
/* Runs a command, or leaves it in the background. 0, or -code with call->err. */
int mcp_bash(struct mcp_call *call);
/* What one in the background wrote; may wait. 0, or -code with call->err. */
int mcp_logs(struct mcp_call *call);
/* Ends one in the background. 0, or -code with call->err. */
int mcp_kill(struct mcp_call *call);
/* Paths that match. 0, or -code with call->err. */
int mcp_glob(struct mcp_call *call);
/* Lines that match. 0, or -code with call->err. */
int mcp_grep(struct mcp_call *call);
/* Lends a path of the host. 0, or -code with call->err. */
int mcp_mount(struct mcp_call *call);
/* What was changed in the copy. 0, or -code with call->err. */
int mcp_diff(struct mcp_call *call);
/* Writes that to the workspace. 0, or -code with call->err. */
int mcp_commit(struct mcp_call *call);
/* What is enforced and allowed. 0, or -code with call->err. */
int mcp_sandbox(struct mcp_call *call);
