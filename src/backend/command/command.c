/*
 * The command wall; see command.h and docs/decisions/command.md.
 *
 * The program runs as the caller, and is started as any that speaks frames on its streams
 * (backend/piped.h). It ends with its stream; what does not is killed, and what it leaves behind is
 * swept, or killed with its control group.
 */
#include "backend/command/command.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "backend/piped.h"
#include "base/arena.h"
#include "base/program.h"
#include "launch/launch.h"

enum { ARENA_QUOTA = 1 << 20 };

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

static int command_start(const struct plan *plan, const struct backend_start *how,
			 struct wall *ret_wall, struct csn_error *err)
{
	_cleanup_arena_ struct arena arena;
	struct piped_program program = { .argv = (char *const *)(uintptr_t)plan->command_argv };
	char **env;
	int r;

	arena_init(&arena, ARENA_QUOTA);
	env = piped_env(how->agent_dir, NULL, &arena);
	if (!env)
		return csn_fail(err, -ENOMEM, "program", "out of memory");
	program.env = env;
	r = find_program(plan->command_argv[0], piped_path(env), &arena, &program.path, err);
	return r < 0 ? r : piped_start(&program, plan, how, ret_wall, err);
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
	.is_program = true,
	.means = "declared",
	.probe = command_probe,
	.declare = command_declare,
	.declared_in = "command",
	.start = command_start,
};
