/*
 * set - one edit of a policy file, shared by the files that make it
 */
#pragma once

#include "policy/file.h"

struct edit {
	const struct policy_file *file;
	const uint8_t *bytes; /* of the file */
	const struct policy *policy;
	const struct key *key;
	const char *value;
	struct buf *out;
	struct csn_error *err;
};

/* Appends the value as YAML. -EINVAL with a sentence for one that cannot be, -E2BIG, -ENOMEM. */
int edit_add_value(const struct edit *e);

/* Appends bytes[0..from) + before + value + after + bytes[to..); as edit_add_value(). */
int edit_splice(const struct edit *e, size_t from, size_t to, const char *before,
		const char *after);

/*
 * Puts the value where a comment at the start of a line shows the key: `#key: …`, or
 * `#  key: …` below its section, which may be a comment itself. -ENOENT: no such comment, or the
 * key is set already; whatever it made has to be parsed by the caller (comment.c).
 */
int edit_comment(const struct edit *e);
