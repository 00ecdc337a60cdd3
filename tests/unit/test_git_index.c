/* Indexes as git writes them, and everything that is not read. */
#include "cli/git_index.h"
#include "tap.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

static void add_number(struct buf *buf, uint32_t number, int bytes)
{
	while (bytes--)
		CHECK(buf_add_byte(buf, (uint8_t)(number >> 8 * bytes)) == 0);
}

static void begin(struct buf *buf, uint32_t version, uint32_t count)
{
	buf_init(buf, 1 << 20);
	CHECK(buf_add_text(buf, "DIRC") == 0);
	add_number(buf, version, 4);
	add_number(buf, count, 4);
}

static void add_entry(struct buf *buf, const char *name, uint8_t sha1, uint32_t flags)
{
	size_t length = strlen(name), start = buf_size(buf);

	for (int i = 0; i < 40; i++)
		CHECK(buf_add_byte(buf, 0xee) == 0);
	for (int i = 0; i < GIT_SHA1; i++)
		CHECK(buf_add_byte(buf, sha1) == 0);
	add_number(buf, flags | (length < 0xfff ? (uint32_t)length : 0xfff), 2);
	if (flags & 0x4000)
		add_number(buf, 0, 2);
	CHECK(buf_add_text(buf, name) == 0);
	do
		CHECK(buf_add_byte(buf, 0) == 0);
	while ((buf_size(buf) - start) % 8);
}

static void add_extension(struct buf *buf, const char *name, uint32_t said, uint32_t size)
{
	CHECK(buf_add_text(buf, name) == 0);
	add_number(buf, said, 4);
	while (size--)
		CHECK(buf_add_byte(buf, 'x') == 0);
}

static void end(struct buf *buf)
{
	for (int i = 0; i < GIT_SHA1; i++)
		CHECK(buf_add_byte(buf, 0) == 0);
}

/* The first byte of the hash, 0 for none, or the error. */
static int find(const struct buf *buf, const char *path)
{
	uint8_t sha1[GIT_SHA1] = { 0xaa };
	int r = git_index_find(buf_at(buf), buf_size(buf), path, sha1);

	return r == 1 ? sha1[GIT_SHA1 - 1] : r;
}

static void test_finds(void)
{
	char name[5000];
	size_t whole;

	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = 0;
	for (uint32_t version = 2; version <= 3; version++) {
		_cleanup_buf_ struct buf buf;

		begin(&buf, version, 5);
		add_entry(&buf, "a", 1, 0);
		add_entry(&buf, "a/caisson.yaml", 2, version == 3 ? 0x4000 : 0);
		add_entry(&buf, "caisson.yaml", 3, 0x8000);
		add_entry(&buf, "conflict", 4, 0x1000);
		add_entry(&buf, name, 5, 0);
		whole = buf_size(&buf) + GIT_SHA1;
		add_extension(&buf, "TREE", 9, 9);
		end(&buf);
		CHECK(find(&buf, "a") == 1);
		CHECK(find(&buf, "a/caisson.yaml") == 2);
		CHECK(find(&buf, "caisson.yaml") == 3);
		CHECK(find(&buf, name) == 5);
		CHECK(find(&buf, "caisson") == 0);
		CHECK(git_index_find(buf_at(&buf), buf_size(&buf), "conflict",
				     (uint8_t[20]){ 9 }) == 1);
		CHECK(find(&buf, "conflict") == 0);
		/* Cut anywhere; without its extensions it is an index again. */
		for (size_t size = 0; size < buf_size(&buf); size++) {
			uint8_t sha1[GIT_SHA1] = { 0 };

			CHECK(size == whole ||
			      git_index_find(buf_at(&buf), size, "caisson.yaml", sha1) < 0);
		}
	}
}

static void test_not_read(void)
{
	static const struct {
		const char *why;
		uint32_t version, count, flags;
		const char *extension;
		uint32_t said;
		const char *name;
	} rows[] = {
		{ "version 1", 1, 1, 0, NULL, 0, "a" },
		{ "version 4", 4, 1, 0, NULL, 0, "a" },
		{ "an entry too many", 2, 2, 0, NULL, 0, "a" },
		{ "an entry too few", 2, 0, 0, NULL, 0, "a" },
		{ "far too many", 2, 0xffffffff, 0, NULL, 0, "a" },
		{ "extended in version 2", 2, 1, 0x4000, NULL, 0, "a" },
		{ "a length that is wrong", 2, 1, 0x0008, NULL, 0, "a" },
		{ "no name", 2, 1, 0, NULL, 0, "" },
		{ "a split index", 2, 1, 0, "link", 4, "a" },
		{ "a sparse index", 2, 1, 0, "sdir", 4, "a" },
		{ "an extension that is too long", 2, 1, 0, "TREE", 5, "a" },
		{ "an extension that is far too long", 2, 1, 0, "TREE", 0xffffffff, "a" },
		{ "an extension that is too short", 2, 1, 0, "TREE", 1, "a" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_buf_ struct buf buf;

		printf("# %s\n", rows[i].why);
		begin(&buf, rows[i].version, rows[i].count);
		add_entry(&buf, rows[i].name, 1, rows[i].flags);
		if (rows[i].extension)
			add_extension(&buf, rows[i].extension, rows[i].said, 4);
		end(&buf);
		CHECK(find(&buf, "a") == -EBADMSG);
	}
	CHECK(git_index_find("DIRX", 4, "a", (uint8_t[20]){ 0 }) == -EBADMSG);
}

static const struct tap_test tests[] = {
	{ "the object of a path, in version 2 and 3", test_finds },
	{ "what is odd is not read", test_not_read },
};

TAP_MAIN(tests)
