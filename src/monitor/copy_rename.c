/*
 * See copy_rename.h. Deleted files are sorted by size; each added one is compared with those of
 * its own size until one has the same bytes. Empty files are all alike and are no renames.
 */
#include "monitor/copy_rename.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

/* Of all comparisons together, in bytes; a file is never compared for less than a block. */
enum { BLOCK = 32 << 10 };
static const int64_t budget_bytes = 256 << 20;

struct gone {
	off_t size;
	int index; /* in the layer */
};

struct search {
	const struct copy *copy;
	struct gone *gone; /* by size, then by index */
	size_t count;
	int64_t budget;
	int *others;
};

static int by_size(const void *a, const void *b)
{
	const struct gone *x = a, *y = b;

	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static bool same_bytes(struct search *search, int a, int b)
{
	char left[BLOCK], right[BLOCK];
	ssize_t n, m;
	off_t at = 0;

	do {
		search->budget -= BLOCK;
		n = pread(a, left, sizeof left, at);
		m = pread(b, right, sizeof right, at);
		if (n < 0 || n != m || memcmp(left, right, (size_t)n) != 0)
			return false;
		at += n;
	} while (n > 0 && search->budget > 0);
	return n == 0;
}

static bool is_same(struct search *search, int fd, const struct layer_entry *old)
{
	_cleanup_fd_ int old_fd = layer_open(search->copy->lower_fd, old->path, 0);
	struct stat st;

	return old_fd >= 0 && fstat(old_fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       same_bytes(search, fd, old_fd);
}

/* The first deleted file of this size. */
static size_t first_of(const struct search *search, off_t size)
{
	size_t low = 0, high = search->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (search->gone[middle].size < size)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void find_origin(struct search *search, int index)
{
	const struct layer_entry *entries = search->copy->layer.entries, *entry = &entries[index];
	_cleanup_fd_ int fd = -1;
	struct stat st;
	size_t i = first_of(search, entry->now.st_size);

	if (i == search->count || search->gone[i].size != entry->now.st_size)
		return;
	fd = layer_open(search->copy->upper_fd, entry->path, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	for (; i < search->count && search->gone[i].size == entry->now.st_size; i++) {
		int from = search->gone[i].index;

		if (search->budget <= 0)
			return;
		if (search->others[from] != COPY_NOT_RENAMED ||
		    !is_same(search, fd, &entries[from]))
			continue;
		search->others[from] = index;
		search->others[index] = from;
		return;
	}
}

static bool is_file(const struct layer_entry *entry, enum layer_change change)
{
	const struct stat *st = change == LAYER_DELETED ? &entry->old : &entry->now;

	return entry->change == change && S_ISREG(st->st_mode) && st->st_size > 0;
}

int copy_find_renames(const struct copy *copy, int **ret_others)
{
	const struct layer *layer = &copy->layer;
	struct search search = { .copy = copy, .budget = budget_bytes };

	search.gone = calloc(layer->count + 1, sizeof *search.gone);
	search.others = calloc(layer->count + 1, sizeof *search.others);
	if (!search.gone || !search.others) {
		free(search.gone);
		free(search.others);
		return -ENOMEM;
	}
	for (size_t i = 0; i < layer->count; i++) {
		search.others[i] = COPY_NOT_RENAMED;
		if (is_file(&layer->entries[i], LAYER_DELETED))
			search.gone[search.count++] =
				(struct gone){ layer->entries[i].old.st_size, (int)i };
	}
	if (search.count > 1)
		qsort(search.gone, search.count, sizeof *search.gone, by_size);
	for (size_t i = 0; search.count > 0 && i < layer->count; i++)
		if (is_file(&layer->entries[i], LAYER_ADDED))
			find_origin(&search, (int)i);
	free(search.gone);
	*ret_others = search.others;
	return 0;
}
