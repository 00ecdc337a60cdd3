/*
 * The two walls of OCI runtimes; see oci.h. What a program sees is planned by the same code as
 * behind the process wall (process/tree.h); the bundle says it in the runtime's words, and the
 * runtime carries it out.
 *
 * Identity: inside uid 1000, behind it a private uid; the uid 0 that a runtime needs in its user
 * namespace for its own work is another private one, and nothing of the sandbox's runs by it.
 */
#include "backend/oci/oci.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/oci/bundle.h"
#include "backend/oci/leftover.h"
#include "backend/oci/runtime.h"
#include "backend/piped.h"
#include "backend/process/skeleton.h"
#include "backend/process/tree.h"
#include "backend/process/userns.h"
#include "base/arena.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "launch/launch.h"
#include "os/mounts.h"
#include "os/sys.h"

enum { ARENA_QUOTA = 1 << 20, ARGV_MAX = 24 };

/* The agent, and runc's threads; of runsc three processes, each with a dozen and more. */
enum { OCI_TASKS = 20, GVISOR_TASKS = 128 };

/* Everything of one start; released by start_done() whatever happened. */
struct start {
	const struct plan *plan;
	const struct backend_start *how;
	const struct runtime *runtime;
	struct arena arena;
	struct launch *launch;
	int userns_fd;
	int root_fd; /* the root's names, a detached tmpfs */
	char program[PATH_MAX], folder[PATH_MAX];
};

static void start_done(struct start *start)
{
	if (start->launch) {
		rootfs_done(&start->launch->rootfs);
		fd_cleanup(&start->launch->stage.agent_fd);
		fd_cleanup(&start->launch->stage.search_fd);
	}
	free(start->launch);
	arena_done(&start->arena);
	fd_cleanup(&start->userns_fd);
	fd_cleanup(&start->root_fd);
}

/* ---- the tree ------------------------------------------------------------------------------- */

/* A folder that everybody may walk to and that a runtime has no use for. */
static const char *stage_place(const char *state_root)
{
	static const char *const places[] = { "/mnt", "/media", "/srv", "/opt" };
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (lstat(places[i], &st) == 0 && S_ISDIR(st.st_mode) &&
		    !path_is_beneath(state_root, places[i]))
			return places[i];
	return NULL;
}

/* Folders of the system become trees of ours too: a runtime's read-only is that of the topmost
 * mount alone. */
static int take_system(struct rootfs *rootfs, struct csn_error *err)
{
	for (size_t i = 0; i < rootfs->count; i++) {
		struct rootfs_item *item = &rootfs->items[i];
		int r;

		if (item->kind != ROOTFS_BIND || path_is_beneath(item->at, "dev"))
			continue;
		item->fd = mounts_clone(AT_FDCWD, item->source);
		if (item->fd == -ENOENT && item->is_optional)
			continue;
		r = item->fd < 0 ? item->fd : mounts_set(item->fd, item->attributes);
		if (r < 0)
			return csn_fail(err, r, "mounts", "cannot take a view of %s: %s",
					item->source, strerror(-r));
	}
	return 0;
}

/* Mount points of the agent's files. */
static void add_own(struct rootfs *rootfs)
{
	rootfs_add(rootfs, ROOTFS_FOLDER, &BUNDLE_AGENT[1], "");
	rootfs_add(rootfs, ROOTFS_FILE, &(BUNDLE_AGENT "/caisson-agent")[1], "");
	rootfs_add(rootfs, ROOTFS_FILE, &(BUNDLE_AGENT "/caisson-search")[1], "");
}

/* A runtime gives a tmpfs the mode of what it lies on. */
static int open_scratch(const struct rootfs *rootfs, int root_fd)
{
	for (size_t i = 0; i < rootfs->count; i++)
		if (rootfs->items[i].kind == ROOTFS_SCRATCH && rootfs->items[i].is_ahead &&
		    fchmodat(root_fd, rootfs->items[i].at, 01777, 0) < 0)
			return -errno;
	return 0;
}

static int make_root(struct start *start, struct csn_error *err)
{
	static const struct mounts_option options[] = { { "size", "4m" },
							{ "mode", "0755" },
							{ 0 } };
	struct rootfs *rootfs = &start->launch->rootfs;
	int r;

	add_own(rootfs);
	skeleton_mark(rootfs);
	start->root_fd = mounts_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (start->root_fd < 0)
		return csn_fail(err, start->root_fd, "mounts", "cannot make a tmpfs");
	r = rootfs_fill(rootfs, start->root_fd, err);
	if (r >= 0)
		r = open_scratch(rootfs, start->root_fd);
	if (r >= 0)
		r = mounts_set(start->root_fd,
			       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return r < 0 ? r : bundle_settle(rootfs, err);
}

/* The mount point of a line of mountinfo, its fifth word; the line is cut. */
static const char *mount_point(char *line)
{
	for (int words = 0; line && words < 4; words++) {
		line = strchr(line, ' ');
		line = line ? line + 1 : NULL;
	}
	if (line)
		line[strcspn(line, " \n")] = 0;
	return line ? line : "";
}

/* Is anything mounted in that folder of the host's? A path with a blank is written otherwise there,
 * and is taken for one that has. */
static bool has_mounts(const char *path)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	bool any = !file || strpbrk(path, " \t\\");
	char line[2 * PATH_MAX];

	while (!any && fgets(line, sizeof line, file)) {
		const char *at = mount_point(line);

		any = *at && !str_is(at, path) && path_is_beneath(at, path);
	}
	if (file)
		fclose(file);
	return any;
}

/* docs/decisions/oci.md: crun and nested mounts. */
static int check_nested(const struct rootfs *rootfs, const struct runtime *runtime,
			struct csn_error *err)
{
	for (size_t i = 0; runtime->is_shallow && i < rootfs->count; i++)
		if (rootfs->items[i].fd >= 0 && has_mounts(rootfs->items[i].source))
			return csn_fail(err, -ENOTSUP, "mounts",
					"%s would show what the mounts in %s hide: install runc, "
					"or lend another folder",
					runtime->name, rootfs->items[i].source);
	return 0;
}

static int take_programs(struct start *start, struct csn_error *err)
{
	const uint64_t flags = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	struct stage *stage = &start->launch->stage;
	const int from[] = { start->how->agent_fd, start->how->search_fd };
	int *const to[] = { &stage->agent_fd, &stage->search_fd };

	for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
		int r;

		if (from[i] < 0)
			continue;
		*to[i] = mounts_clone(from[i], "");
		r = *to[i] < 0 ? *to[i] : mounts_set(*to[i], flags);
		if (r < 0)
			return csn_fail(err, r, "agent", "cannot lend the agent's file: %s",
					strerror(-r));
	}
	return 0;
}

static int plan_tree(struct start *start, struct wall *wall, struct csn_error *err)
{
	struct stage *stage = &start->launch->stage;
	struct tree tree;
	int r;

	stage->at = stage_place(start->how->state_root);
	if (!stage->at)
		return csn_fail(err, -ENOENT, "stage",
				"there is no folder to lay a root tree out in: make /mnt");
	stage->hides_v2 = start->runtime->hides_v2;
	start->userns_fd =
		userns_make(wall->kernel_uid, backend_private_root(), &wall->helper, err);
	if (start->userns_fd < 0)
		return start->userns_fd;
	tree = (struct tree){ start->plan, start->how, &start->arena, start->userns_fd };
	r = tree_plan(&tree, start->launch, err);
	if (r >= 0)
		r = take_system(&start->launch->rootfs, err);
	if (r >= 0)
		r = check_nested(&start->launch->rootfs, start->runtime, err);
	if (r >= 0)
		r = make_root(start, err);
	if (r >= 0)
		r = take_programs(start, err);
	stage->root_fd = start->root_fd;
	return r;
}

/* ---- the bundle ----------------------------------------------------------------------------- */

static int write_file(int dir_fd, const char *name, const char *text)
{
	_cleanup_fd_ int fd =
		openat(dir_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static bool has_groups(const struct backend_start *how)
{
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(how->cmd_enter); i++)
		any |= how->cmd_enter[i] >= 0;
	return any;
}

static int write_bundle(struct start *start, const struct wall *wall, struct csn_error *err)
{
	const struct bundle bundle = {
		.plan = start->plan,
		.rootfs = &start->launch->rootfs,
		.stage = start->launch->stage.at,
		.cgroup = start->runtime->makes_group ? start->how->sandbox_id : NULL,
		.uid = wall->kernel_uid,
		.root_uid = backend_private_root(),
		.has_search = start->how->search_fd >= 0,
		.own_processes = start->how->own_processes,
		.data_bytes = start->how->data_bytes,
		.is_held = start->runtime->makes_group && has_groups(start->how),
	};
	json_t *config = bundle_config(&bundle, err);
	char *text = config ? json_dumps(config, JSON_INDENT(1)) : NULL;
	int r = text ? write_file(wall->skeleton, "config.json", text) : -ENOMEM;

	if (!config && err->code != 0)
		return -err->code;
	free(text);
	json_decref(config);
	return r < 0 ? csn_fail(err, r, "bundle", "cannot write the bundle in %s: %s",
				start->folder, strerror(-r))
		     : 0;
}

/* ---- the runtime ---------------------------------------------------------------------------- */

static char **make_argv(struct start *start)
{
	char **argv = arena_array(&start->arena, ARGV_MAX, sizeof *argv);
	const char *const last[] = { "run", "--bundle", start->folder, start->how->sandbox_id };
	size_t count = 0;

	if (!argv)
		return NULL;
	argv[count++] = start->program;
	argv[count++] = (char *)"--root";
	argv[count++] = arena_printf(&start->arena, "%s/state", start->folder);
	for (const char *const *flag = start->runtime->flags; *flag; flag++)
		argv[count++] = (char *)(uintptr_t)*flag;
	for (size_t i = 0; i < ARRAY_SIZE(last); i++)
		argv[count++] = (char *)(uintptr_t)last[i];
	return argv[2] ? argv : NULL;
}

static int start_child(struct start *start, struct wall *wall, struct csn_error *err)
{
	static char *const env[] = { (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	const struct piped_program program = { start->program, make_argv(start), env };
	struct backend_start how = *start->how;
	const struct piped piped = { &program, start->plan, &how, launch_oci_steps };
	int r;

	/* All of it is the commands': a runtime's helpers act for them. */
	memcpy(how.agent_enter, how.cmd_enter, sizeof how.agent_enter);
	how.clone_group = -1;
	how.data_bytes = PLAN_UNLIMITED; /* the container's, not the runtime's */
	r = program.argv ? piped_launch(&piped, start->launch, wall) : -ENOMEM;
	return r < 0 ? csn_fail(err, r, "start", "cannot start %s: %s", start->program,
				strerror(-r))
		     : 0;
}

static int prepare(struct start *start, struct wall *wall, struct csn_error *err)
{
	int r;

	if (!start->runtime || !start->launch ||
	    !leftover_path(start->how->state_root, start->how->sandbox_id, start->folder))
		return csn_fail(err, -ENOENT, "start", "the runtime is gone, or memory is");
	r = leftover_make(start->how->state_root, start->how->sandbox_id, &wall->skeleton, err);
	if (r >= 0 && mkdirat(wall->skeleton, "state", 0700) < 0)
		r = csn_fail(err, -errno, "bundle", "cannot make the runtime's folder: %m");
	if (r >= 0)
		r = plan_tree(start, wall, err);
	return r < 0 ? r : write_bundle(start, wall, err);
}

static int start_wall(enum runtime_wall which, const struct plan *plan,
		      const struct backend_start *how, struct wall *ret_wall, struct csn_error *err)
{
	struct start *start = calloc(1, sizeof *start);
	struct wall wall = WALL_NONE;
	int r;

	if (!start)
		return csn_fail(err, -ENOMEM, "start", "out of memory");
	start->plan = plan;
	start->how = how;
	start->userns_fd = start->root_fd = -1;
	start->runtime = runtime_find(which, start->program);
	start->launch = launch_new();
	if (start->launch)
		start->launch->stage.agent_fd = start->launch->stage.search_fd = -1;
	arena_init(&start->arena, ARENA_QUOTA);
	wall.kernel_uid = backend_private_uid();
	r = prepare(start, &wall, err);
	if (r >= 0)
		r = start_child(start, &wall, err);
	start_done(start);
	free(start);
	if (r < 0)
		wall_done(&wall);
	else
		*ret_wall = wall;
	return r;
}

static int oci_start(const struct plan *plan, const struct backend_start *how,
		     struct wall *ret_wall, struct csn_error *err)
{
	return start_wall(RUNTIME_OCI, plan, how, ret_wall, err);
}

static int gvisor_start(const struct plan *plan, const struct backend_start *how,
			struct wall *ret_wall, struct csn_error *err)
{
	return start_wall(RUNTIME_GVISOR, plan, how, ret_wall, err);
}

static void oci_probe(struct backend_report *ret_report)
{
	runtime_probe(RUNTIME_OCI, ret_report);
}

static void gvisor_probe(struct backend_report *ret_report)
{
	runtime_probe(RUNTIME_GVISOR, ret_report);
}

const struct backend oci_backend = {
	.name = "oci",
	.tier = TIER_BALANCED,
	.runtime = "oci",
	.profile = "command",
	.steps = launch_oci_steps,
	.has_view = true,
	.is_runtimes = true,
	.own_tasks = OCI_TASKS,
	.is_named_only = true,
	.probe = oci_probe,
	.start = oci_start,
	.remove = leftover_remove,
};

const struct backend gvisor_backend = {
	.name = "gvisor",
	.tier = TIER_ASSISTED,
	.runtime = "gvisor",
	.profile = "command-alone-inner",
	.steps = launch_oci_steps,
	.has_view = true,
	.is_runtimes = true,
	.own_tasks = GVISOR_TASKS,
	.probe = gvisor_probe,
	.start = gvisor_start,
	.remove = leftover_remove,
};
