/*
 * The command wall; see command.h and docs/decisions/command.md.
 *
 * The program runs as the caller, in a session of its own, with a small environment and three
 * streams: frames on the first two, and on the third a file of a fixed size, which takes what it
 * complains of without anybody having to read, and refuses the rest. It ends with its stream; what
 * does not is killed, and what it leaves behind is swept, or killed with its control group.
 */
#include "backend/command/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/channels.h"
#include "base/arena.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "launch/launch.h"
#include "os/sys.h"

extern char **environ;

enum { COMPLAINTS_SIZE = 64 << 10, ARENA_QUOTA = 1 << 20 };

static const char folders[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* What a program of the caller's needs to find his configuration; nothing of it goes inside. */
static const char *const passed[] = { "HOME", "USER", "LOGNAME", "LANG" };

static int make_complaints(void)
{
	_cleanup_fd_ int fd = memfd_create("complaints", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, COMPLAINTS_SIZE) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	return fd_take(&fd);
}

static char **make_env(const char *agent_dir, struct arena *arena)
{
	char **env = arena_array(arena, ARRAY_SIZE(passed) + 2, sizeof *env);
	size_t count = 0;

	if (!env)
		return NULL;
	env[count] = arena_printf(arena, "PATH=%s%s%s", folders, agent_dir ? ":" : "",
				  agent_dir ? agent_dir : "");
	if (!env[count++])
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++) {
		const char *value = program_variable((const char *const *)environ, passed[i]);

		if (!value)
			continue;
		env[count] = arena_printf(arena, "%s=%s", passed[i], value);
		if (!env[count++])
			return NULL;
	}
	return env;
}

/* A path must be absolute: what a relative one means would depend on who calls from where. */
static int find_program(const char *name, const char *path, struct arena *arena,
			const char **ret_program, struct csn_error *err)
{
	char found[PATH_MAX];

	*ret_program = name;
	if (name[0] == '/')
		return 0;
	if (strchr(name, '/'))
		return csn_fail(err, -EINVAL, "program",
				"command.argv begins with %s; expected an absolute path, or a name "
				"without a slash",
				name);
	if (!program_find(name, path, found))
		return csn_fail(err, -ENOENT, "program",
				"command.argv begins with %s, and there is no such program in %s",
				name, path);
	*ret_program = arena_text(arena, found);
	return *ret_program ? 0 : csn_fail(err, -ENOMEM, "program", "out of memory");
}

static int prepare(const struct plan *plan, const struct backend_start *how, struct arena *arena,
		   struct launch *launch, struct csn_error *err)
{
	char **env = make_env(how->agent_dir, arena);

	if (!env)
		return csn_fail(err, -ENOMEM, "program", "out of memory");
	launch->env = env;
	launch->agent_argv = (char *const *)(uintptr_t)plan->command_argv;
	/* The program and all it starts are one tree, with one account. */
	memcpy(launch->agent_enter, how->agent_enter, sizeof launch->agent_enter);
	return find_program(plan->command_argv[0], env[0] + strlen("PATH="), arena,
			    &launch->program, err);
}

static int start_child(const struct plan *plan, const struct backend_start *how,
		       struct launch *launch, struct wall *wall, struct csn_error *err)
{
	struct channels channels = CHANNELS_NONE;
	int r = channels_make(&channels, wall, false);

	if (r >= 0)
		wall->complaints = r = make_complaints();
	if (r >= 0) {
		char *const *argv = launch->agent_argv;

		channels_fill(&channels, plan, how, launch);
		launch->agent_argv = argv;
		launch->stderr_fd = wall->complaints;
		wall->pid = r = sys_clone(0, &wall->pidfd, how->clone_group);
	}
	if (wall->pid == 0) {
		close(wall->life);
		launch_run(launch, launch_command_steps);
	}
	channels_done(&channels);
	return r < 0 ? csn_fail(err, r, "start", "cannot start %s: %s", launch->program,
				strerror(-r))
		     : 0;
}

static int command_start(const struct plan *plan, const struct backend_start *how,
			 struct wall *ret_wall, struct csn_error *err)
{
	_cleanup_arena_ struct arena arena;
	struct launch *launch = launch_new();
	struct wall wall = WALL_NONE;
	int r = launch ? 0 : csn_fail(err, -ENOMEM, "start", "out of memory");

	arena_init(&arena, ARENA_QUOTA);
	wall.kernel_uid = geteuid();
	if (r >= 0)
		r = prepare(plan, how, &arena, launch, err);
	if (r >= 0)
		r = start_child(plan, how, launch, &wall, err);
	free(launch);
	if (r < 0)
		wall_done(&wall);
	else
		*ret_wall = wall;
	return r;
}

static int command_declare(const struct plan *plan, struct backend_report *ret_report,
			   struct csn_error *err)
{
	if (!plan->command_argv[0])
		return csn_fail(err, -ENOTSUP, "backend",
				"TierUnavailable: the command wall is a program that a trusted "
				"policy file names: command: {argv: [ssh, HOST, caisson-agent, "
				"--stdio], enforces: [...]}");
	*ret_report = (struct backend_report){ .is_usable = true };
	/* Clocks and caps are ours, whoever answers. */
	ret_report->enforces =
		plan_features(plan->command_enforces) | FEATURE_TIME | FEATURE_OUTPUT;
	ret_report->enforces &= ~(uint64_t)FEATURE_FS_COW;
	snprintf(ret_report->weaker, sizeof ret_report->weaker,
		 "what it enforces is its author's word");
	return 0;
}

static void command_probe(struct backend_report *ret_report)
{
	*ret_report = (struct backend_report){ 0 };
	snprintf(ret_report->cause, sizeof ret_report->cause,
		 "it is a program of your own, and what it enforces is your word");
	snprintf(ret_report->fix, sizeof ret_report->fix,
		 "Write into a trusted policy file: backend: command and command: {argv: [...], "
		 "enforces: [...]}");
}

const struct backend command_backend = {
	.name = "command",
	.tier = TIER_STRICT,
	.runtime = "command",
	.profile = "command",
	.steps = launch_command_steps,
	.has_view = true,
	.probe = command_probe,
	.declare = command_declare,
	.declared_in = "command",
	.start = command_start,
};
