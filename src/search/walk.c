/*
 * A stack of folders, each with its sorted names; see walk.h.
 *
 *   levels[0]  a  a-b  a/  c        each name is there once to be told ("a") and, if something
 *   levels[1]  └─ x  y              beneath it can match, once to be entered ("a/")
 */
#include "search/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/errno_name.h"
#include "base/fd.h"
#include "base/str.h"

/* What the kernel writes; glibc does not name it. */
struct kernel_dirent {
	uint64_t ino;
	int64_t off;
	uint16_t size;
	uint8_t type;
	char name[];
};

struct name {
	uint32_t at;   /* in `text` */
	uint16_t size; /* a folder to enter ends with a slash */
};

struct level {
	int fd;           /* -1: closed meanwhile */
	size_t path_size; /* of the folder's path with its slash */
	struct glob_set set;
	struct buf text;
	struct name *names; /* owned */
	size_t count, cap, next;
};

/* statfs numbers of file systems that are no storage: endless files, files that act when read. */
static const long kernel_file_systems[] = {
	PROC_SUPER_MAGIC,   SYSFS_MAGIC,         DEBUGFS_MAGIC,    TRACEFS_MAGIC,
	CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, SECURITYFS_MAGIC, BPF_FS_MAGIC,
	PSTOREFS_MAGIC,     EFIVARFS_MAGIC,      BINFMTFS_MAGIC,   DEVPTS_SUPER_MAGIC,
};

static bool is_kernels(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kernel_file_systems); i++)
		if (fs.f_type == kernel_file_systems[i])
			return true;
	return false;
}

/* ---- reading a folder ----------------------------------------------------------------------- */

static int too_many(struct walk *walk, const struct level *level)
{
	return refuse(walk->refusal, "e2big", "too many names in the folder \"%.*s\"",
		      level->path_size > 400 ? 400 : (int)level->path_size, walk->path);
}

static int add_name(struct walk *walk, struct level *level, const char *name, size_t size,
		    bool is_entered)
{
	struct name *names = level->names;
	size_t cap = level->cap;

	if (walk->names_bytes > WALK_NAMES)
		return too_many(walk, level);
	if (level->count == cap) {
		cap = cap ? 2 * cap : 64;
		names = realloc(names, cap * sizeof *names);
		if (!names)
			return refuse(walk->refusal, "enomem", "out of memory");
		level->names = names;
		level->cap = cap;
	}
	names[level->count] =
		(struct name){ (uint32_t)buf_size(&level->text), (uint16_t)(size + is_entered) };
	if (buf_add(&level->text, name, size) < 0 ||
	    (is_entered && buf_add_byte(&level->text, '/') < 0))
		return too_many(walk, level);
	walk->names_bytes += size + is_entered + sizeof *names;
	level->count++;
	return 0;
}

/* Its type where the file system does not say it along with the name. */
static uint8_t ask_type(int fd, const char *name)
{
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return IFTODT(st.st_mode);
}

static int take_name(struct walk *walk, struct level *level, const char *text, uint8_t type)
{
	struct glob_name name = { text, strlen(text), false };
	int verdict;

	if (str_is(text, ".") || str_is(text, ".."))
		return 0;
	if (type == DT_UNKNOWN)
		type = ask_type(level->fd, text);
	name.is_folder = type == DT_DIR;
	if (walk->plan->files_only && type != DT_DIR && type != DT_REG)
		return 0;
	verdict = glob_step(walk->plan->glob, &level->set, &name, NULL);
	if (verdict == GLOB_NONE)
		return 0;
	if (level->path_size + name.size > WALK_PATH) {
		walk->skipped++;
		return 0;
	}
	if (verdict & GLOB_MATCHES && !(walk->plan->files_only && name.is_folder) &&
	    add_name(walk, level, name.text, name.size, false) < 0)
		return -1;
	if (!(verdict & GLOB_BENEATH))
		return 0;
	if (level->path_size + name.size + 1 >= WALK_PATH) { /* no room for a name beneath it */
		walk->skipped++;
		return 0;
	}
	return add_name(walk, level, name.text, name.size, true);
}

static int compare_names(const void *left, const void *right, void *text)
{
	const struct name *a = left, *b = right;
	const char *base = text;
	int r = memcmp(base + a->at, base + b->at, a->size < b->size ? a->size : b->size);

	return r ? r : (int)a->size - (int)b->size;
}

static int read_names(struct walk *walk, struct level *level)
{
	long n;

	while ((n = syscall(SYS_getdents64, level->fd, walk->list, WALK_READ)) > 0) {
		for (long at = 0; at < n;) {
			const struct kernel_dirent *entry = (const void *)(walk->list + at);

			if (take_name(walk, level, entry->name, entry->type) < 0)
				return -1;
			at += entry->size;
		}
	}
	if (n < 0)
		walk->skipped++;
	if (level->count > 1)
		qsort_r(level->names, level->count, sizeof *level->names, compare_names,
			buf_at(&level->text));
	return 0;
}

/* ---- up and down ---------------------------------------------------------------------------- */

/* Without openat2(): one folder after the other. */
static int open_steps(int top_fd, char *path)
{
	_cleanup_fd_ int fd = openat(top_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	while (fd >= 0 && *path) {
		size_t size = strcspn(path, "/");
		char *next = path + size + (path[size] == '/');
		int below;

		path[size] = 0;
		below = openat(fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		fd_cleanup(&fd);
		fd = below;
		path = next;
	}
	return fd_take(&fd);
}

/* A folder by its path from the top, links refused: for those whose descriptor was closed. */
static int open_again(const struct walk *walk, size_t path_size)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	char path[WALK_PATH + 2];
	int fd;

	memcpy(path, walk->path, path_size);
	path[path_size] = 0;
	fd = (int)syscall(SYS_openat2, walk->plan->top_fd, path, &how, sizeof how);
	return fd < 0 && errno == ENOSYS ? open_steps(walk->plan->top_fd, path) : fd;
}

static int level_fd(struct walk *walk, struct level *level)
{
	if (level->fd < 0)
		level->fd = open_again(walk, level->path_size);
	return level->fd;
}

static void leave(struct walk *walk)
{
	struct level *level = &walk->levels[--walk->depth];

	walk->names_bytes -= buf_size(&level->text) + level->count * sizeof *level->names;
	fd_cleanup(&level->fd);
	buf_done(&level->text);
	free(level->names);
}

/* Descriptors of deep levels are closed while something deeper is read. */
static void spare_descriptors(struct walk *walk)
{
	if (walk->depth > WALK_HELD)
		fd_cleanup(&walk->levels[walk->depth - 1].fd);
}

/* Enters the folder whose path stands in walk->path with its slash; takes the descriptor. */
static int enter(struct walk *walk, int fd, size_t path_size)
{
	struct level *level = &walk->levels[walk->depth], *above = level - 1;

	level->fd = fd;
	level->path_size = path_size;
	level->names = NULL;
	level->count = level->cap = level->next = 0;
	buf_init(&level->text, WALK_NAMES);
	if (walk->depth++ == 0) {
		glob_beneath(walk->plan->glob, walk->plan->prefix, strchr(walk->plan->prefix, 0),
			     &level->set);
	} else {
		struct glob_name name = { walk->path + above->path_size,
					  path_size - above->path_size - 1, true };

		glob_step(walk->plan->glob, &above->set, &name, &level->set);
	}
	if (is_kernels(fd)) {
		walk->skipped++;
		return 0;
	}
	return read_names(walk, level);
}

int walk_init(struct walk *walk, const struct walk_plan *plan, struct refusal *refusal)
{
	int fd = openat(plan->top_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*walk = (struct walk){ .plan = plan, .refusal = refusal };
	if (fd < 0)
		return refuse(refusal, errno_name(errno), "it cannot be listed");
	walk->levels = malloc(WALK_LEVELS * sizeof *walk->levels);
	walk->list = malloc(WALK_READ);
	if (!walk->levels || !walk->list) {
		fd_close(fd);
		return refuse(refusal, "enomem", "out of memory");
	}
	return enter(walk, fd, 0);
}

void walk_done(struct walk *walk)
{
	while (walk->depth > 0)
		leave(walk);
	free(walk->levels);
	free(walk->list);
}

/* Takes the next name of the deepest level into walk->path. */
static const struct name *next_name(struct walk *walk, struct level *level)
{
	const struct name *name = &level->names[level->next++];

	memcpy(walk->path + level->path_size, buf_at(&level->text) + name->at, name->size);
	walk->path[level->path_size + name->size] = 0;
	return name;
}

static int go_down(struct walk *walk, struct level *level, size_t path_size)
{
	int above = level_fd(walk, level), fd;

	walk->path[path_size - 1] = 0; /* with its slash a link would be followed */
	fd = above < 0 ? -1
		       : openat(above, walk->path + level->path_size,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	walk->path[path_size - 1] = '/';
	if (fd < 0 || walk->depth == WALK_LEVELS) {
		walk->skipped++;
		fd_close(fd);
		return 0;
	}
	spare_descriptors(walk);
	return enter(walk, fd, path_size);
}

int walk_next(struct walk *walk, struct walk_entry *ret_entry)
{
	while (walk->depth > 0) {
		struct level *level = &walk->levels[walk->depth - 1];
		const struct name *name;
		size_t size;

		if (level->next == level->count) {
			leave(walk);
			continue;
		}
		name = next_name(walk, level);
		size = level->path_size + name->size;
		if (walk->path[size - 1] != '/') {
			*ret_entry = (struct walk_entry){ walk->path, size,
							  walk->path + level->path_size,
							  level_fd(walk, level) };
			return 1;
		}
		if (go_down(walk, level, size) < 0)
			return -1;
	}
	return 0;
}
