/*
 * See copy_diff.h. The text of one entry is made in memory, bounded, and then written: what
 * cannot be read or is no small text is said in one line instead.
 */
#include "monitor/copy_diff.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/fd.h"
#include "monitor/copy_rename.h"
#include "monitor/differ.h"

enum { TEXT_MAX = 5 << 20 };

/* One entry on its way to be text. */
struct telling {
	const struct copy_diff *diff;
	const struct layer_entry *entry;
	const struct layer_entry *other; /* of a rename */
	struct buf text;
	char *name;       /* owned, escaped */
	char *other_name; /* owned, escaped; NULL: none */
};

/* Reads a regular file beneath `dir_fd`, at most what a diff can take. */
static int read_file(int dir_fd, const char *path, struct buf *ret_bytes)
{
	_cleanup_fd_ int fd = layer_open(dir_fd, path, 0);
	uint8_t *room = buf_reserve(ret_bytes, DIFFER_MAX_BYTES);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return fd;
	if (!room)
		return -ENOMEM;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	n = fd_read_all(fd, room, DIFFER_MAX_BYTES);
	if (n < 0)
		return (int)n;
	buf_grew(ret_bytes, (size_t)n);
	return 0;
}

/* The texts before and after; an absent one is empty. */
static int read_texts(const struct telling *telling, struct buf texts[2])
{
	const struct copy *copy = telling->diff->copy;
	const struct layer_entry *entry = telling->entry;
	int r = 0;

	if (entry->change != LAYER_ADDED && S_ISREG(entry->old.st_mode))
		r = read_file(copy->lower_fd, entry->path, &texts[0]);
	if (r == 0 && entry->change != LAYER_DELETED)
		r = read_file(copy->upper_fd, entry->path, &texts[1]);
	if (r == 0 && !(differ_is_text(texts[0].data, buf_size(&texts[0])) &&
			differ_is_text(texts[1].data, buf_size(&texts[1]))))
		r = -EILSEQ;
	return r;
}

static int diff_texts(const struct telling *telling, struct buf *ret_diff)
{
	struct buf texts[2];
	int r;

	buf_init(&texts[0], DIFFER_MAX_BYTES);
	buf_init(&texts[1], DIFFER_MAX_BYTES);
	r = read_texts(telling, texts);
	if (r == 0)
		r = differ_unified(
			&(struct differ_text){ (const char *)texts[0].data, buf_size(&texts[0]) },
			&(struct differ_text){ (const char *)texts[1].data, buf_size(&texts[1]) },
			ret_diff);
	buf_done(&texts[0]);
	buf_done(&texts[1]);
	return r;
}

static int add_contents(struct telling *telling)
{
	const struct layer_entry *entry = telling->entry;
	bool is_new = entry->change == LAYER_ADDED, is_gone = entry->change == LAYER_DELETED;
	long long size = (long long)(is_gone ? entry->old.st_size : entry->now.st_size);
	_cleanup_buf_ struct buf lines;
	int r;

	buf_init(&lines, TEXT_MAX - (1 << 20));
	r = diff_texts(telling, &lines);
	if (r == -EILSEQ)
		return buf_printf(&telling->text, "  not text, %lld bytes\n", size);
	if (r == -E2BIG)
		return buf_printf(&telling->text, "  too long for a diff, %lld bytes\n", size);
	if (r < 0)
		return buf_printf(&telling->text, "  cannot be read: %s\n", strerror(-r));
	if (buf_size(&lines) == 0)
		return 0;
	r = buf_printf(&telling->text, "--- %s%s\n+++ %s%s\n", is_new ? "/dev/null" : "a/",
		       is_new ? "" : telling->name, is_gone ? "/dev/null" : "b/",
		       is_gone ? "" : telling->name);
	return r < 0 ? r : buf_add(&telling->text, buf_at(&lines), buf_size(&lines));
}

/* For patch(1) and git: the contents are those of the old name. */
static int add_rename(struct telling *telling)
{
	const char *from = telling->other_name, *to = telling->name;

	return buf_printf(&telling->text,
			  "diff --git a/%s b/%s\nsimilarity index 100%%\nrename from %s\n"
			  "rename to %s\n",
			  from, to, from, to);
}

static int add_target(struct telling *telling)
{
	char target[PATH_MAX];
	int r;

	if (copy_read_target(telling->diff->copy, telling->entry, target) < 0)
		return 0;
	r = buf_add_text(&telling->text, " -> ");
	if (r == 0)
		r = escape_add(&telling->text, target, strlen(target), false);
	if (r == 0 && copy_link_leaves(telling->entry->path, target))
		r = buf_add_text(&telling->text, " (out of the workspace)");
	return r;
}

/* What its mode was, if it is another one now; else the same. */
static mode_t old_mode(const struct telling *telling)
{
	const struct layer_entry *entry = telling->entry;
	bool is_renamed = telling->other && entry->change == LAYER_ADDED;

	if (S_ISLNK(entry->now.st_mode) || (entry->change != LAYER_MODIFIED && !is_renamed))
		return entry->now.st_mode & 07777;
	return (is_renamed ? telling->other->old.st_mode : entry->old.st_mode) & 07777;
}

/* The line with the letter. */
static int add_line(struct telling *telling)
{
	const struct layer_entry *entry = telling->entry;
	bool is_new_name = telling->other && entry->change == LAYER_ADDED;
	struct buf *text = &telling->text;
	int r = buf_printf(text, "%c %s", is_new_name ? 'R' : copy_change_letter(entry),
			   telling->name);

	if (r == 0 && is_new_name)
		r = buf_printf(text, " (was %s)", telling->other_name);
	else if (r == 0 && telling->other)
		r = buf_printf(text, " (now %s)", telling->other_name);
	if (r == 0 && entry->change != LAYER_DELETED && S_ISLNK(entry->now.st_mode))
		r = add_target(telling);
	if (r == 0 && old_mode(telling) != (entry->now.st_mode & 07777))
		r = buf_printf(text, " (mode %03o, was %03o)", entry->now.st_mode & 07777u,
			       old_mode(telling));
	if (r == 0 && entry->is_unreadable)
		r = buf_add_text(text, " (cannot be read: what is in it is not shown)");
	return r == 0 ? buf_add_byte(text, '\n') : r;
}

static int add_all(struct telling *telling)
{
	int r;

	telling->name = copy_path_text(telling->entry);
	telling->other_name = telling->other ? copy_path_text(telling->other) : NULL;
	if (!telling->name || (telling->other && !telling->other_name))
		return -ENOMEM;
	r = add_line(telling);
	if (r < 0 || telling->diff->names_only || !S_ISREG(copy_mode(telling->entry)))
		return r;
	if (!telling->other)
		return add_contents(telling);
	return telling->entry->change == LAYER_ADDED ? add_rename(telling) : 0;
}

static int tell(const struct copy_diff *diff, const struct layer_entry *entry,
		const struct layer_entry *other)
{
	struct telling telling = { .diff = diff, .entry = entry, .other = other };
	int r = diff->entry ? diff->entry(diff->data, entry, other) : 0;

	if (r < 0 || diff->is_silent)
		return r;
	buf_init(&telling.text, TEXT_MAX);
	r = add_all(&telling);
	if (r == 0)
		r = diff->write(diff->data, buf_at(&telling.text), buf_size(&telling.text));
	buf_done(&telling.text);
	free(telling.name);
	free(telling.other_name);
	return r;
}

int copy_diff_all(const struct copy_diff *diff)
{
	const struct copy *copy = diff->copy;
	const struct layer_entry *entries = copy->layer.entries;
	int *others, count = 0, r = copy_find_renames(copy, &others);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < copy->layer.count; i++) {
		const struct layer_entry *other = others[i] < 0 ? NULL : &entries[others[i]];

		if (!copy_is_named(copy, &entries[i]))
			continue;
		/* Only one half of it is named: the patch has to be whole without the other. */
		if (other && !copy_is_named(copy, other))
			other = NULL;
		count++;
		r = tell(diff, &entries[i], other);
	}
	free(others);
	return r < 0 ? r : count;
}
