/*
 * Reading an overlay's upper folder
 *
 * A depth-first walk of two trees at once, names in byte order. Depth, entries and memory
 * are bounded: a sandbox can make a million files in a second. What goes away while it is
 * looked at is no entry.
 */
#include "os/layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "os/sys.h"

enum { ARENA_MAX = 256 << 20, BLOCK = 32 << 10, FIRST_ROOM = 64 };

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/* One pair of folders. */
struct place {
	int upper_fd;     /* -1 while a whole lower tree is being deleted */
	int lower_fd;     /* -1: nothing below */
	bool is_opaque;   /* nothing of the lower one shows through */
	const char *path; /* "" for the workspace itself */
	unsigned depth;
};

struct walk {
	struct layer *layer;
	struct csn_error *err;
};

struct names {
	char **items; /* owned */
	size_t count;
	size_t room;
};

static int walk_pair(struct walk *walk, const struct place *place);
static int delete_tree(struct walk *walk, const struct place *place);

static void names_done(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->items[i]);
	free(names->items);
}

static int names_add(struct names *names, const char *name)
{
	char **items;

	if (names->count == LAYER_MAX_ENTRIES)
		return -E2BIG;
	if (names->count == names->room) {
		names->room = names->room ? names->room * 2 : FIRST_ROOM;
		items = reallocarray(names->items, names->room, sizeof *items);
		if (!items)
			return -ENOMEM;
		names->items = items;
	}
	names->items[names->count] = strdup(name);
	return names->items[names->count] ? (names->count++, 0) : -ENOMEM;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_names(int dir_fd, struct names *ret_names)
{
	_cleanup_fd_ int fd = openat(dir_fd, ".", FOLDER_FLAGS);
	struct dirent *entry;
	DIR *dir;
	int r = 0;

	if (fd < 0 && errno == ENOENT) /* removed since it was opened */
		return 0;
	if (fd < 0 || !(dir = fdopendir(fd)))
		return -errno;
	fd_take(&fd); /* closedir() closes it */
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0)
		if (!str_is(entry->d_name, ".") && !str_is(entry->d_name, ".."))
			r = names_add(ret_names, entry->d_name);
	if (r == 0 && errno)
		r = -errno;
	closedir(dir);
	if (r == 0 && ret_names->count > 1)
		qsort(ret_names->items, ret_names->count, sizeof *ret_names->items, by_bytes);
	return r;
}

static int too_big(struct walk *walk, const char *path)
{
	return csn_fail(walk->err, -E2BIG, "layer",
			"the copy-on-write layer is too large or too deep to be listed, at %s",
			*path ? path : "/");
}

/* Appends an entry; *ret_entry is good until the next one. */
static int add(struct walk *walk, const char *path, enum layer_change change,
	       struct layer_entry **ret_entry)
{
	struct layer *layer = walk->layer;
	struct layer_entry *entries;

	if (layer->count == LAYER_MAX_ENTRIES)
		return too_big(walk, path);
	if (layer->count == layer->room) {
		layer->room = layer->room ? layer->room * 2 : FIRST_ROOM;
		entries = reallocarray(layer->entries, layer->room, sizeof *entries);
		if (!entries)
			return csn_fail(walk->err, -ENOMEM, "layer", "out of memory");
		layer->entries = entries;
	}
	*ret_entry = &layer->entries[layer->count++];
	**ret_entry = (struct layer_entry){ .path = path, .change = change };
	return 0;
}

static const char *path_of(struct walk *walk, const struct place *place, const char *name)
{
	if (strlen(place->path) + strlen(name) + 2 > PATH_MAX)
		return NULL;
	return arena_printf(&walk->layer->arena, "%s%s%s", place->path, *place->path ? "/" : "",
			    name);
}

static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static bool same_link(int a_fd, int b_fd, const char *name)
{
	char a[PATH_MAX], b[PATH_MAX];
	ssize_t n = readlinkat(a_fd, name, a, sizeof a), m = readlinkat(b_fd, name, b, sizeof b);

	return n >= 0 && n == m && memcmp(a, b, (size_t)n) == 0;
}

/* Where the next data of either file is, `end` if there is none: holes of both are alike. */
static off_t next_data(int a, int b, off_t at, off_t end)
{
	off_t x = lseek(a, at, SEEK_DATA), y = lseek(b, at, SEEK_DATA);

	x = x < 0 ? errno == ENXIO ? end : at : x;
	y = y < 0 ? errno == ENXIO ? end : at : y;
	return x < y ? x : y;
}

/* Two regular files of one name and size; an unreadable one counts as different. */
static bool same_bytes(int a_fd, int b_fd, const char *name, off_t size)
{
	_cleanup_fd_ int a = openat(a_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_fd_ int b = openat(b_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char left[BLOCK], right[BLOCK];
	ssize_t n, m;
	off_t at = 0;

	if (a < 0 || b < 0)
		return false;
	while ((at = next_data(a, b, at, size)) < size) {
		n = pread(a, left, sizeof left, at);
		m = pread(b, right, sizeof right, at);
		if (n <= 0 || n != m || memcmp(left, right, (size_t)n) != 0)
			return false;
		at += n;
	}
	return true;
}

static bool is_same(const struct place *place, const char *name, const struct stat *now,
		    const struct stat *old)
{
	if ((now->st_mode & S_IFMT) != (old->st_mode & S_IFMT))
		return false;
	if (S_ISLNK(now->st_mode))
		return same_link(place->upper_fd, place->lower_fd, name);
	if ((now->st_mode & 07777) != (old->st_mode & 07777))
		return false;
	if (S_ISREG(now->st_mode))
		return now->st_size == old->st_size &&
		       same_bytes(place->upper_fd, place->lower_fd, name, now->st_size);
	return S_ISDIR(now->st_mode) || now->st_rdev == old->st_rdev;
}

/* Attributes that say "this is not all of it": then the list would lie. */
static int check_attributes(struct walk *walk, int fd, const char *path)
{
	static const char *const foreign[] = { "user.overlay.redirect", "user.overlay.metacopy",
					       "trusted.overlay.redirect",
					       "trusted.overlay.metacopy" };

	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		if (fgetxattr(fd, foreign[i], NULL, 0) >= 0)
			return csn_fail(
				walk->err, -EPROTO, "layer",
				"%s carries %s, which this layer cannot have: it is not listed",
				path, foreign[i]);
	return 0;
}

static bool is_opaque(int fd)
{
	char value[2];

	return fgetxattr(fd, "user.overlay.opaque", value, sizeof value) == 1 && value[0] == 'y';
}

/* A folder of the upper tree, after its own entry. */
static int walk_folder(struct walk *walk, const struct place *place, const char *name,
		       struct place *inner)
{
	_cleanup_fd_ int upper = openat(place->upper_fd, name, FOLDER_FLAGS), lower = -1;
	struct layer_entry *entry;
	int r;

	if (inner->depth > LAYER_MAX_DEPTH)
		return too_big(walk, inner->path);
	if (upper < 0 && errno != EACCES) /* it was one a moment ago */
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
	if (upper < 0) {
		r = add(walk, inner->path, LAYER_MODIFIED, &entry);
		if (r == 0)
			entry->is_unreadable = true;
		return r;
	}
	r = check_attributes(walk, upper, inner->path);
	if (r < 0)
		return r;
	if (place->lower_fd >= 0)
		lower = openat(place->lower_fd, name, FOLDER_FLAGS);
	inner->upper_fd = upper;
	inner->lower_fd = lower;
	inner->is_opaque = place->is_opaque || is_opaque(upper);
	return walk_pair(walk, inner);
}

static int delete_name(struct walk *walk, const struct place *place, const char *name,
		       const struct stat *old)
{
	_cleanup_fd_ int lower = -1;
	struct place inner = { .upper_fd = -1, .lower_fd = -1, .depth = place->depth + 1 };
	struct layer_entry *entry;
	int r = 0;

	inner.path = path_of(walk, place, name);
	if (!inner.path || inner.depth > LAYER_MAX_DEPTH)
		return too_big(walk, place->path);
	if (S_ISDIR(old->st_mode)) {
		lower = openat(place->lower_fd, name, FOLDER_FLAGS);
		inner.lower_fd = lower;
		r = lower < 0 ? 0 : delete_tree(walk, &inner);
	}
	if (r == 0)
		r = add(walk, inner.path, LAYER_DELETED, &entry);
	if (r == 0)
		entry->old = *old;
	return r;
}

/* Everything in a lower folder. */
static int delete_tree(struct walk *walk, const struct place *place)
{
	struct names names = { 0 };
	struct stat old;
	int r;

	r = list_names(place->lower_fd, &names);
	if (r < 0)
		r = csn_fail(walk->err, r, "layer", "cannot list %s in the workspace: %s",
			     place->path, strerror(-r));
	for (size_t i = 0; r == 0 && i < names.count; i++)
		if (fstatat(place->lower_fd, names.items[i], &old, AT_SYMLINK_NOFOLLOW) == 0)
			r = delete_name(walk, place, names.items[i], &old);
	names_done(&names);
	return r;
}

/* A name of the upper folder that is there: added, modified, or only touched. */
static int present_name(struct walk *walk, const struct place *place, const char *name,
			const struct stat pair[2])
{
	const struct stat *now = &pair[0], *old = &pair[1];
	struct place inner = { .upper_fd = -1, .lower_fd = -1, .depth = place->depth + 1 };
	bool had = old->st_mode != 0, is_folder = S_ISDIR(now->st_mode);
	struct layer_entry *entry;
	int r = 0;

	inner.path = path_of(walk, place, name);
	if (!inner.path)
		return too_big(walk, place->path);
	if (had && S_ISDIR(old->st_mode) != is_folder) {
		/* A folder cannot be replaced by a rename, nor replace: it goes first. */
		r = delete_name(walk, place, name, old);
		had = false;
	}
	if (r == 0 && !(had && is_same(place, name, now, old))) {
		r = add(walk, inner.path, had ? LAYER_MODIFIED : LAYER_ADDED, &entry);
		if (r == 0) {
			entry->now = *now;
			entry->old = had ? *old : (struct stat){ 0 };
		}
	}
	if (r == 0 && is_folder)
		r = walk_folder(walk, place, name, &inner);
	return r;
}

static int walk_name(struct walk *walk, const struct place *place, const char *name)
{
	struct stat pair[2] = { 0 }; /* now, old */

	if (fstatat(place->upper_fd, name, &pair[0], AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 /* gone again */
				       : csn_fail(walk->err, -errno, "layer",
						  "cannot stat %s in the layer", name);
	if (place->lower_fd < 0 ||
	    fstatat(place->lower_fd, name, &pair[1], AT_SYMLINK_NOFOLLOW) < 0)
		pair[1] = (struct stat){ 0 };
	if (!is_whiteout(&pair[0]))
		return present_name(walk, place, name, pair);
	return pair[1].st_mode ? delete_name(walk, place, name, &pair[1]) : 0;
}

/* What an opaque folder no longer shows. */
static int delete_hidden(struct walk *walk, const struct place *place, const struct names *kept)
{
	struct names below = { 0 };
	struct stat old;
	int r;

	r = list_names(place->lower_fd, &below);
	if (r < 0)
		r = csn_fail(walk->err, r, "layer", "cannot list %s in the workspace: %s",
			     place->path, strerror(-r));
	for (size_t i = 0; r == 0 && i < below.count; i++) {
		if (kept->count && bsearch(&below.items[i], kept->items, kept->count,
					   sizeof *kept->items, by_bytes))
			continue;
		if (fstatat(place->lower_fd, below.items[i], &old, AT_SYMLINK_NOFOLLOW) == 0)
			r = delete_name(walk, place, below.items[i], &old);
	}
	names_done(&below);
	return r;
}

static int walk_pair(struct walk *walk, const struct place *place)
{
	struct names names = { 0 };
	int r;

	r = list_names(place->upper_fd, &names);
	if (r < 0)
		r = csn_fail(walk->err, r, "layer", "cannot list %s in the layer: %s",
			     *place->path ? place->path : "the top folder", strerror(-r));
	if (r == 0 && place->is_opaque && place->lower_fd >= 0)
		r = delete_hidden(walk, place, &names);
	for (size_t i = 0; r == 0 && i < names.count; i++)
		r = walk_name(walk, place, names.items[i]);
	names_done(&names);
	return r;
}

int layer_read(int upper_fd, int lower_fd, struct layer *ret_layer, struct csn_error *err)
{
	struct walk walk = { .layer = ret_layer, .err = err };
	struct place top = { .upper_fd = upper_fd, .lower_fd = lower_fd, .path = "" };
	int r;

	*ret_layer = (struct layer){ 0 };
	arena_init(&ret_layer->arena, ARENA_MAX);
	r = walk_pair(&walk, &top);
	if (r < 0)
		layer_done(ret_layer);
	return r;
}

void layer_done(struct layer *layer)
{
	free(layer->entries);
	layer->entries = NULL;
	layer->count = 0;
	arena_done(&layer->arena);
}

int layer_open(int dir_fd, const char *path, int flags)
{
	return sys_openat2(dir_fd, path, (uint64_t)(O_RDONLY | O_NONBLOCK | O_NOFOLLOW | flags),
			   RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

int layer_open_parent(int dir_fd, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];
	int fd;

	if (slash && (size_t)(slash - path) >= sizeof parent)
		return -ENAMETOOLONG;
	snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - path) : 1,
		 slash ? path : ".");
	fd = layer_open(dir_fd, parent, O_DIRECTORY);
	if (fd >= 0)
		*ret_name = slash ? slash + 1 : path;
	return fd;
}
