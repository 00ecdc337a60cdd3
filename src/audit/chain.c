/*
 * The hash chain. A line is built in place: the text before the hash, a hole, the text
 * after it; then both sides are hashed and the hole is filled. That gives the same bytes
 * as jansson's sorted, compact form of the whole object (the keys sort as event, hash,
 * payload, prev, seq, time) with its numbers shortened, at a fraction of the price.
 *
 * Lines wait in `pending` only while the launch reports (see event.c) and leave it in one
 * write. A kill can cut that write at a page's end: then all complete lines verify, and the
 * verifier calls the last one cut short. A write that fails half-way is taken back, so that
 * the file still ends with a line that verifies.
 */
#include "audit/audit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/dump.h"
#include "audit/sha.h"
#include "audit/verify.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

enum {
	PENDING_MAX = 4 * CHAIN_LINE_MAX,
	FRAME_MAX = 512, /* everything of a line but its payload is shorter */
	HASH_FIELD = 74, /* "hash":"<64>", */
	PAYLOAD_MAX = CHAIN_LINE_MAX - FRAME_MAX,
	CUT_DEPTH_MAX = 32,
	CUT_TEXT_MAX = 1024, /* bytes a text keeps where a payload must be cut */
	CUT_START_MAX = 4096,
};

void chain_init(struct chain *chain, int fd)
{
	*chain = (struct chain){ .fd = fd, .seq = 1 };
	memset(chain->head, '0', SHA_HEX - 1);
	memcpy(chain->disk_head, chain->head, SHA_HEX);
	buf_init(&chain->pending, PENDING_MAX);
}

void chain_resume(struct chain *chain, int fd, const struct chain_end *end)
{
	chain_init(chain, fd);
	chain->seq = end->seq + 1;
	chain->disk_seq = end->seq;
	chain->disk_size = end->size;
	memcpy(chain->head, end->head, SHA_HEX);
	memcpy(chain->disk_head, end->head, SHA_HEX);
}

void chain_done(struct chain *chain)
{
	chain_flush(chain);
	buf_done(&chain->pending);
	chain->fd = fd_close(chain->fd);
}

/* What is on disk ends at `disk_size`; everything after it never happened. */
static void fail(struct chain *chain, int error)
{
	if (chain->is_incomplete)
		return;
	chain->is_incomplete = true;
	chain->error = error;
	chain->seq = chain->disk_seq + 1;
	memcpy(chain->head, chain->disk_head, SHA_HEX);
	buf_done(&chain->pending);
	if (ftruncate(chain->fd, (off_t)chain->disk_size) < 0)
		return; /* the verifier will name the cut line */
}

void chain_flush(struct chain *chain)
{
	size_t size = buf_size(&chain->pending);
	int r;

	if (chain->fd < 0 || size == 0)
		return;
	r = fd_write_all(chain->fd, buf_at(&chain->pending), size);
	if (r == 0 && chain->syncs && fdatasync(chain->fd) < 0)
		r = -errno;
	if (r < 0) {
		fail(chain, r);
		return;
	}
	buf_clear(&chain->pending);
	chain->waiting = 0;
	chain->disk_size += size;
	chain->disk_seq = chain->seq - 1;
	memcpy(chain->disk_head, chain->head, SHA_HEX);
}

/* ---- payloads that are too big ------------------------------------------------------- */

/* The largest size <= `max` at which a UTF-8 text may be cut. */
static size_t cut_point(const char *text, size_t max)
{
	while (max > 0 && ((unsigned char)text[max] & 0xc0) == 0x80)
		max--;
	return max;
}

static json_t *cut_text(const char *text, size_t size)
{
	size_t keep = size > CUT_TEXT_MAX ? cut_point(text, CUT_TEXT_MAX) : size;

	if (keep == size)
		return json_stringn(text, size);
	return json_sprintf("%.*s[cut: %zu more bytes]", (int)keep, text, size - keep);
}

/* A copy in which every text is short. NULL when out of memory. */
static json_t *cut_copy(json_t *value, unsigned depth)
{
	json_t *copy, *item;
	const char *key;
	size_t i;

	if (json_is_string(value))
		return cut_text(json_string_value(value), json_string_length(value));
	if (!json_is_object(value) && !json_is_array(value))
		return json_incref(value);
	if (depth == 0)
		return json_string("[cut]");
	copy = json_is_object(value) ? json_object() : json_array();
	json_object_foreach(value, key, item)
		json_object_set_new(copy, key, cut_copy(item, depth - 1));
	json_array_foreach(value, i, item)
		json_array_append_new(copy, cut_copy(item, depth - 1));
	return copy;
}

/* The last resort: how big it was, and how it began. */
static json_t *cut_outline(const char *text, size_t size)
{
	size_t keep = cut_point(text, size < CUT_START_MAX ? size : CUT_START_MAX);

	return json_pack("{s:b, s:I, s:s%}", "cut", 1, "bytes", (json_int_t)size, "start", text,
			 keep);
}

/* Takes `value`; NULL is an allocation that failed. */
static int dump_new(json_t *take_value, char **ret_text, size_t *ret_size)
{
	int r = take_value ? dump_short(take_value, ret_text, ret_size) : -ENOMEM;

	json_decref(take_value);
	return r;
}

/* The payload as text that fits a line, if need be with short texts, if need be as an outline. */
static int payload_text(json_t *payload, char **ret_text)
{
	char *whole, *text;
	size_t size, whole_size;
	int r = dump_short(payload, &whole, &whole_size);

	if (r < 0)
		return r;
	if (whole_size <= PAYLOAD_MAX) {
		*ret_text = whole;
		return 0;
	}
	r = dump_new(cut_copy(payload, CUT_DEPTH_MAX), &text, &size);
	if (r == 0 && size > PAYLOAD_MAX) {
		free(text);
		r = dump_new(cut_outline(whole, whole_size), &text, &size);
	}
	free(whole);
	if (r == 0)
		*ret_text = text;
	return r;
}

/* ---- adding ----------------------------------------------------------------------- */

static int add_line(struct chain *chain, enum audit_event event, const char *payload)
{
	size_t max = strlen(payload) + FRAME_MAX;
	char time[CLOCK_TEXT], hash[SHA_HEX], *line;
	int before, after;

	clock_format(clock_wall_ms(), time);
	line = (char *)buf_reserve(&chain->pending, max);
	if (!line)
		return -ENOMEM;
	before = snprintf(line, max, "{\"event\":\"%s\",", audit_event_name(event));
	after = snprintf(line + before + HASH_FIELD, max - (size_t)before - HASH_FIELD,
			 "\"payload\":%s,\"prev\":\"%s\",\"seq\":%llu,\"time\":\"%s\"}\n", payload,
			 chain->head, (unsigned long long)chain->seq, time);
	sha_parts((struct sha_part[]){ { line, (size_t)before },
				       { line + before + HASH_FIELD, (size_t)after - 1 } },
		  2, hash);
	memcpy(line + before, "\"hash\":\"", 8);
	memcpy(line + before + 8, hash, SHA_HEX - 1);
	memcpy(line + before + 8 + SHA_HEX - 1, "\",", 2);
	buf_grew(&chain->pending, (size_t)(before + HASH_FIELD + after));
	memcpy(chain->head, hash, SHA_HEX);
	chain->seq++;
	return 0;
}

/* The text of a payload, redacted and short enough; NULL is one that could not be built. */
static int prepare(const struct chain *chain, json_t *payload, char **ret_text)
{
	json_t *clean;
	int r;

	if (!payload) {
		*ret_text = strdup("{\"missing\":true}");
		return *ret_text ? 0 : -ENOMEM;
	}
	clean = chain->redactor ? redact_json(chain->redactor, payload) : json_incref(payload);
	r = clean ? payload_text(clean, ret_text) : -ENOMEM;
	json_decref(clean);
	return r;
}

void chain_add(struct chain *chain, enum audit_event event, json_t *payload)
{
	char *text = NULL;
	int r;

	if (chain->fd < 0 || chain->is_incomplete) {
		json_decref(payload);
		return;
	}
	r = prepare(chain, payload, &text);
	json_decref(payload);
	if (buf_room(&chain->pending) < CHAIN_LINE_MAX)
		chain_flush(chain);
	if (r == 0 && !chain->is_incomplete)
		r = add_line(chain, event, text);
	free(text);
	if (r < 0) {
		chain_flush(chain); /* what came before is whole */
		fail(chain, r);
	} else if (chain->syncs || !audit_event_may_wait(event) ||
		   ++chain->waiting >= CHAIN_WAITING_MAX) {
		chain_flush(chain);
	}
}
