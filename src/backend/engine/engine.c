/*
 * Starting a container; see engine.h. Runs in the monitor with the caller's rights. What the
 * engine is asked for was decided before: image.h finds or makes the root, binds.h what is shown of
 * the host, argv.h writes it down, piped.h starts the client.
 *
 * Identity: never kernel uid 0. An engine without ids of its own runs the commands as the caller;
 * for root as one private id, which the root's image names. Where the engine maps ids, 1000.
 */
#include "backend/engine/engine.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/engine/argv.h"
#include "backend/engine/ask.h"
#include "backend/engine/image.h"
#include "backend/engine/keep.h"
#include "backend/process/tree.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "launch/launch.h"

/* Root's sandboxes in containers: one id, beneath those of the process wall's. The image's
 * /etc/passwd names it. */
enum { ARENA_QUOTA = 8 << 20, ENGINE_UID = 1879048191, REMOVE_MS = 20000 };

struct start {
	struct arena arena;
	const struct engine *engine;
	const struct plan *plan;
	const struct backend_start *how;
	struct engine_facts facts;
	struct launch *launch; /* for its root tree */
	struct image image;
	struct binds binds;
	struct bind own[4]; /* files of /etc */
	size_t own_count;
	char keep[PATH_MAX];
	uid_t uid, kernel_uid;
	gid_t gid;
};

static int take_facts(struct start *start, struct csn_error *err)
{
	char cause[256], fix[256];
	const char *name = start->engine->name;
	int r = engine_facts(start->engine, false, &start->facts, cause, fix);

	if (r < 0)
		return csn_fail(err, r, "engine", "%s: %s. %s", name, cause, fix);
	if (start->plan->rootless_required && !start->facts.is_rootless)
		return csn_fail(err, -ENOTSUP, "engine",
				"TierUnavailable: %s runs as root here, and the policy says "
				"container.rootless: required. Run it rootless, or take the "
				"process wall",
				name);
	return 0;
}

static void take_ids(struct start *start)
{
	bool is_mapped = start->facts.is_rootless || start->facts.has_userns;
	bool is_root = geteuid() == 0;

	start->kernel_uid = is_root ? ENGINE_UID : geteuid();
	start->uid = is_mapped ? LAUNCH_UID : start->kernel_uid;
	start->gid = is_mapped ? LAUNCH_GID : is_root ? ENGINE_UID : getegid();
	assert(start->uid != 0);
}

static int take_image(struct start *start, struct csn_error *err)
{
	const struct rootfs *rootfs = &start->launch->rootfs;
	struct image_user user = { start->uid, start->gid };

	if (start->plan->image)
		return image_named(start->engine, start->plan->image, &start->arena, &start->image,
				   err);
	return image_skeleton(start->engine, rootfs, user, &start->image, err);
}

/* An engine writes these three files itself, from the host's: with its resolvers, for one. Who is
 * lent its network needs two of them as they are. */
static int take_own_files(struct start *start, struct csn_error *err)
{
	static const char *const files[] = { "etc/hostname", "etc/hosts", "etc/resolv.conf" };
	const struct rootfs *rootfs = &start->launch->rootfs;
	size_t count = start->plan->network == NETWORK_ENGINE ? 1 : ARRAY_SIZE(files);

	for (size_t i = 0; i < rootfs->count; i++)
		for (size_t j = 0; j < count; j++) {
			const struct rootfs_item *item = &rootfs->items[i];
			const char *name = files[j] + strlen("etc/");
			int r = 0;

			if (item->kind != ROOTFS_FILE || !str_is(item->at, files[j]))
				continue;
			r = keep_text(name, item->source);
			if (r < 0)
				return csn_fail(err, r, "engine", "cannot write %s/%s: %s",
						start->keep, name, strerror(-r));
			start->own[start->own_count++] = (struct bind){
				arena_printf(&start->arena, "%s/%s", start->keep, name),
				arena_printf(&start->arena, "/%s", files[j]), false
			};
		}
	return 0;
}

static int take_view(struct start *start, struct csn_error *err)
{
	struct backend_start how = *start->how;
	struct tree tree = { start->plan, &how, &start->arena, -1 };
	struct binds_source source = { &start->launch->rootfs, start->keep,
				       start->plan->image != NULL };
	int r;

	if (start->plan->image)
		how.toolchains = NULL; /* they are the host's, and the image's libraries are not */
	r = tree_plan(&tree, start->launch, err);
	if (r >= 0)
		r = keep_prepare(start->keep, sizeof start->keep, err);
	if (r >= 0)
		r = take_own_files(start, err);
	if (r >= 0)
		r = take_image(start, err);
	if (r >= 0)
		r = binds_make(&source, &start->arena, &start->binds, err);
	return r;
}

/* Beside the agent, as installed and as in the build folder. None: no glob, no grep. */
static const char *find_search(struct start *start)
{
	static const char *const places[] = { "caisson-search", "../search/caisson-search" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		const char *path =
			arena_printf(&start->arena, "%s/%s", start->how->agent_dir, places[i]);

		if (path && program_is(path))
			return path;
	}
	return NULL;
}

static int start_client(struct start *start, struct wall *wall, struct csn_error *err)
{
	struct backend_start how = *start->how;
	struct engine_box box = { .engine = start->engine,
				  .facts = &start->facts,
				  .plan = start->plan,
				  .how = &how,
				  .binds = &start->binds,
				  .own = &(struct binds){ start->own, start->own_count },
				  .image = start->image.id,
				  .volumes = start->engine->is_podman ? NULL : start->image.volumes,
				  .keep = start->keep,
				  .uid = start->uid,
				  .gid = start->gid };
	struct piped_program client;
	size_t count;
	int r = engine_client(start->engine, &start->arena, ENGINE_ARGS + start->binds.count,
			      &client, &count);

	if (!how.agent_dir)
		return csn_fail(err, -ENOENT, "engine", "cannot find the folder of caisson-agent");
	box.agent = arena_printf(&start->arena, "%s/caisson-agent", how.agent_dir);
	if (how.search_fd >= 0)
		box.search = find_search(start);
	if (r >= 0)
		r = engine_argv(&box, &start->arena, &client, count);
	if (r < 0)
		return csn_fail(err, r, "engine", "cannot write the command line: %s",
				strerror(-r));
	how.data_bytes = PLAN_UNLIMITED; /* the client's memory is not the sandbox's */
	return piped_start(&client, start->plan, &how, wall, err);
}

static void describe(const struct start *start, struct wall *wall)
{
	struct wall_container *container = &wall->container;

	wall->kernel_uid = start->kernel_uid;
	wall->made_ms = start->image.made_ms;
	container->is_rootless = start->facts.is_rootless;
	snprintf(container->version, sizeof container->version, "%s", start->facts.version);
	snprintf(container->image, sizeof container->image, "%s", start->image.name);
	snprintf(container->digest, sizeof container->digest, "%s", start->image.id);
}

static int engine_start(const struct engine *engine, const struct plan *plan,
			const struct backend_start *how, struct wall *ret_wall,
			struct csn_error *err)
{
	struct start start = { .engine = engine, .plan = plan, .how = how };
	struct wall wall = WALL_NONE;
	int lock = -1, r;

	arena_init(&start.arena, ARENA_QUOTA);
	start.launch = launch_new();
	r = start.launch ? 0 : csn_fail(err, -ENOMEM, "start", "out of memory");
	if (r >= 0)
		r = take_facts(&start, err);
	if (r >= 0) {
		take_ids(&start);
		r = take_view(&start, err);
	}
	if (r >= 0)
		lock = r = keep_lock(how->sandbox_id);
	if (lock >= 0)
		r = start_client(&start, &wall, err);
	if (r >= 0) {
		wall.skeleton = fd_take(&lock);
		describe(&start, &wall);
		*ret_wall = wall;
	}
	fd_cleanup(&lock);
	free(start.launch);
	arena_done(&start.arena);
	return r;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* `rm --force`: its client had to be killed, or nobody was there to do it. */
static int engine_remove(const struct engine *engine, const char *container)
{
	char *const words[] = { (char *)"rm", (char *)"--force", (char *)"--volumes",
				(char *)(uintptr_t)container, NULL };
	_cleanup_arena_ struct arena arena;
	struct piped_program client;
	struct ask ask = { .timeout_ms = REMOVE_MS };
	size_t count;

	arena_init(&arena, 1 << 20);
	if (engine_client(engine, &arena, ARRAY_SIZE(words), &client, &count) < 0)
		return -ENOENT;
	memcpy((char **)(uintptr_t)client.argv + count, words, sizeof words);
	ask.path = client.path;
	ask.argv = client.argv;
	ask.env = client.env;
	return ask_run(&ask, NULL, NULL);
}

static void take_down(const struct engine *engine, const char *id)
{
	char name[128];

	image_forget(engine); /* somebody may have removed it */
	snprintf(name, sizeof name, ENGINE_PREFIX "%s", id);
	engine_remove(engine, name);
}

/* ---- what it can do -------------------------------------------------------------------------- */

static const char *why_unheld(const struct engine_facts *facts)
{
	if (!facts->is_rootless)
		return "its machine has no such controllers";
	return facts->has_groups_v1 ? "rootless, and control groups v1 are root's alone"
				    : "rootless, and no controllers are delegated to its user";
}

static void engine_probe(const struct engine *engine, struct backend_report *ret_report)
{
	struct engine_facts facts;
	uint64_t held = 0;

	*ret_report = (struct backend_report){ 0 };
	if (engine_facts(engine, false, &facts, ret_report->cause, ret_report->fix) < 0)
		return;
	held |= facts.holds_memory ? FEATURE_MEMORY : 0;
	held |= facts.holds_processes ? FEATURE_PROCESSES : 0;
	held |= facts.holds_cpu ? FEATURE_CPU : 0;
	ret_report->is_usable = true;
	ret_report->enforces = held | FEATURE_FS_VIEW | FEATURE_FS_WRITE | FEATURE_FS_HIDE |
			       FEATURE_FS_PROTECT | FEATURE_NET_NONE | FEATURE_PIDS |
			       FEATURE_SYSCALLS | FEATURE_PRIVILEGE | FEATURE_IDENTITY |
			       FEATURE_TIME | FEATURE_OUTPUT | FEATURE_SCRATCH;
	if (!facts.holds_memory || !facts.holds_processes || !facts.holds_cpu)
		snprintf(ret_report->unheld, sizeof ret_report->unheld, "%s", why_unheld(&facts));
	snprintf(ret_report->weaker, sizeof ret_report->weaker, "%s%s%s%s%s",
		 facts.is_rootless ? "" : "its engine runs as root; ",
		 held & FEATURE_MEMORY ? "" : "it holds no memory limit on this machine; ",
		 held & FEATURE_PROCESSES ? "" : "it holds no process limit on this machine; ",
		 held & FEATURE_CPU ? "" : "it holds no CPU limit on this machine; ",
		 "what its commands try is not seen");
}

/* ---- the two walls --------------------------------------------------------------------------- */

static const char untold[] = "an engine's container shows its commands' calls to nobody outside";

static void podman_probe(struct backend_report *ret_report)
{
	engine_probe(&engine_podman, ret_report);
}

static int podman_start(const struct plan *plan, const struct backend_start *how,
			struct wall *ret_wall, struct csn_error *err)
{
	return engine_start(&engine_podman, plan, how, ret_wall, err);
}

static void podman_take_down(const char *id)
{
	take_down(&engine_podman, id);
}

const struct backend podman_backend = {
	.name = "podman",
	.tier = TIER_BALANCED,
	.runtime = "podman",
	.profile = "command",
	.steps = launch_command_steps,
	.has_view = true,
	.is_program = true,
	.holds_limits = true,
	.runs_images = true,
	.has_network = true,
	.means = "engine",
	.untold = untold,
	.probe = podman_probe,
	.start = podman_start,
	.take_down = podman_take_down,
};

static void docker_probe(struct backend_report *ret_report)
{
	engine_probe(&engine_docker, ret_report);
}

static int docker_start(const struct plan *plan, const struct backend_start *how,
			struct wall *ret_wall, struct csn_error *err)
{
	return engine_start(&engine_docker, plan, how, ret_wall, err);
}

static void docker_take_down(const char *id)
{
	take_down(&engine_docker, id);
}

const struct backend docker_backend = {
	.name = "docker",
	.tier = TIER_BALANCED,
	.runtime = "docker",
	.profile = "command",
	.steps = launch_command_steps,
	.has_view = true,
	.is_program = true,
	.holds_limits = true,
	.runs_images = true,
	.has_network = true,
	.means = "engine",
	.untold = untold,
	.probe = docker_probe,
	.start = docker_start,
	.take_down = docker_take_down,
};
