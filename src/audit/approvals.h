/*
 * approvals - a person's yes to one start, asked for and given in files of the run root
 *
 *   <run root>/approvals/           0700, of the run root's owner
 *     ID.request  what waits for an answer       ──approve──▶  ID.yes   used once, then gone
 *                                                ──deny─────▶  ID.no    until it expires
 *     key         32 random bytes: values enter a digest under it, never as they are
 *
 * A file holds the terms of the start, all that decides what runs, and their digest: SHA-256 of
 * the canonical JSON. An answer carries the terms that were shown, and a start compares its own
 * with them. Every step that may happen once is a rename: of two who try, one finds nothing.
 *
 * A file that is not the folder's owner's, that others may touch, that has a second name, that is
 * too long, torn, or whose digest is not that of its terms is refused. Time is the boot clock's,
 * with the boot's id: setting a clock back lengthens nothing, and no answer outlives a boot.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "audit/sha.h"
#include "base/error.h"

enum {
	APPROVAL_ID = 9, /* 8 hex digits and a NUL */
	APPROVAL_KEY = 32,
	APPROVAL_TERMS_MAX = 256 << 10,     /* bytes of terms: more nobody reads */
	APPROVALS_WAITING_MAX = 256,        /* requests at one time */
	APPROVAL_GOOD_MS = 15 * 60 * 1000,  /* a yes, where nobody says otherwise; a no too */
	APPROVAL_MAX_MS = 24 * 3600 * 1000, /* the longest yes, and how long a request waits */
};

enum approval_state { APPROVAL_WAITING, APPROVAL_GIVEN, APPROVAL_DENIED };

struct approval {
	char id[APPROVAL_ID];
	enum approval_state state;
	char digest[SHA_HEX];
	json_t *terms;     /* owned */
	json_t *asked;     /* owned: {uid, pid, time} */
	json_t *answered;  /* owned: {uid, pid, time, how}; NULL while it waits */
	uint64_t left_ms;  /* until it expires; 0: it has */
	uint64_t until_ms; /* when that is, by the boot clock */
};

#define _cleanup_approval_ __attribute__((cleanup(approval_done)))

/* Frees what it holds; a zeroed one is fine, and it is zeroed afterwards. */
void approval_done(struct approval *approval);

/* "waiting", "approved", "denied". Static text. */
const char *approval_state_name(enum approval_state state);

/*
 * Opens <root>/approvals; with `makes` it and the run root are made where missing, and the root
 * must be the caller's or root's. Without, root may open that of somebody else. -ENOENT: there is
 * none. Sentence in `err`.
 */
int approvals_open(const char *root, bool makes, int *ret_fd, struct csn_error *err);

/* The folder's key, made where there is none. */
int approvals_key(int dir_fd, uint8_t ret_key[APPROVAL_KEY], struct csn_error *err);

/* Digest of terms. -ENOMEM, or -EFBIG where they are more than anybody would read. */
int approval_digest(json_t *terms, char ret_hex[SHA_HEX], struct csn_error *err);

/* Is this text of an id's form? */
bool approval_is_id(const char *text);

/*
 * Reads the answer to `id`, or the request where there is none yet. -ENOENT: neither. -EBADMSG,
 * -EPERM with a sentence: there is one that is not believed.
 */
int approval_read(int dir_fd, const char *id, struct approval *ret_approval, struct csn_error *err);

/*
 * Writes a request for these terms (borrowed), or finds the one that waits for the same. `by` says
 * who asks, without pid and time. -EAGAIN: too many wait.
 */
int approval_ask(int dir_fd, json_t *terms, struct approval *ret_approval, struct csn_error *err);

/* An answer. */
struct approval_answer {
	bool is_yes;
	uint64_t good_ms; /* 1 … APPROVAL_MAX_MS */
	const char *how;  /* "terminal", "--yes": for the record */
};

/*
 * Answers a request as it was read: the answer holds what `approval` holds. -ENOENT: it was
 * answered, or withdrawn, meanwhile.
 */
int approval_answer(int dir_fd, const struct approval *approval,
		    const struct approval_answer *answer, struct csn_error *err);

/*
 * Uses up an approval that was read as given. 0 for one caller only; -ENOENT for all others.
 * -EBADMSG: it is not what was read any more, and nobody can use it now.
 */
int approval_use(int dir_fd, const struct approval *approval, struct csn_error *err);

/* Has its time come since it was read? */
bool approval_is_over(const struct approval *approval);

/*
 * Calls `each` for every one that can be read and has not expired, in no order, until it returns
 * non-zero; returns that, or 0. Removes what expired. What cannot be believed is passed over.
 */
int approvals_each(int dir_fd, int (*each)(struct approval *approval, void *data), void *data);

/*
 * What differs between two terms: names of their parts, "command, env.TOKEN", cut with "…" where
 * `size` is too small; "" if nothing does.
 */
void approval_differences(const json_t *a, const json_t *b, char *ret_text, size_t size);
