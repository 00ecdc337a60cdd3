/* What is lent to a prepared sandbox; see bind.h. */
#include "backend/process/bind.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/channels.h"
#include "backend/process/process.h"
#include "backend/process/skeleton.h"
#include "backend/process/tree.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "os/privs.h"

#define STAGE "pool"

enum { ARENA_QUOTA = 1 << 20 };

/* A file is mounted on a file. */
static bool is_same_kind(const char *host, const char *other)
{
	struct stat a, b;

	return stat(host, &a) == 0 && stat(other, &b) == 0 &&
	       S_ISDIR(a.st_mode) == S_ISDIR(b.st_mode);
}

bool bind_has_places(const struct plan *waiting, const struct plan *plan)
{
	bool has = !plan->workspace.host == !waiting->workspace.host &&
		   (!plan->workspace.host || str_is(plan->workspace.at, waiting->workspace.at));

	for (size_t i = 0; has && i < plan->mount_count; i++) {
		has = tree_has_place(plan, plan->mounts[i].at, i);
		for (size_t k = 0; !has && k < waiting->mount_count; k++)
			has = str_is(plan->mounts[i].at, waiting->mounts[k].at) &&
			      is_same_kind(plan->mounts[i].host, waiting->mounts[k].host);
	}
	return has;
}

/* ---- the helper ---------------------------------------------------------------------------- */

struct helper {
	struct wall *wall;
	struct rootfs *rootfs;
	struct csn_error *err;
};

static int enter_mounts(void *data, struct csn_error *err)
{
	const struct helper *helper = data;
	int r = setns(helper->wall->spaces[1], CLONE_NEWNS) < 0
			? -errno
			: privs_set_ids(LAUNCH_UID, LAUNCH_GID);

	return r < 0 ? csn_fail(err, r, STAGE, "cannot enter the prepared sandbox: %s",
				strerror(-r))
		     : 0;
}

/* Root's trees were cloned before; others are cloned from a copy of the host's mounts, which
 * belongs to the sandbox's user namespace (late.c). */
static int attach_all(struct helper *helper)
{
	bool is_root = geteuid() == 0;

	if (setns(helper->wall->spaces[0], CLONE_NEWUSER) < 0 ||
	    (!is_root && unshare(CLONE_NEWNS) < 0))
		return csn_fail(helper->err, -errno, STAGE,
				"cannot enter the prepared sandbox: %m");
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	return rootfs_add_to(helper->rootfs, enter_mounts, helper, helper->err);
}

/* It shares our memory while we wait: its sentence is in `err`, and descriptors that it noted are
 * not ours. */
static int run_helper(struct helper *helper)
{
	int status = -1;
	pid_t pid = vfork();

	if (pid == 0)
		_exit(attach_all(helper) < 0);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < helper->rootfs->count; i++)
		if (helper->rootfs->items[i].kind == ROOTFS_BIND)
			helper->rootfs->items[i].fd = -1;
	if (pid < 0)
		return csn_fail(helper->err, -errno, STAGE, "cannot make one more process: %m");
	if (status == 0)
		return 0;
	return helper->err->code
		       ? -EIO
		       : csn_fail(helper->err, -EIO, STAGE, "the process that mounts for it died");
}

/* ---- the monitor ---------------------------------------------------------------------------- */

static int lend(const struct tree *tree, struct launch *launch, struct wall *wall,
		struct csn_error *err)
{
	struct helper helper = { wall, &launch->rootfs, err };
	int r = tree_plan_lent(tree, launch, err);

	if (r >= 0 && wall->skeleton >= 0 && !skeleton_is_apart(tree))
		r = csn_fail(err, -ESTALE, STAGE, "a part of the run root is lent");
	if (r >= 0)
		r = run_helper(&helper);
	if (r >= 0)
		r = launch_give_limits(launch, wall->pid, err);
	if (r < 0)
		return r;
	r = launch_order(wall->order, launch);
	wall->order = fd_close(wall->order);
	return r < 0 ? csn_fail(err, r, STAGE, "the prepared sandbox is gone") : 0;
}

int bind_lend(const struct plan *plan, const struct backend_start *how, struct wall *wall,
	      struct csn_error *err)
{
	struct launch *launch = launch_new();
	struct arena arena;
	const struct tree tree = { plan, how, &arena, wall->userns };
	int r;

	if (!launch)
		return csn_fail(err, -ENOMEM, STAGE, "out of memory");
	arena_init(&arena, ARENA_QUOTA);
	launch->landlock_abi = landlock_abi();
	channels_limit(how, launch);
	process_limit(plan, how, launch);
	r = lend(&tree, launch, wall, err);
	rootfs_done(&launch->rootfs);
	free(launch);
	arena_done(&arena);
	wall->userns = fd_close(wall->userns);
	wall->spaces[0] = fd_close(wall->spaces[0]);
	return r;
}
