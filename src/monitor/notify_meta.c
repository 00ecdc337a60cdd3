/*
 * chmod, chown, utimes, setxattr: done for the program where Landlock is the wall.
 *
 * Landlock does not know these calls, so the caller's own files would all be within reach. None
 * of them is ever continued: the kernel would read path and descriptor number again, and a second
 * thread could by then have put another file there. The arguments are copied once, the target is
 * walked to once, what is decided about and what is changed is that one descriptor.
 * tests/escape/rights_swap.c, rights_ways.py
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

#include "base/fd.h"
#include "base/str.h"
#include "monitor/notify_private.h"
#include "os/tracee.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* 6.6 */
#endif

enum { NAME_ROOM = 256, VALUE_MAX = 65536, AT_KNOWN = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH };

/* A call being copied: the order, and what it is about. */
struct job {
	struct call *call;
	struct order order;
	int target;     /* owned */
	void *value;    /* of an attribute, owned */
	bool is_unread; /* the kernel forbids us to look at the program */
};

/* What tracee_…() says of a process that is closed to us. */
static int looked(struct job *job, int r)
{
	if (r == -EPERM || r == -EACCES)
		job->is_unread = true;
	return r;
}

static uint64_t arg(const struct job *job, int index)
{
	return job->call->request->data.args[index];
}

static int copy(struct job *job, uint64_t at, void *ret_data, size_t size)
{
	return looked(job, tracee_read_all(job->call->tid, at, ret_data, size));
}

/* ---- what to change it to ----------------------------------------------------------------- */

static int read_mode(struct job *job, int at)
{
	job->order.mode = (mode_t)arg(job, at) & 07777;
	/* The profile says so too; nothing here may be the one that makes such a file. */
	return job->order.mode & (S_ISUID | S_ISGID) ? -EPERM : 0;
}

static int read_owner(struct job *job, int at)
{
	job->order.uid = (uid_t)arg(job, at);
	job->order.gid = (gid_t)arg(job, at + 1);
	return 0;
}

static int read_size(struct job *job, int at)
{
	job->order.size = (off_t)arg(job, at);
	return 0;
}

static int read_timespecs(struct job *job, int at)
{
	job->order.is_now = arg(job, at) == 0;
	return job->order.is_now
		       ? 0
		       : copy(job, arg(job, at), job->order.times, sizeof job->order.times);
}

static int read_timevals(struct job *job, int at)
{
	struct timeval times[2];
	int r;

	job->order.is_now = arg(job, at) == 0;
	if (job->order.is_now)
		return 0;
	r = copy(job, arg(job, at), times, sizeof times);
	for (int i = 0; r == 0 && i < 2; i++) {
		if (times[i].tv_usec < 0 || times[i].tv_usec >= 1000000)
			return -EINVAL;
		job->order.times[i] = (struct timespec){ times[i].tv_sec, times[i].tv_usec * 1000 };
	}
	return r;
}

static int read_utimbuf(struct job *job, int at)
{
	struct utimbuf times;
	int r;

	job->order.is_now = arg(job, at) == 0;
	if (job->order.is_now)
		return 0;
	r = copy(job, arg(job, at), &times, sizeof times);
	job->order.times[0] = (struct timespec){ times.actime, 0 };
	job->order.times[1] = (struct timespec){ times.modtime, 0 };
	return r;
}

static int read_attribute(struct job *job, int at)
{
	ssize_t n = tracee_read_text(job->call->tid, arg(job, at), job->order.name, NAME_ROOM);

	if (n == 0 || n == -ENAMETOOLONG)
		return -ERANGE;
	return n < 0 ? looked(job, (int)n) : 0;
}

static int read_value(struct job *job, int at)
{
	uint64_t size = arg(job, at + 2);
	int r = read_attribute(job, at);

	if (r < 0)
		return r;
	if (size > VALUE_MAX)
		return -E2BIG;
	job->order.flags = call_int(job->call, at + 3);
	job->order.value_size = (uint32_t)size;
	if (size == 0)
		return 0;
	job->value = malloc(size);
	return job->value ? copy(job, arg(job, at + 1), job->value, size) : -ENOMEM;
}

/* For each call what it changes, and the register its news begin at. */
static const struct {
	int nr;
	enum change change;
	int (*read)(struct job *job, int at);
	int at;
} rows[] = {
	{ SYS_fchmod, CHANGE_MODE, read_mode, 1 },
	{ SYS_fchmodat, CHANGE_MODE, read_mode, 2 },
	{ SYS_fchmodat2, CHANGE_MODE, read_mode, 2 },
	{ SYS_fchown, CHANGE_OWNER, read_owner, 1 },
	{ SYS_fchownat, CHANGE_OWNER, read_owner, 2 },
	{ SYS_truncate, CHANGE_SIZE, read_size, 1 },
	{ SYS_utimensat, CHANGE_TIMES, read_timespecs, 2 },
	{ SYS_setxattr, CHANGE_SET, read_value, 1 },
	{ SYS_lsetxattr, CHANGE_SET, read_value, 1 },
	{ SYS_fsetxattr, CHANGE_SET, read_value, 1 },
	{ SYS_removexattr, CHANGE_REMOVE, read_attribute, 1 },
	{ SYS_lremovexattr, CHANGE_REMOVE, read_attribute, 1 },
	{ SYS_fremovexattr, CHANGE_REMOVE, read_attribute, 1 },
#ifdef SYS_chmod
	{ SYS_chmod, CHANGE_MODE, read_mode, 1 },
	{ SYS_chown, CHANGE_OWNER, read_owner, 1 },
	{ SYS_lchown, CHANGE_OWNER, read_owner, 1 },
	{ SYS_utime, CHANGE_TIMES, read_utimbuf, 1 },
	{ SYS_utimes, CHANGE_TIMES, read_timevals, 1 },
	{ SYS_futimesat, CHANGE_TIMES, read_timevals, 2 },
#endif
};

static int read_news(struct job *job)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].nr != job->call->request->data.nr)
			continue;
		job->order.change = rows[i].change;
		return rows[i].read(job, rows[i].at);
	}
	return -ENOSYS; /* watched by the profile and missing here: never continued */
}

/* ---- what to change ----------------------------------------------------------------------- */

static int take_open(struct job *job, int fd)
{
	job->order.is_open = true;
	return looked(job, tracee_take_fd(job->call->tid, fd, &job->target));
}

static int take_named(struct job *job, int dir_fd, int path, int flags)
{
	struct place place = PLACE_NONE;
	char text[PATH_MAX];
	ssize_t n = tracee_read_text(job->call->tid, arg(job, path), text, sizeof text);
	bool is_nofollow = job->call->shape->is_nofollow || (flags & AT_SYMLINK_NOFOLLOW);
	int r;

	if (n < 0)
		return looked(job, (int)n);
	if (n > 0)
		return place_walk(job->call, dir_fd, text, is_nofollow, &job->target);
	if (!(flags & AT_EMPTY_PATH))
		return -ENOENT;
	r = looked(job, place_of_fd(job->call, dir_fd, &place));
	job->target = place.fd;
	return r == -ENOENT ? -EBADF : r;
}

static int take_target(struct job *job)
{
	const struct call_shape *shape = job->call->shape;
	int dir_fd = shape->dir == ARG_NONE ? AT_FDCWD : call_int(job->call, shape->dir);
	int flags = shape->flags == ARG_NONE ? 0 : call_int(job->call, shape->flags);
	bool is_times = job->order.change == CHANGE_TIMES;

	if (shape->path == ARG_NONE)
		return take_open(job, dir_fd);
	/* futimens() is utimensat() without a path. */
	if (is_times && shape->dir != ARG_NONE && arg(job, shape->path) == 0 && dir_fd != AT_FDCWD)
		return flags ? -EINVAL : take_open(job, dir_fd);
	return flags & ~AT_KNOWN ? -EINVAL : take_named(job, dir_fd, shape->path, flags);
}

/* ---- the answer --------------------------------------------------------------------------- */

/* Nothing can be decided about a program that hides from us, so nothing is changed. */
static int refuse_unread(struct job *job, int error)
{
	struct fact fact;

	job->call->notify->unreadable++;
	call_fact(job->call, FACT_FILESYSTEM_WRITE, &fact);
	fact.detail.path_unknown = true;
	fact_print(fact.detail.text, sizeof fact.detail.text, "%s", strerror(-error));
	fact_print(fact.rule, sizeof fact.rule, "built-in: nothing is changed unread");
	call_record(job->call, &fact);
	return -EACCES;
}

/* As behind mounts: EROFS. A terminal or null is no news to anybody and no fact. */
static int refuse_place(struct job *job, const struct place *place)
{
	struct call *call = job->call;
	char name[PATH_MAX];
	struct fact fact;

	if (place_may_write(call, place) && tracee_name_of(place->fd, name, sizeof name) == 0 &&
	    !place_is_hidden(call, name))
		return -EPERM;
	call_fact(call, FACT_FILESYSTEM_WRITE, &fact);
	if (tracee_name_of(place->fd, name, sizeof name) < 0)
		name[0] = 0;
	fact_text(fact.detail.path, sizeof fact.detail.path, name, strlen(name));
	if (place_is_hidden(call, name))
		fact_print(fact.rule, sizeof fact.rule, "workspace.hide");
	else
		notify_write_rule(call->notify->setup.plan, name, &fact);
	call_record(call, &fact);
	return -EROFS;
}

static int perform(struct job *job)
{
	struct place place = { .exists = true };
	int r = read_news(job);

	if (r == 0)
		r = take_target(job);
	if (job->is_unread)
		return refuse_unread(job, r);
	if (r < 0)
		return r;
	/* Only now is it sure that all we read was of the process that asked. */
	if (!call_is_valid(job->call))
		return -ESRCH;
	place.fd = job->target;
	if (!place_may_change(job->call, &place))
		return refuse_place(job, &place);
	return hand_order(job->call, &job->order, job->target, job->value);
}

void notify_meta(struct call *call)
{
	struct job job = { .call = call, .order.id = call->request->id, .target = -1 };
	int r = perform(&job);

	fd_close(job.target);
	free(job.value);
	if (r < 0)
		call_refuse(call, -r);
	else
		call->answer = ANSWER_LATER;
}
