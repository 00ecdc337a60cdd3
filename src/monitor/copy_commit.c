/*
 * See copy_commit.h
 *
 * The layer may change while it is applied: what is judged is what is then used (a link's
 * target is read once), and a file's bytes are those of one moment (os/clone.h).
 */
#include "monitor/copy_commit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "os/clone.h"

enum { TEMPORARY_NAME = 64 };

/* An entry on its way to its place. */
struct placing {
	const struct copy_commit *commit;
	const struct layer_entry *entry;
	int dir_fd;       /* the workspace's folder that holds it; owned by apply() */
	const char *name; /* in there */
	struct stat done; /* what stands there afterwards, for the book */
	bool is_noted;
};

static void temporary_name(const struct copy *copy, char ret_name[TEMPORARY_NAME])
{
	snprintf(ret_name, TEMPORARY_NAME, ".caisson-%s", copy->facts.run_id);
}

void copy_commit_sweep(const struct copy *copy)
{
	char name[TEMPORARY_NAME];

	temporary_name(copy, name);
	unlinkat(copy->lower_fd, name, 0);
}

/* ---- one entry ------------------------------------------------------------------------ */

/* Does the name hold what was there when the layer was compared? In between lie the copying of
 * its bytes and all entries before it. */
static bool is_as_compared(const struct placing *placing)
{
	const struct layer_entry *entry = placing->entry;
	struct stat st;

	if (placing->commit->is_forced)
		return true;
	if (fstatat(placing->dir_fd, placing->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && entry->change == LAYER_ADDED;
	if (entry->change == LAYER_ADDED)
		return false;
	return st.st_dev == entry->old.st_dev && st.st_ino == entry->old.st_ino &&
	       (S_ISDIR(st.st_mode) || (st.st_ctim.tv_sec == entry->old.st_ctim.tv_sec &&
					st.st_ctim.tv_nsec == entry->old.st_ctim.tv_nsec));
}

/* Moves a file from its temporary name to its own. */
static int rename_into_place(const struct placing *placing, int from, const char *temporary)
{
	int r = is_as_compared(placing) ? 0 : -ESTALE;

	if (r == 0 && renameat(from, temporary, placing->dir_fd, placing->name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(from, temporary, 0);
	return r;
}

/* While a file has its temporary name, an end waits. */
static void hold_signals(sigset_t *ret_before)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, ret_before);
}

static int link_file(int fd, int dir_fd, const char *name)
{
	char self[32];

	if (linkat(fd, "", dir_fd, name, AT_EMPTY_PATH) == 0)
		return 0;
	/* That needs a capability before kernel 6.10; the magic link does not. */
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, dir_fd, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* A file without a name, or, where the file system has none, with the temporary one. */
static int new_file(const struct placing *placing, const char *temporary, bool *ret_is_named)
{
	int fd = openat(placing->dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	*ret_is_named = false;
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd < 0 ? -errno : fd;
	*ret_is_named = true;
	copy_commit_sweep(placing->commit->copy);
	fd = openat(placing->commit->copy->lower_fd, temporary,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/*
 * What the host gets of a mode. Never set-user-id or set-group-id: the owner is the caller, whoever
 * wrote the bytes. Who may write a file may put there what the caller runs next, so that group and
 * others may comes from the workspace alone: where they could before. What a folder of the
 * workspace has beside (sticky, the group it hands on) stays while the sandbox left it there.
 */
static mode_t host_mode(const struct layer_entry *entry, mode_t now)
{
	mode_t had = entry->change == LAYER_MODIFIED ? entry->old.st_mode : 0;

	if ((had ^ now) & S_IFMT)
		had = 0;
	return now & (0755 | (had & (S_ISDIR(now) ? 03022 : 0022)));
}

/* Gives a new file its bytes, mode and, where root replaces a user's file, its owner. */
static int fill_file(const struct placing *placing, int to)
{
	const struct layer_entry *entry = placing->entry;
	_cleanup_fd_ int from = layer_open(placing->commit->copy->upper_fd, entry->path, 0);
	struct stat st;
	int r;

	if (from < 0)
		return from;
	r = clone_file(from, to, &st);
	if (r < 0)
		return r;
	if (geteuid() == 0 && entry->change == LAYER_MODIFIED &&
	    fchown(to, entry->old.st_uid, entry->old.st_gid) < 0)
		return -errno;
	if (fchmod(to, host_mode(entry, st.st_mode)) < 0 || fsync(to) < 0)
		return -errno;
	return 0;
}

/* Gives a file its temporary name: in the workspace's own folder, where it is looked for, or, if
 * that may not be written or is another subvolume, beside its place. */
static int name_file(const struct placing *placing, int fd, const char *temporary, int *ret_folder)
{
	int r;

	*ret_folder = placing->commit->copy->lower_fd;
	copy_commit_sweep(placing->commit->copy);
	r = link_file(fd, *ret_folder, temporary);
	if (r != -EACCES && r != -EXDEV)
		return r;
	*ret_folder = placing->dir_fd;
	unlinkat(placing->dir_fd, temporary, 0);
	return link_file(fd, placing->dir_fd, temporary);
}

static int replace_file(const struct placing *placing, int fd, const char *temporary)
{
	int folder, r;
	sigset_t before;

	hold_signals(&before);
	r = name_file(placing, fd, temporary, &folder);
	if (r == 0)
		r = rename_into_place(placing, folder, temporary);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

static int place_file(const struct placing *placing, int fd, const char *temporary, bool is_named)
{
	int r;

	if (is_named)
		return rename_into_place(placing, placing->commit->copy->lower_fd, temporary);
	if (placing->entry->change != LAYER_ADDED || placing->commit->is_forced)
		return replace_file(placing, fd, temporary);
	r = link_file(fd, placing->dir_fd, placing->name);
	return r == -EEXIST ? -ESTALE : r;
}

static int put_file(struct placing *placing)
{
	char temporary[TEMPORARY_NAME];
	_cleanup_fd_ int fd = -1;
	bool is_named;
	int r;

	temporary_name(placing->commit->copy, temporary);
	fd = new_file(placing, temporary, &is_named);
	if (fd < 0)
		return fd;
	r = fill_file(placing, fd);
	if (r == 0)
		r = place_file(placing, fd, temporary, is_named);
	else if (is_named)
		copy_commit_sweep(placing->commit->copy);
	placing->is_noted = r == 0 && fstat(fd, &placing->done) == 0;
	return r;
}

static int replace_link(const struct placing *placing, const char *target)
{
	const struct copy *copy = placing->commit->copy;
	char temporary[TEMPORARY_NAME];
	sigset_t before;
	int r;

	temporary_name(copy, temporary);
	copy_commit_sweep(copy);
	hold_signals(&before);
	r = symlinkat(target, copy->lower_fd, temporary) < 0 ? -errno : 0;
	if (r == 0)
		r = rename_into_place(placing, copy->lower_fd, temporary);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

static int put_link(struct placing *placing, const char *target)
{
	int r;

	if (placing->entry->change == LAYER_ADDED && !placing->commit->is_forced)
		r = symlinkat(target, placing->dir_fd, placing->name) < 0 ? -errno : 0;
	else
		r = replace_link(placing, target);
	placing->is_noted = r == 0 && fstatat(placing->dir_fd, placing->name, &placing->done,
					      AT_SYMLINK_NOFOLLOW) == 0;
	return r == -EEXIST ? -ESTALE : r;
}

/* Nothing can be put into a folder that keeps its own owner out. */
static bool is_closed(const struct layer_entry *entry)
{
	return entry->change != LAYER_DELETED && S_ISDIR(entry->now.st_mode) &&
	       (entry->now.st_mode & 0700) != 0700;
}

/* One that is closed gets its mode when all is in it. */
static int put_folder(const struct placing *placing)
{
	mode_t mode = host_mode(placing->entry, placing->entry->now.st_mode);
	_cleanup_fd_ int fd = -1;

	if (mkdirat(placing->dir_fd, placing->name, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (is_closed(placing->entry))
		mode |= 0700;
	fd = openat(placing->dir_fd, placing->name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, mode) < 0)
		return -errno;
	return 0;
}

static int close_folder(const struct copy_commit *commit, const struct layer_entry *entry)
{
	_cleanup_fd_ int fd = layer_open(commit->copy->lower_fd, entry->path, O_DIRECTORY);

	if (fd < 0)
		return fd;
	return fchmod(fd, host_mode(entry, entry->now.st_mode)) < 0 ? -errno : 0;
}

static int remove_name(const struct placing *placing)
{
	bool is_folder = S_ISDIR(placing->entry->old.st_mode);

	if (!is_as_compared(placing))
		return -ESTALE;
	return unlinkat(placing->dir_fd, placing->name, is_folder ? AT_REMOVEDIR : 0) < 0 ? -errno
											  : 0;
}

static int apply(const struct copy_commit *commit, const struct layer_entry *entry,
		 const char *target)
{
	struct placing placing = { .commit = commit, .entry = entry };
	_cleanup_fd_ int dir_fd =
		layer_open_parent(commit->copy->lower_fd, entry->path, &placing.name);
	int r;

	if (dir_fd < 0)
		return dir_fd;
	placing.dir_fd = dir_fd;
	if (entry->change == LAYER_DELETED)
		r = remove_name(&placing);
	else if (S_ISDIR(entry->now.st_mode))
		r = put_folder(&placing);
	else if (S_ISLNK(entry->now.st_mode))
		r = put_link(&placing, target);
	else
		r = put_file(&placing);
	if (placing.is_noted)
		copy_book_add(commit->book, entry->path, &placing.done);
	return r;
}

/* ---- what is left out ------------------------------------------------------------------- */

/* Did somebody else change it after the run began? Its ctime cannot be set back. */
static bool has_changed_since(const struct copy_commit *commit, const struct layer_entry *entry)
{
	const struct timespec *changed = &entry->old.st_ctim;
	int64_t started_ms = commit->copy->facts.started_ms;

	if (entry->change == LAYER_ADDED || S_ISDIR(entry->old.st_mode) || started_ms == 0)
		return false;
	return (int64_t)changed->tv_sec * 1000 + changed->tv_nsec / 1000000 > started_ms &&
	       !copy_book_has(commit->book, entry->path, &entry->old);
}

static bool is_link(const struct layer_entry *entry)
{
	return entry->change != LAYER_DELETED && S_ISLNK(entry->now.st_mode);
}

static bool is_odd(const struct layer_entry *entry)
{
	mode_t mode = entry->now.st_mode;

	return entry->change != LAYER_DELETED && !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode);
}

static const char changed_since[] =
	"it changed in the workspace since the run began; --force replaces it";

/* A sentence why the entry is left out, NULL if it is not. `target` is that of a link. */
static const char *objection(const struct copy_commit *commit, const struct layer_entry *entry,
			     const char *target)
{
	const char *who;

	if (copy_is_policy(commit->copy, entry->path))
		return "a policy file is never written";
	who = copy_objection(commit->copy, entry);
	if (who)
		return who;
	if (entry->is_unreadable)
		return "its mode keeps you out";
	if (is_odd(entry))
		return "it is a device, a socket or a pipe";
	if (is_link(entry) && !copy_is_named_itself(commit->copy, entry) &&
	    (!*target || copy_link_leaves(entry->path, target)))
		return "the link points out of the workspace";
	if (!commit->is_forced && has_changed_since(commit, entry))
		return changed_since;
	return NULL;
}

static const char *failure(int r)
{
	if (r == 0)
		return NULL;
	if (r == -ESTALE)
		return changed_since;
	return r == -EAGAIN ? "it is written to all the time: commit it again" : strerror(-r);
}

/* ---- all of it ---------------------------------------------------------------------------- */

static void commit_one(const struct copy_commit *commit, const struct layer_entry *entry)
{
	char target[PATH_MAX] = "";
	const char *reason;

	if (is_link(entry) && copy_read_target(commit->copy, entry, target) < 0)
		target[0] = 0;
	reason = objection(commit, entry, target);
	if (!reason && !commit->is_dry_run)
		reason = failure(apply(commit, entry, target));
	if (reason || !is_closed(entry))
		commit->tell(commit->data, entry, reason);
}

/* Folders that commit_one() left open, the innermost first. */
static void close_one(const struct copy_commit *commit, const struct layer_entry *entry)
{
	int r = 0;

	if (!is_closed(entry) || objection(commit, entry, ""))
		return;
	if (!commit->is_dry_run)
		r = close_folder(commit, entry);
	if (r != -ENOENT) /* it could not be made, which was said */
		commit->tell(commit->data, entry, failure(r));
}

void copy_commit_all(const struct copy_commit *commit)
{
	const struct copy *copy = commit->copy;

	if (!commit->is_dry_run)
		copy_commit_sweep(copy);
	for (size_t i = 0; i < copy->layer.count; i++)
		if (copy_is_named(copy, &copy->layer.entries[i]))
			commit_one(commit, &copy->layer.entries[i]);
	for (size_t i = copy->layer.count; i-- > 0;)
		if (copy_is_named(copy, &copy->layer.entries[i]))
			close_one(commit, &copy->layer.entries[i]);
}
