/*
 * snapshot and fork: the layer of a sandbox that lives once more, and another sandbox on it
 *
 *   monitor ── worker ── copier: copies the layer
 *                 └── fork ──▶ monitor of the new sandbox: own session, place, record and wall
 *                               under the very plan that this one has
 *
 * A fork has the policy, the environment and the grants of its origin, because its monitor is a
 * copy of that process; what it decides by is never read from anywhere else. It keeps nothing of
 * its origin's descriptors, and lives on its own: until `down`, silence, or its wall's end.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/tree.h"
#include "base/fd.h"
#include "base/place.h"
#include "monitor/copy_save.h"
#include "monitor/stay_verbs.h"
#include "os/layer.h"
#include "os/sys.h"

/* ---- snapshot ---------------------------------------------------------------------------- */

static void put_copied(struct emit *emit, const struct layer_copied *copied)
{
	emit_atom(emit, "entries");
	emit_int(emit, (int64_t)copied->entries);
	emit_atom(emit, "bytes");
	emit_int(emit, (int64_t)copied->bytes);
	emit_atom(emit, "torn");
	emit_int(emit, (int64_t)copied->torn);
	emit_atom(emit, "torn_name");
	emit_text(emit, copied->first);
}

static const char *text_of(const struct term *map, const char *key)
{
	const struct term *value = term_get(map, key);

	return value ? (const char *)value->bytes.data : NULL;
}

int stay_snapshot(struct worker *worker, const struct term *map, struct csn_error *err)
{
	_cleanup_fd_ int cow_fd = layer_open(worker->run->record.dir_fd, "cow", O_DIRECTORY);
	struct layer_copied copied = { 0 };
	struct emit emit;
	int r = cow_fd < 0 ? csn_fail(err, cow_fd, "snapshot", "cannot open the layer")
			   : copy_snapshot(cow_fd, text_of(map, "tag"), &copied, err);

	if (r < 0)
		return r;
	emit = worker_reply(worker, 4);
	put_copied(&emit, &copied);
	return worker_send(worker, &emit);
}

/* ---- fork -------------------------------------------------------------------------------- */

/* The sandbox that is to be. */
struct young {
	const struct stay_setup *origin;
	const char *name;
	const struct plan *plan;     /* the origin's, with what it was lent since */
	const struct rlimit *memory; /* as the origin's monitor has it */
	char layer[PATH_MAX];        /* what becomes its `cow` */
	int place;
	int lock;
	int listener;
	int told;
};

static void tell(void *data, const struct csn_error *err)
{
	struct young *young = data;

	if (!err->code)
		place_mark_up(young->lock);
	if (young->told >= 0 && write(young->told, err, sizeof *err) < 0)
		return; /* nobody waits any more */
	young->told = fd_close(young->told);
}

/* Descriptors that are kept come first, one after the other, and nothing after them. */
static int keep_only(int *const kept[], int count)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return -errno;
	/* Out of the way first: a place may be taken by one that is still to be moved. */
	for (int i = 0; i < count; i++) {
		*kept[i] = fcntl(*kept[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1 + count);
		if (*kept[i] < 0)
			return -errno;
	}
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	for (int i = 0; i < count; i++) {
		if (dup3(*kept[i], STDERR_FILENO + 1 + i, O_CLOEXEC) < 0)
			return -errno;
		*kept[i] = STDERR_FILENO + 1 + i;
	}
	return sys_close_from((unsigned)(STDERR_FILENO + 1 + count));
}

static int serve(struct young *young)
{
	int *const kept[] = { &young->place, &young->lock, &young->listener, &young->told };
	struct stay_setup setup = *young->origin;
	struct run_outcome outcome = { 0 };
	int r = keep_only(kept, 4);

	if (r >= 0 && (prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) < 0 || setsid() < 0 ||
		       setrlimit(RLIMIT_DATA, young->memory) < 0))
		r = -errno;
	/* Once more, as who we are now: the kernel tells clients the process that listened last. */
	if (r >= 0 && listen(young->listener, SOMAXCONN) < 0)
		r = -errno;
	if (r < 0)
		return r;
	prctl(PR_SET_NAME, "caisson", 0, 0, 0);
	setup.run.plan = young->plan;
	setup.run.approval = NULL; /* good for one start, which was the origin's */
	setup.run.sandbox = young->name;
	setup.run.layer_from = young->layer;
	setup.listen_fd = young->listener;
	setup.owner_fd = -1;
	setup.tell = tell;
	setup.data = young;
	r = stay_execute(&setup, &outcome);
	run_outcome_done(&outcome);
	return r;
}

/* Until it is ready, or says why it cannot be; not to the end, which its helpers hold open. */
static int await(int fd, struct csn_error *ret_err)
{
	ssize_t n;

	do
		n = read(fd, ret_err, sizeof *ret_err);
	while (n < 0 && errno == EINTR);
	if (n != sizeof *ret_err)
		return csn_fail(ret_err, -EPIPE, "fork",
				"the monitor of the new sandbox ended without a word");
	ret_err->stage[sizeof ret_err->stage - 1] = ret_err->text[sizeof ret_err->text - 1] = 0;
	return ret_err->code ? -EIO : 0;
}

static int start_monitor(struct young *young, struct csn_error *err)
{
	int ends[2], r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return csn_fail(err, -errno, "fork", "cannot make a pipe: %m");
	young->told = ends[1];
	pid = fork();
	if (pid == 0) {
		r = serve(young);
		place_leave(young->place, young->name);
		_exit(r < 0);
	}
	r = pid < 0 ? csn_fail(err, -errno, "fork", "cannot start a monitor: %m") : 0;
	close(ends[1]);
	if (r == 0)
		r = await(ends[0], err);
	close(ends[0]);
	return r;
}

/* Takes the name, then starts who serves it. */
static int start(struct young *young, struct csn_error *err)
{
	int r;

	if (!place_is_name(young->name))
		return csn_fail(err, -EINVAL, "fork", "that is no name of a sandbox");
	young->place = place_open(err);
	if (young->place < 0)
		return young->place;
	r = place_listen(young->place, young->name, &young->lock, &young->listener, err);
	return r < 0 ? r : start_monitor(young, err);
}

/* One yes is one sandbox (tests/cli/test_approve.py), and a monitor has nobody to ask. */
static int check_approval(const struct plan *plan, struct csn_error *err)
{
	if (!plan->needs_approval)
		return 0;
	return csn_fail(
		err, -EPERM, "approval",
		"ApprovalRequired: the yes to this sandbox was to one, and a fork is another: "
		"caisson up asks for it");
}

static int make_fork(const struct worker *worker, const struct term *map,
		     struct copy_forked *ret_forked, struct csn_error *err)
{
	const struct run *run = worker->run;
	const struct stay *origin = worker->data;
	_cleanup_fd_ int cow_fd = layer_open(run->record.dir_fd, "cow", O_DIRECTORY);
	struct young young = { .origin = origin->setup,
			       .name = text_of(map, "name"),
			       .plan = run->plan,
			       .memory = &worker->memory,
			       .place = -1,
			       .lock = -1,
			       .listener = -1,
			       .told = -1 };
	int r = check_approval(run->plan, err);

	if (r == 0)
		r = cow_fd < 0 ? csn_fail(err, cow_fd, "fork", "cannot open the layer")
			       : copy_fork(cow_fd, text_of(map, "tag"), run->started_wall_ms,
					   ret_forked, err);
	if (r < 0)
		return r;
	snprintf(young.layer, sizeof young.layer, "%s/%s/cow/%s", run->setup->run_root,
		 run->record.run_id, ret_forked->name);
	r = start(&young, err);
	if (r < 0)
		tree_remove(cow_fd, ret_forked->name);
	fd_close(young.listener);
	fd_close(young.lock);
	fd_close(young.place);
	return r;
}

int stay_fork(struct worker *worker, const struct term *map, struct csn_error *err)
{
	struct copy_forked forked = { 0 };
	int r = make_fork(worker, map, &forked, err);
	struct emit emit;

	if (r < 0)
		return r;
	emit = worker_reply(worker, 4);
	put_copied(&emit, &forked.copied);
	return worker_send(worker, &emit);
}
