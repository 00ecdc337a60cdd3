/*
 * Bind mounts for an engine; see binds.h. Looks at the host, as the caller: whether a source is
 * there, and no link of somebody's stands in its way. The engine mounts later, by name and with its
 * own rights, so between the look and the mount a name can change: who may write in a folder that
 * is lent elsewhere at that moment could win that race, and docs/decisions/containers.md says so.
 */
#include "backend/engine/binds.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "os/sys.h"

#define STAGE "mounts"

enum { MOUNTS_MAX = 512, PATH_ROOM = 4096 };

struct making {
	const char *keep;
	struct arena *arena;
	struct csn_error *err;
	char *mounts[MOUNTS_MAX]; /* mount points of the host's */
	size_t mount_count;
	struct binds binds;
	size_t lent; /* the first bind that is no system folder */
};

/* ---- what the host has mounted where --------------------------------------------------------- */

/* The kernel writes blanks and backslashes in octal. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (from[0] == '\\' && from[1] && from[2] && from[3]) {
			*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 |
				       (from[3] - '0'));
			from += 3;
		} else {
			*to++ = *from;
		}
	}
	*to = 0;
}

static int read_mounts(struct making *m)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *field, *rest;
	size_t size = 0;

	if (!file)
		return csn_fail(m->err, -errno, STAGE, "cannot read the list of mounts: %m");
	while (m->mount_count < MOUNTS_MAX && getline(&line, &size, file) > 0) {
		field = strtok_r(line, " ", &rest);
		for (int i = 0; field && i < 4; i++)
			field = strtok_r(NULL, " ", &rest);
		if (!field)
			continue;
		unescape(field);
		m->mounts[m->mount_count] = arena_text(m->arena, field);
		if (m->mounts[m->mount_count])
			m->mount_count++;
	}
	free(line);
	fclose(file);
	return m->mount_count < MOUNTS_MAX
		       ? 0
		       : csn_fail(m->err, -E2BIG, STAGE, "this machine has more than %d mounts",
				  MOUNTS_MAX - 1);
}

/* ---- binds ----------------------------------------------------------------------------------- */

/*
 * Both command lines take a mount as one line of comma-separated words, and send it on as JSON, in
 * which a byte that is not UTF-8 becomes another name: what was to be hidden there would be open.
 */
static bool can_say(const char *path)
{
	if (!str_is_utf8(path, strlen(path)))
		return false;
	for (const char *c = path; *c; c++)
		if (*c == ',' || *c == '"' || (unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return true;
}

static int add(struct making *m, const char *source, const char *at, bool is_writable)
{
	if (!source || !at)
		return csn_fail(m->err, -ENOMEM, STAGE, "out of memory");
	if (!can_say(source) || !can_say(at))
		return csn_fail(m->err, -EINVAL, STAGE,
				"a container engine cannot be told of %s: its name has a comma, a "
				"quote, a control character or what is not UTF-8. Rename it, or "
				"take the process wall",
				can_say(source) ? at : source);
	for (size_t i = 0; i < m->binds.count; i++) {
		/* An engine takes one mount for each place: hidden goes before frozen, that before
		 * pinned. */
		if (!str_is(m->binds.items[i].at, at))
			continue;
		if (!is_writable)
			m->binds.items[i] = (struct bind){ source, at, false };
		return 0;
	}
	if (m->binds.count == ROOTFS_ITEMS)
		return csn_fail(m->err, -E2BIG, STAGE, "too many mounts: at most %d", ROOTFS_ITEMS);
	m->binds.items[m->binds.count++] =
		(struct bind){ .source = source, .at = at, .is_writable = is_writable };
	return 0;
}

/* The host's path of what stands at `at`, by the last lent mount above it; NULL: there is none. */
static char *host_of(const struct making *m, const char *at)
{
	for (size_t i = m->binds.count; i > m->lent; i--) {
		const struct bind *bind = &m->binds.items[i - 1];
		const char *tail;

		if (!path_is_beneath(at, bind->at))
			continue;
		tail = path_tail(at, bind->at);
		return arena_printf(m->arena, "%s%s%s", bind->source, *tail ? "/" : "", tail);
	}
	return NULL;
}

/* What is mounted beneath a read-only source would stay writable. */
static int add_beneath(struct making *m, const char *source, const char *at)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < m->mount_count; i++)
		if (!str_is(m->mounts[i], source) && path_is_beneath(m->mounts[i], source))
			r = add(m, m->mounts[i],
				arena_printf(m->arena, "%s/%s", at,
					     path_tail(m->mounts[i], source)),
				false);
	return r;
}

/* 0 with what it is; -ELOOP: a link stands in the way. */
static int look(const char *path, bool is_plain, struct stat *ret_st)
{
	_cleanup_fd_ int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC,
					  is_plain ? RESOLVE_NO_SYMLINKS : 0);

	if (fd < 0)
		return fd;
	return fstat(fd, ret_st) < 0 ? -errno : 0;
}

static int add_shown(struct making *m, const struct rootfs_item *item, const char *at)
{
	bool is_writable = !(item->attributes & MOUNT_ATTR_RDONLY);
	char *place = host_of(m, at);
	struct stat st, there;
	int r = look(item->source, item->is_plain, &st);

	if (r == -ENOENT && item->is_optional)
		return 0;
	if (r < 0)
		return csn_fail(m->err, r, STAGE, "cannot take a view of %s: %s", item->source,
				strerror(-r));
	/* The engine would make it, with root's rights, in the caller's folder. */
	if (place && look(place, true, &there) < 0)
		return csn_fail(m->err, -ENOENT, STAGE,
				"%s cannot be mounted at %s: there is no %s for it to lie on",
				item->source, at, place);
	r = add(m, item->source, at, is_writable);
	return r < 0 || is_writable ? r : add_beneath(m, item->source, at);
}

/* Hidden, frozen or pinned: something that a lent folder has. */
static int add_over(struct making *m, const struct rootfs_item *item, const char *at)
{
	char *host = host_of(m, at);
	struct stat st;
	int r = host ? look(host, true, &st) : -ENOENT;

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return csn_fail(m->err, r, STAGE, "cannot look at %s: %s", host, strerror(-r));
	if (item->kind != ROOTFS_COVER)
		return add(m, host, at, item->kind == ROOTFS_PIN);
	return add(m,
		   arena_printf(m->arena, "%s/%s", m->keep,
				S_ISDIR(st.st_mode) ? "hidden-folder" : "hidden-file"),
		   at, false);
}

static int take(struct making *m, const struct rootfs_item *item, bool has_image)
{
	char *at = arena_printf(m->arena, "/%s", item->at);

	if (!at)
		return csn_fail(m->err, -ENOMEM, STAGE, "out of memory");
	switch (item->kind) {
	case ROOTFS_BIND:
		/* Devices and what /proc must not show are the engine's own. */
		if (str_starts(at, "/dev/") || (item->is_system && has_image))
			return 0;
		if (!item->is_system && m->lent == 0)
			m->lent = m->binds.count;
		return add_shown(m, item, at);
	case ROOTFS_COVER:
	case ROOTFS_PIN:
	case ROOTFS_FREEZE:
		return str_starts(at, "/proc/") ? 0 : add_over(m, item, at);
	case ROOTFS_OVERLAY:
		return csn_fail(m->err, -ENOTSUP, STAGE,
				"a container engine makes no copy-on-write workspace");
	default:
		return 0;
	}
}

int binds_make(const struct binds_source *source, struct arena *arena, struct binds *ret_binds,
	       struct csn_error *err)
{
	struct making *m = calloc(1, sizeof *m);
	int r = m ? 0 : -ENOMEM;

	if (r >= 0) {
		*m = (struct making){ .keep = source->keep, .arena = arena, .err = err };
		m->binds.items = arena_array(arena, ROOTFS_ITEMS, sizeof *m->binds.items);
		r = m->binds.items ? 0 : -ENOMEM;
	}
	if (r < 0)
		csn_fail(err, r, STAGE, "out of memory");
	if (r >= 0)
		r = read_mounts(m);
	for (size_t i = 0; r >= 0 && i < source->rootfs->count; i++)
		r = take(m, &source->rootfs->items[i], source->has_image);
	if (r >= 0)
		*ret_binds = m->binds;
	free(m);
	return r;
}
