/*
 * One more path, lent to a sandbox that runs. What is named is opened beneath one of the policy's
 * mount_roots, without a link that leads out; what was opened is decided about, by its real name;
 * and the wall lends that and nothing else (backend.mount). All of it in a worker.
 *
 * A grant is on record before it is made: a worker that is killed in between leaves one too many in
 * the record, never one too few.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "monitor/hide.h"
#include "monitor/stay_verbs.h"
#include "os/sys.h"
#include "policy/policy.h"

#define STAGE "mount"

enum { ARENA_QUOTA = 4 << 20, PATTERNS = 1024 };

const char *stay_mount_missing(const struct stay *stay)
{
	if (stay->run.backend->mount)
		return NULL;
	return "this sandbox's wall shows the host's own tree and mounts nothing: "
	       "choose the process wall (--backend process), or lend the folder at the start "
	       "under its own path";
}

int stay_mount_init(struct stay *stay)
{
	struct run *run = &stay->run;
	struct plan_mount *mounts;

	if (!run->backend->mount)
		return 0;
	mounts = arena_array(&run->arena, run->plan->mount_count + STAY_MOUNTS, sizeof *mounts);
	if (!mounts)
		return -ENOMEM;
	if (run->plan->mount_count)
		memcpy(mounts, run->plan->mounts, run->plan->mount_count * sizeof *mounts);
	run->shown = *run->plan;
	run->shown.mounts = mounts;
	run->plan = run->violations.plan = run->limits.plan = &run->shown;
	return 0;
}

/* ---- what is named -------------------------------------------------------------------------- */

/* A text of the call, normalized. */
static int take_path(const struct term *map, const char *key, char ret_path[POLICY_PATH_MAX],
		     struct csn_error *err)
{
	const struct term *path = term_get(map, key);

	if (path_normalize((const char *)path->bytes.data, ret_path, POLICY_PATH_MAX) < 0)
		return csn_fail(err, -EINVAL, STAGE,
				"%s: expected an absolute path that does not "
				"climb above /",
				key);
	if (!str_is_utf8(ret_path, strlen(ret_path)))
		return csn_fail(err, -EINVAL, STAGE, "%s: is not UTF-8", key);
	return 0;
}

static int take_access(const struct term *map, enum plan_access *ret_access, struct csn_error *err)
{
	const struct term *mode = term_get(map, "mode");

	*ret_access = mode && term_is_atom(mode, "rw") ? ACCESS_RW : ACCESS_RO;
	if (!mode || term_is_atom(mode, "rw") || term_is_atom(mode, "ro"))
		return 0;
	return csn_fail(err, -EINVAL, STAGE, "mode: expected ro or rw");
}

/* Nothing in the name may lead out of `root`, and it is one itself. */
static int open_beneath(const char *root, const char *host)
{
	_cleanup_fd_ int root_fd =
		sys_openat2(AT_FDCWD, root, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	const char *tail = path_tail(host, root);

	if (root_fd < 0)
		return root_fd;
	return sys_openat2(root_fd, *tail ? tail : ".", O_PATH,
			   RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

static int no_source(const char *host, int r, struct csn_error *err)
{
	if (r == -EXDEV || r == -ELOOP)
		return csn_fail(err, -EPERM, STAGE,
				"%.100s leads out of the policy's mount_roots by a symbolic link, "
				"or the root itself is behind one",
				host);
	errno = -r;
	return csn_fail(err, r, STAGE, "%.150s cannot be lent: %m", host);
}

/* O_PATH of what `host` names, and its real name. */
static int open_source(const struct plan *plan, const char *host, int *ret_fd,
		       char ret_real[POLICY_PATH_MAX], struct csn_error *err)
{
	_cleanup_fd_ int fd = -EPERM;
	char link[64];
	struct stat st;
	ssize_t n;

	for (const char **root = plan->mount_roots; fd < 0 && *root; root++)
		if (path_is_beneath(host, *root))
			fd = open_beneath(*root, host);
	if (fd == -EPERM) { /* beneath none of them: the policy says it better */
		snprintf(ret_real, POLICY_PATH_MAX, "%s", host);
		return 0;
	}
	if (fd < 0)
		return no_source(host, fd, err);
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, ret_real, POLICY_PATH_MAX);
	if (n <= 0 || n >= POLICY_PATH_MAX || fstat(fd, &st) < 0)
		return no_source(host, -EIO, err);
	ret_real[n] = 0;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return csn_fail(err, -EPERM, STAGE,
				"%.150s is a socket, a device or a pipe; only folders and files "
				"are lent",
				ret_real);
	*ret_fd = fd_take(&fd);
	return 0;
}

/* ---- what is decided ------------------------------------------------------------------------ */

/* Files of the workspace that its plan hides are not shown by another way. */
static int look_for_hidden(const struct plan *plan, const struct plan_mount *mount, int source_fd,
			   struct csn_error *err)
{
	const char *patterns[PATTERNS + 1], *const *found = NULL, *tail;
	struct plan part = *plan;
	char folder[64];
	struct arena arena;
	struct stat st;
	size_t count = 0;
	int r;

	if (!plan->workspace.host || !path_is_beneath(mount->host, plan->workspace.host) ||
	    fstat(source_fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	tail = path_tail(mount->host, plan->workspace.host);
	for (const char **hide = plan->workspace.hide; hide && *hide; hide++)
		if (count == PATTERNS || plan_rebase(*hide, tail, &patterns[count++]) < 0)
			return csn_fail(err, -EPERM, STAGE, "%.100s is hidden", mount->host);
	patterns[count] = NULL;
	/* What was opened, whatever has its name by now; no link itself, because of the dot. */
	snprintf(folder, sizeof folder, "/proc/self/fd/%d/.", source_fd);
	part.workspace.host = folder;
	part.workspace.hide = patterns;
	arena_init(&arena, ARENA_QUOTA);
	r = hide_find(&part, &arena, &found, err);
	if (r >= 0 && found[0])
		r = csn_fail(err, -EPERM, STAGE,
			     "%.90s holds %.60s, which the policy hides (workspace.hide); lend a "
			     "folder without it",
			     mount->host, found[0]);
	arena_done(&arena);
	return r;
}

static int decide(const struct run *run, const struct plan_mount *mount, int source_fd,
		  struct csn_error *err)
{
	const struct policy_facts facts = { .home = run->setup->home,
					    .run_root = run->setup->hidden_root,
					    .place = run->setup->hidden_place };
	int r;

	if (run->plan->mount_count >= run->setup->plan->mount_count + STAY_MOUNTS)
		return csn_fail(err, -E2BIG, STAGE,
				"at most %d paths are lent to a running sandbox", STAY_MOUNTS);
	r = policy_may_lend(run->plan, &facts, mount, err);
	if (r >= 0 && source_fd < 0)
		return csn_fail(err, -EPERM, STAGE, "%.100s cannot be lent", mount->host);
	return r < 0 ? r : look_for_hidden(run->plan, mount, source_fd, err);
}

/* ---- the worker ----------------------------------------------------------------------------- */

static int note(struct worker *worker, const struct plan_mount *mount, bool is_withdrawn)
{
	struct emit emit = worker_note(worker, 4);

	emit_atom(&emit, "host");
	emit_text(&emit, mount->host);
	emit_atom(&emit, "at");
	emit_text(&emit, mount->at);
	emit_atom(&emit, "mode");
	emit_atom(&emit, plan_access_name(mount->access));
	emit_atom(&emit, "withdrawn");
	emit_atom(&emit, is_withdrawn ? "true" : "false");
	return worker_send(worker, &emit);
}

static int lend(struct worker *worker, const struct plan_mount *mount, int source_fd,
		struct csn_error *err)
{
	const struct run *run = worker->run;
	struct emit emit;
	int r = note(worker, mount, false);

	if (r < 0)
		return r;
	r = run->backend->mount(&run->wall, mount, source_fd, err);
	if (r < 0) {
		note(worker, mount, true);
		return r;
	}
	emit = worker_reply(worker, 0);
	return worker_send(worker, &emit);
}

int stay_mount(struct worker *worker, const struct term *map, struct csn_error *err)
{
	char host[POLICY_PATH_MAX], real[POLICY_PATH_MAX], at[POLICY_PATH_MAX];
	struct plan_mount mount = { .host = real, .at = at };
	_cleanup_fd_ int source_fd = -1;
	int r = take_path(map, "host", host, err);

	if (r >= 0)
		r = take_path(map, "at", at, err);
	if (r >= 0)
		r = take_access(map, &mount.access, err);
	if (r >= 0)
		r = open_source(worker->run->plan, host, &source_fd, real, err);
	if (r >= 0)
		r = decide(worker->run, &mount, source_fd, err);
	return r < 0 ? r : lend(worker, &mount, source_fd, err);
}

/* ---- the monitor ---------------------------------------------------------------------------- */

static const char *keep_text(struct run *run, const struct term *map, const char *key)
{
	const struct term *text = term_get(map, key);

	if (!text || text->type != TERM_BINARY || text->bytes.size >= POLICY_PATH_MAX)
		return NULL;
	return arena_copy(&run->arena, (const char *)text->bytes.data, text->bytes.size);
}

static void forget(struct plan *plan, size_t own, const char *at)
{
	for (size_t i = plan->mount_count; i-- > own;)
		if (str_is(plan->mounts[i].at, at)) {
			plan->mounts[i] = plan->mounts[--plan->mount_count];
			return;
		}
}

int stay_mount_note(struct stay *stay, const struct term *map, struct csn_error *err)
{
	struct run *run = &stay->run;
	struct plan *plan = &run->shown;
	const struct term *mode = term_get(map, "mode"), *withdrawn = term_get(map, "withdrawn");
	struct plan_mount mount = { .host = keep_text(run, map, "host"),
				    .at = keep_text(run, map, "at"),
				    .access = mode && term_is_atom(mode, "rw") ? ACCESS_RW
									       : ACCESS_RO };

	if (!mount.host || !mount.at || !withdrawn)
		return csn_fail(err, -EBADMSG, "worker", "a note on a mount that is none");
	stay_log_mount(stay, &mount, term_is_atom(withdrawn, "true"));
	if (term_is_atom(withdrawn, "true"))
		forget(plan, run->setup->plan->mount_count, mount.at);
	else if (plan->mount_count < run->setup->plan->mount_count + STAY_MOUNTS)
		plan->mounts[plan->mount_count++] = mount;
	return 0;
}
