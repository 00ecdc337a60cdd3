/*
 * One placeholder; see placeholder.h. The name belongs to a workspace that a program of another
 * run may be writing at this moment: after each lock the name is looked at again, and nothing
 * follows a link.
 */
#include "monitor/placeholder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

/* Closed to other users of the machine: who can open it can lock it too. */
enum { MARK = 01500, TRIES = 200, PAUSE_US = 1000 };

int placeholder_is_marked(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) && !(st->st_mode & 0222) &&
	       st->st_uid == geteuid();
}

static bool is_noted(const struct stat *st, const struct placeholder_note *note)
{
	return st->st_dev == note->dev && st->st_ino == note->ino && st->st_mode == note->mode &&
	       st->st_uid == note->uid;
}

/* Killed between any two instructions, the note is whole or its state says that it is not. */
static void set_state(struct placeholder_note *note, enum placeholder_state state)
{
	__atomic_store_n(&note->state, (uint32_t)state, __ATOMIC_SEQ_CST);
}

static void keep_note(struct placeholder_note *note, const struct stat *st)
{
	note->mode = st->st_mode;
	note->dev = st->st_dev;
	note->ino = st->st_ino;
	note->uid = st->st_uid;
	set_state(note, PLACEHOLDER_HELD);
}

static int open_folder(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Is the open folder still what the name leads to? */
static bool is_named(int parent_fd, const char *name, const struct stat *st)
{
	struct stat now;

	return fstatat(parent_fd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	       now.st_dev == st->st_dev && now.st_ino == st->st_ino;
}

/* A file system without locks is no reason to leave a name unprotected, or a folder behind. */
static int lock(int fd, int how)
{
	return flock(fd, how | LOCK_NB) < 0 && errno == EWOULDBLOCK ? -EAGAIN : 0;
}

/* One attempt: 1, 0 or -errno as in the header; -EAGAIN: the name changed under us. */
static int attempt(struct placeholder *placeholder, struct placeholder_note *note)
{
	_cleanup_fd_ int fd = -1;
	bool is_made = mkdirat(placeholder->parent_fd, placeholder->name, MARK) == 0;
	struct stat st;

	if (!is_made && errno != EEXIST)
		return -errno;
	fd = open_folder(placeholder->parent_fd, placeholder->name);
	if (fd == -ENOENT)
		return -EAGAIN;
	if (fd < 0) {
		if (is_made) /* a mask that takes all rights */
			unlinkat(placeholder->parent_fd, placeholder->name, AT_REMOVEDIR);
		return is_made ? fd : 0;
	}
	if (fstat(fd, &st) < 0)
		return -errno;
	/* What was there and has no mark is somebody's own. */
	if (!is_made && !placeholder_is_marked(&st))
		return 0;
	if (lock(fd, LOCK_SH) < 0 || !is_named(placeholder->parent_fd, placeholder->name, &st))
		return -EAGAIN;
	keep_note(note, &st);
	placeholder->fd = fd_take(&fd);
	return 1;
}

int placeholder_make(struct placeholder *placeholder, struct placeholder_note *note)
{
	int r = -EAGAIN;

	set_state(note, PLACEHOLDER_MEANT);
	for (int i = 0; i < TRIES && r == -EAGAIN; i++) {
		if (i > 0) /* its last run is removing it */
			usleep(PAUSE_US);
		r = attempt(placeholder, note);
	}
	/* Whoever removes one holds its lock for an instant. Who holds it so long only wants the
	 * name to be left unprotected: it is frozen all the same, and stays for a later run to
	 * remove. */
	if (r == -EAGAIN)
		r = 0;
	if (r < 0)
		placeholder_remove(placeholder->parent_fd, placeholder->name, note, 0);
	if (r <= 0)
		set_state(note, PLACEHOLDER_NONE);
	return r;
}

/* No folder, a link, or a folder that somebody uses by now: not ours to remove. */
static bool is_gone(int code)
{
	return code == ENOENT || code == ENOTDIR || code == ELOOP || code == ENOTEMPTY ||
	       code == EEXIST;
}

int placeholder_remove(int parent_fd, const char *name, const struct placeholder_note *note,
		       uint64_t wait_ms)
{
	uint64_t deadline_ms = clock_now_ms() + wait_ms;
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (note->state == PLACEHOLDER_NONE)
		return 0;
	fd = open_folder(parent_fd, name);
	if (fd < 0)
		return is_gone(-fd) ? 0 : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (note->state == PLACEHOLDER_HELD ? !is_noted(&st, note) : !placeholder_is_marked(&st))
		return 0;
	while (lock(fd, LOCK_EX) < 0) {
		if (clock_now_ms() >= deadline_ms)
			return -EBUSY;
		usleep(PAUSE_US);
	}
	if (is_named(parent_fd, name, &st) && unlinkat(parent_fd, name, AT_REMOVEDIR) < 0)
		return is_gone(errno) ? 0 : -errno;
	return 0;
}
