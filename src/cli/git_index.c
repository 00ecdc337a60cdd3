/*
 * A bounded walk over the entries of a git index
 *
 * The file lies in a folder where untrusted code may have written. Every length is checked
 * against what is left, nothing is allocated, and what is odd ends the walk.
 */
#include "cli/git_index.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum {
	HEADER = 12,
	AT_SHA1 = 40, /* after ten numbers of stat() */
	AT_FLAGS = 60,
	FIXED = 62,
	EXTENDED = 0x4000, /* two more bytes of flags */
	STAGE = 0x3000,    /* of a conflict */
	LENGTH = 0x0fff,   /* of the name; a longer one says this */
};

struct walk {
	const uint8_t *at, *end; /* the end is before the checksum */
	uint32_t version;
};

static uint32_t big_endian(const uint8_t *at, size_t count)
{
	uint32_t number = 0;

	for (size_t i = 0; i < count; i++)
		number = number << 8 | at[i];
	return number;
}

/* Takes one entry: its name, its bytes, its flags. False where it is none. */
static bool take_entry(struct walk *walk, const uint8_t **ret_entry, const char **ret_name)
{
	size_t left = (size_t)(walk->end - walk->at), head = FIXED, length, size;
	const uint8_t *name, *zero;
	uint32_t flags;

	if (left <= FIXED)
		return false;
	flags = big_endian(walk->at + AT_FLAGS, 2);
	if (flags & EXTENDED)
		head += 2;
	if (head > left || ((flags & EXTENDED) && walk->version < 3))
		return false;
	name = walk->at + head;
	zero = memchr(name, 0, left - head);
	if (!zero || zero == name)
		return false;
	length = (size_t)(zero - name);
	if ((flags & LENGTH) != (length < LENGTH ? length : LENGTH))
		return false;
	/* One to eight zero bytes fill it up. */
	size = (head + length + 8) & ~(size_t)7;
	if (size > left)
		return false;
	*ret_entry = walk->at;
	*ret_name = (const char *)name;
	walk->at += size;
	return true;
}

/* An extension in small letters changes what the entries mean. */
static bool skip_extensions(struct walk *walk)
{
	while (walk->at < walk->end) {
		size_t left = (size_t)(walk->end - walk->at), size;

		if (left < 8 || walk->at[0] < 'A' || walk->at[0] > 'Z')
			return false;
		size = big_endian(walk->at + 4, 4);
		if (size > left - 8)
			return false;
		walk->at += 8 + size;
	}
	return true;
}

int git_index_find(const void *data, size_t size, const char *path, uint8_t ret_sha1[GIT_SHA1])
{
	struct walk walk = { .at = data };
	uint8_t sha1[GIT_SHA1] = { 0 };
	uint32_t count;
	int found = 0;

	if (size < HEADER + GIT_SHA1 || memcmp(data, "DIRC", 4) != 0)
		return -EBADMSG;
	walk.end = walk.at + size - GIT_SHA1;
	walk.version = big_endian(walk.at + 4, 4);
	count = big_endian(walk.at + 8, 4);
	walk.at += HEADER;
	if (walk.version < 2 || walk.version > 3)
		return -EBADMSG;
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *entry;
		const char *name;

		if (!take_entry(&walk, &entry, &name))
			return -EBADMSG;
		if (strcmp(name, path) != 0)
			continue;
		found = 1;
		if (!(big_endian(entry + AT_FLAGS, 2) & STAGE))
			memcpy(sha1, entry + AT_SHA1, GIT_SHA1);
	}
	if (!skip_extensions(&walk))
		return -EBADMSG;
	memcpy(ret_sha1, sha1, GIT_SHA1);
	return found;
}
