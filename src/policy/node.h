/*
 * node - YAML bytes as a small tree, every node with its place
 *
 * A tree of maps, lists and scalars, bounded in depth, width and bytes, without anything
 * that makes YAML surprising: no anchors, aliases, tags, directives or second documents.
 * What the scalars mean is not decided here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "policy/policy.h"

enum { NODE_MAX_DEPTH = 16, NODE_MAX_WIDTH = 256 };

/* Where values are read from and to. */
struct policy_source {
	struct arena *arena; /* texts and items go here */
	const char *name;    /* file, or flag */
	struct csn_error *err;
};

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	struct policy_mark mark; /* 0:0 for text that is not from a file */
	size_t start, end;       /* byte offsets in the file */
	bool is_plain;           /* scalar without quotes */
	bool is_flow;            /* [..] {..}, or a scalar that ends where it is written */
	const char *text;        /* scalars only; in the arena, no NUL inside */
	const char *key;         /* inside a map: this node's key, else NULL */
	struct policy_mark key_mark;
	struct node *parent, *first, *last, *next;
	size_t count;
};

/* Says `NAME:LINE:COLUMN: what, expected what` and returns -EINVAL. */
__attribute__((format(printf, 4, 5))) int node_fail(struct csn_error *err, const char *name,
						    struct policy_mark mark, const char *format,
						    ...);

/*
 * Reads one document. The tree lives in the source's arena. -EINVAL with a sentence that begins
 * with NAME:LINE:COLUMN, -E2BIG for more than POLICY_MAX_BYTES, -ENOMEM when the quota is used up.
 */
int node_read(const struct policy_source *source, const void *bytes, size_t size,
	      const struct node **ret_root);

/* The child of a map by key, or NULL. */
const struct node *node_get(const struct node *map, const char *key);

enum { NODE_SHOWN = 72 };

/* `text` for a message, in NODE_SHOWN bytes: cut, and control characters replaced. */
const char *node_show(const char *text, char *ret_shown);
