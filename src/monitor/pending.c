/*
 * Notes of what must be gone after a run; see pending.h. A note is a list of texts, each with
 * its NUL:
 *
 *	s                                a scratch folder of the run's own id
 *	p PATH                           a placeholder is about to be made
 *	h DEV INO MODE UID PATH          it was made, and is this
 */
#include "monitor/pending.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "monitor/scratch.h"
#include "os/sys.h"

#ifndef RESOLVE_BENEATH
#include <linux/openat2.h>
#endif

#define FOLDER ".pending"

enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
enum { NOTE_MAX = PROTECT_MAX * 2 * (PATH_MAX + 128), TRIES = 8, LOOK_AT = 1024 };

/* ---- writing ---------------------------------------------------------------------------- */

/* Where a placeholder lies, without links in it. */
static int path_of(const struct placeholder *placeholder, char *ret_path, size_t size)
{
	char self[32];
	ssize_t n;

	snprintf(self, sizeof self, "/proc/self/fd/%d", placeholder->parent_fd);
	n = readlink(self, ret_path, size - 1);
	if (n < 0)
		return -errno;
	ret_path[n] = 0;
	return 0;
}

static int add_placeholders(struct buf *text, const struct protect *protect, bool is_made)
{
	char parent[PATH_MAX];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < protect->placeholder_count; i++) {
		const struct placeholder_note *note = &protect->notes[i];

		if (is_made && note->state != PLACEHOLDER_HELD)
			continue;
		r = path_of(&protect->placeholders[i], parent, sizeof parent);
		if (r >= 0 && is_made)
			r = buf_printf(text, "h %llu %llu %u %u ", (unsigned long long)note->dev,
				       (unsigned long long)note->ino, note->mode, note->uid);
		else if (r >= 0)
			r = buf_add_text(text, "p ");
		if (r >= 0)
			r = buf_printf(text, "%s/%s", parent, protect->placeholders[i].name);
		if (r >= 0)
			r = buf_add_byte(text, 0);
	}
	return r;
}

/* Makes and locks the note. -ENOENT: somebody swept what he found not locked yet, or the folder,
 * which the last run to go takes along. */
static int try_note(struct pending *pending, int root_fd)
{
	enum { FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };
	struct stat st;

	if (mkdirat(root_fd, FOLDER, 0700) < 0 && errno != EEXIST)
		return -errno;
	pending->dir_fd = openat(root_fd, FOLDER, OPEN_DIR);
	if (pending->dir_fd < 0)
		return -errno;
	pending->fd = openat(pending->dir_fd, pending->id, FLAGS, 0600);
	if (pending->fd < 0 || flock(pending->fd, LOCK_EX) < 0 || fstat(pending->fd, &st) < 0)
		return -errno;
	return st.st_nlink > 0 ? 0 : -ENOENT;
}

static int make_note(struct pending *pending, int root_fd)
{
	int r = -ENOENT;

	for (int i = 0; i < TRIES && r == -ENOENT; i++) {
		pending_done(pending);
		r = try_note(pending, root_fd);
	}
	return r;
}

int pending_open(struct pending *pending, const char *run_root, const char *id,
		 const struct protect *protect, bool has_scratch)
{
	_cleanup_fd_ int root_fd = -1;
	_cleanup_buf_ struct buf text;
	int r = record_open_root(run_root, &root_fd, NULL);

	*pending = PENDING_NONE;
	buf_init(&text, NOTE_MAX);
	snprintf(pending->id, sizeof pending->id, "%s", id);
	if (r >= 0 && has_scratch)
		r = buf_add(&text, "s", 2);
	if (r >= 0)
		r = add_placeholders(&text, protect, false);
	if (r >= 0)
		r = make_note(pending, root_fd);
	if (r >= 0)
		r = fd_write_all(pending->fd, buf_at(&text), buf_size(&text));
	if (r < 0) {
		pending_remove(pending);
		pending_done(pending);
	}
	return r;
}

void pending_made(const struct pending *pending, const struct protect *protect)
{
	_cleanup_buf_ struct buf text;

	buf_init(&text, NOTE_MAX);
	if (pending->fd >= 0 && add_placeholders(&text, protect, true) >= 0)
		fd_write_all(pending->fd, buf_at(&text), buf_size(&text));
}

void pending_remove(const struct pending *pending)
{
	if (pending->dir_fd < 0)
		return;
	unlinkat(pending->dir_fd, pending->id, 0);
	unlinkat(pending->dir_fd, "../" FOLDER, AT_REMOVEDIR); /* not empty: others' notes */
}

void pending_done(struct pending *pending)
{
	pending->fd = fd_close(pending->fd);
	pending->dir_fd = fd_close(pending->dir_fd);
}

/* ---- sweeping --------------------------------------------------------------------------- */

/* File systems on which a folder has the mode that the mount gives it. */
static const unsigned long modeless[] = {
	0x4d44,     /* vfat */
	0x2011bab0, /* exfat */
	0x7366746e, /* ntfs3 */
	0x65735546, /* fuse */
	0x01021997, /* 9p */
	0xff534d42, /* cifs */
	0xfe534d42, /* smb2 */
};

/* A forged note could name any empty folder of the caller's: elsewhere ours keeps its mark. */
static bool may_lack_mark(int dir_fd)
{
	struct statfs fs;
	bool is_known = false;

	for (size_t i = 0; fstatfs(dir_fd, &fs) == 0 && i < ARRAY_SIZE(modeless); i++)
		is_known |= (unsigned long)fs.f_type == modeless[i];
	return is_known;
}

/* True: it is gone, or nothing of ours. */
static bool settle_placeholder(const char *path, const struct placeholder_note *note)
{
	const char *slash = strrchr(path, '/');
	_cleanup_fd_ int top_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), parent_fd = -1;
	char parent[PATH_MAX];

	if (*path != '/' || !slash[1] || strlen(slash + 1) >= PLACEHOLDER_NAME)
		return true;
	if (str_is(slash, "/.") || str_is(slash, "/..") || slash - path >= PATH_MAX)
		return true;
	snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
	parent_fd = sys_openat2(top_fd, slash == path ? "." : parent + 1, O_PATH | O_DIRECTORY,
				RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	/* A workspace that is not there any more has taken it along. */
	if (parent_fd < 0)
		return parent_fd == -ENOENT || parent_fd == -ENOTDIR || parent_fd == -ELOOP;
	if (note->state == PLACEHOLDER_HELD && (!(note->mode & S_ISVTX) || (note->mode & 0222)) &&
	    !may_lack_mark(parent_fd))
		return true;
	return placeholder_remove(parent_fd, slash + 1, note, 0) == 0;
}

static bool settle_marked(const char *path)
{
	const struct placeholder_note note = { .state = PLACEHOLDER_MEANT };

	return settle_placeholder(path, &note);
}

static bool settle_held(char *line)
{
	struct placeholder_note note = { .state = PLACEHOLDER_HELD };
	uint64_t numbers[4];
	char *at = line;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		char *word = strsep(&at, " ");

		if (!at || str_parse_u64(word, UINT64_MAX, &numbers[i]) < 0)
			return true;
	}
	note.dev = numbers[0];
	note.ino = numbers[1];
	note.mode = (uint32_t)numbers[2];
	note.uid = (uint32_t)numbers[3];
	/* Another's would be a forged note: only root could remove it for whoever forged it. */
	return note.uid != geteuid() || settle_placeholder(at, &note);
}

static bool settle_line(char *line, const char *id)
{
	if (str_is(line, "s"))
		return scratch_sweep_one(id);
	if (str_starts(line, "p "))
		return settle_marked(line + 2);
	if (str_starts(line, "h "))
		return settle_held(line + 2);
	return true;
}

/* What was cut short by the kill, without a NUL, was not made yet. */
static bool settle_text(char *text, size_t size, const char *id)
{
	bool is_settled = true;
	char *end;

	for (char *line = text; (end = memchr(line, 0, size)); line = end + 1) {
		size -= (size_t)(end - line) + 1;
		is_settled &= settle_line(line, id);
	}
	return is_settled;
}

/* An empty one was lost before it was written, or is about to be locked: its maker looks. */
static bool settle_note(int fd, const char *id)
{
	_cleanup_buf_ struct buf text;
	struct stat st;
	uint8_t *room;
	ssize_t n;

	buf_init(&text, NOTE_MAX + 1);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    flock(fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	room = st.st_size <= NOTE_MAX ? buf_reserve(&text, (size_t)st.st_size + 1) : NULL;
	n = room ? fd_read_all(fd, room, (size_t)st.st_size) : -E2BIG;
	return n >= 0 && settle_text((char *)room, (size_t)n, id);
}

int pending_sweep(const char *run_root, const struct removed *removed)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	int settled = 0, fd;
	DIR *dir;

	if (snprintf(path, sizeof path, "%s/" FOLDER, run_root) >= (int)sizeof path)
		return 0;
	fd = open(path, OPEN_DIR);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		fd_close(fd);
		return 0;
	}
	for (int i = 0; i < LOOK_AT && (entry = readdir(dir)); i++) {
		_cleanup_fd_ int note_fd = -1;

		if (!record_is_id(entry->d_name))
			continue;
		note_fd = openat(dirfd(dir), entry->d_name,
				 O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
		if (note_fd < 0 || !settle_note(note_fd, entry->d_name) ||
		    unlinkat(dirfd(dir), entry->d_name, 0) < 0)
			continue;
		removed_tell(removed, "run", entry->d_name);
		settled++;
	}
	unlinkat(dirfd(dir), "../" FOLDER, AT_REMOVEDIR);
	closedir(dir);
	return settled;
}
