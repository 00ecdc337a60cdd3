/*
 * The sentence in an exec's account: why nothing was started, or which limit stopped it
 *
 * The host's file of a program that could not be executed is looked at when it failed (see
 * exec_failure.c), so what the call named is kept until then.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/errno_name.h"
#include "base/path.h"
#include "base/str.h"
#include "monitor/stay_private.h"

/* ---- what the call named -------------------------------------------------------------------- */

/* A copy, NULL for none. What no path or list can be is not kept. */
static char *copy_of(const struct term *text)
{
	return text && text->bytes.size < PATH_MAX
		       ? strndup((const char *)text->bytes.data, text->bytes.size)
		       : NULL;
}

static const struct term *variable(const struct term *env, const char *name)
{
	for (size_t i = 0; env && i < env->count / 2; i++) {
		const struct term *key = &env->items[2 * i];

		if (key->bytes.size == strlen(name) &&
		    memcmp(key->bytes.data, name, key->bytes.size) == 0)
			return &env->items[2 * i + 1];
	}
	return NULL;
}

void stay_text_keep(struct stay_exec *exec, const struct term *map)
{
	const struct term *argv = term_get(map, "argv");

	exec->program = copy_of(argv && argv->count ? &argv->items[0] : NULL);
	exec->cwd = copy_of(term_get(map, "cwd"));
	exec->path = copy_of(variable(term_get(map, "env"), "PATH"));
}

void stay_text_done(struct stay_exec *exec)
{
	free(exec->program);
	free(exec->cwd);
	free(exec->path);
}

/* ---- nothing was started -------------------------------------------------------------------- */

static void say_cwd(const struct stay_exec *exec, const char *cwd, int error, struct csn_error *err)
{
	const char *name = exec->cwd ? exec->cwd : cwd;

	if (error == ENOENT)
		csn_fail(err, -ENOENT, "cwd",
			 "there is no folder %.200s inside to start in; a relative one begins in "
			 "the workspace, %.150s",
			 name, exec->stay->run.plan->workspace.at);
	else
		csn_fail(err, error ? -error : -EIO, "cwd", "%.200s cannot be started in: %s", name,
			 error == ENOTDIR ? "it is no folder" : strerror(error));
}

static void copy_word(const struct term *term, char *ret_text, size_t size)
{
	snprintf(ret_text, size, "%.*s", term ? (int)term->bytes.size : 0,
		 term ? (const char *)term->bytes.data : "");
}

static void say_failure(const struct stay_exec *exec, const struct term *map, struct csn_error *err)
{
	const struct plan *plan = exec->stay->run.plan;
	const struct term *stage = term_get(map, "stage");
	char name[32], at[32], cwd[PATH_MAX];
	int error;

	copy_word(stage, at, sizeof at);
	copy_word(term_get(map, "error"), name, sizeof name);
	error = errno_number(name);
	if (path_join(plan->workspace.at, exec->cwd ? exec->cwd : ".", cwd, sizeof cwd) < 0)
		snprintf(cwd, sizeof cwd, "%s", plan->workspace.at);
	if (str_is(at, "cwd"))
		say_cwd(exec, cwd, error, err);
	else if (!str_is(at, "exec"))
		csn_fail(err, error ? -error : -EIO, "exec", "the command's %s step failed: %s", at,
			 name);
	else
		attempt_say_failure(&(struct attempt){ .plan = plan,
						       .cwd = cwd,
						       .program = exec->program,
						       .path = exec->path,
						       .stays = true },
				    error, err);
}

/* ---- a limit stopped it --------------------------------------------------------------------- */

/* By its name in a result; 0 for none. */
static uint64_t limit_of(const struct stay_exec *exec, const char *name)
{
	const struct plan_limits *limits = &exec->stay->run.plan->limits;
	const struct {
		const char *name;
		uint64_t value;
	} values[] = {
		{ "command_ms", exec->limit_ms },
		{ "budget_ms", limits->budget_ms },
		{ "output_bytes", limits->output_bytes },
		{ "mem_bytes", limits->mem_bytes },
		{ "processes", limits->processes },
		{ "scratch_bytes", limits->scratch_bytes },
	};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		if (str_is(values[i].name, name) && values[i].value != PLAN_UNLIMITED)
			return values[i].value;
	return 0;
}

static void say_stop(const struct stay_exec *exec, struct csn_error *err)
{
	const struct ending_stop *found =
		ending_stop_find(ending_name(exec->ending), exec->clock ? exec->clock : "");
	struct ending_stop stop;
	uint64_t limit;

	if (!found)
		return;
	stop = *found;
	limit = limit_of(exec, stop.limit);
	if (*stop.limit && limit == 0)
		return;
	/* A clock of the call's own, as the rule of its fact says. */
	if (str_is(stop.limit, "command_ms") &&
	    (exec->has_tty || limit < exec->stay->run.plan->limits.command_ms))
		stop.after = " (timeout)";
	ending_stop_say(&stop, limit, err->text, sizeof err->text);
}

void stay_text(const struct stay_exec *exec, const struct term *map, struct csn_error *ret_text)
{
	*ret_text = (struct csn_error){ 0 };
	if (exec->ending == END_START_FAILED && term_get(map, "error"))
		say_failure(exec, map, ret_text);
	else
		say_stop(exec, ret_text);
}
