/*
 * The widest part of a request that is allowed
 *
 * Decisions are pure and cheap, so this asks instead of knowing: begin with a request that asks
 * for nothing, add flag after flag, and leave out each that turns the answer into a refusal.
 */
#include "cli/nearest.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/out.h"

enum { FLAG_MAX = 64 << 10 };

/* Demands first, then what a later flag may depend on. */
static const struct part {
	const char *flag;
	size_t at; /* in struct cli_options */
	bool is_list;
} parts[] = {
	{ "--tag", offsetof(struct cli_options, tags), true },
	{ "--tier", offsetof(struct cli_options, tier), false },
	{ "--backend", offsetof(struct cli_options, backend), false },
	{ "--workspace", offsetof(struct cli_options, workspace), false },
	{ "--workspace mode", offsetof(struct cli_options, workspace_mode), false },
	{ "--at", offsetof(struct cli_options, workspace_at), false },
	{ "--network", offsetof(struct cli_options, network), false },
	{ "--allow", offsetof(struct cli_options, allow), true },
	{ "--limit", offsetof(struct cli_options, limits), true },
	{ "--env", offsetof(struct cli_options, env), true },
	{ "--mount", offsetof(struct cli_options, mounts), true },
};

struct search {
	const struct cli_policy *policy;
	char *const *argv;
	struct cli_options kept; /* owns its lists */
	json_t *refused;
};

static bool is_allowed(struct search *search, struct csn_error *err)
{
	struct plan plan;

	if (cli_decide(&search->kept, search->policy, search->argv, &plan, err) < 0)
		return false;
	plan_done(&plan);
	return true;
}

/* Notes what is left out. A variable's value is nobody's business: only its name is said. */
static void refuse(struct search *search, const char *flag, const char *value,
		   const struct csn_error *err)
{
	size_t length = str_is(flag, "--env") ? strcspn(value, "=") : strlen(value);
	_cleanup_buf_ struct buf said, reason;

	buf_init(&said, FLAG_MAX);
	buf_init(&reason, FLAG_MAX);
	if (buf_printf(&said, "%s ", flag) < 0 || escape_add(&said, value, length, false) < 0 ||
	    escape_add(&reason, err->text, strlen(err->text), true) < 0)
		return;
	json_array_append_new(search->refused, json_pack("{s:s?, s:s?}", "flag", buf_text(&said),
							 "reason", buf_text(&reason)));
}

static void try_text(struct search *search, const struct part *part, const char *value)
{
	const char **slot = (const char **)((char *)&search->kept + part->at);
	struct csn_error err = { 0 };

	if (!value)
		return;
	*slot = value;
	if (is_allowed(search, &err))
		return;
	*slot = NULL;
	if (str_is(part->flag, "--backend") && search->kept.backend_from)
		refuse(search, search->kept.backend_from, value, &err);
	else
		refuse(search, part->flag, value, &err);
}

static int try_list(struct search *search, const struct part *part, const struct cli_list *list)
{
	struct cli_list *kept = (struct cli_list *)((char *)&search->kept + part->at);
	struct csn_error err = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->count; i++) {
		r = cli_list_add(kept, list->items[i]);
		if (r < 0 || is_allowed(search, &err))
			continue;
		kept->items[--kept->count] = NULL;
		refuse(search, part->flag, list->items[i], &err);
	}
	return r;
}

static int try_all(struct search *search, const struct cli_options *options)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++) {
		const void *value = (const char *)options + parts[i].at;

		if (parts[i].is_list)
			r = try_list(search, &parts[i], value);
		else
			try_text(search, &parts[i], *(const char *const *)value);
	}
	return r;
}

/* Asks for nothing, or for the one thing without which there may be no place to stand. */
static int begin(struct search *search, const struct cli_options *options, struct csn_error *err)
{
	if (is_allowed(search, err))
		return 0;
	search->kept.workspace = options->workspace;
	return options->workspace && is_allowed(search, NULL) ? 0 : -EPERM;
}

int nearest_decide(const struct cli *cli, const struct cli_policy *policy,
		   struct nearest *ret_nearest, struct csn_error *err)
{
	struct nearest nearest = { .refused = json_array() };
	struct search search = { policy, cli->args,
				 .kept = { .backend_from = cli->options.backend_from },
				 .refused = nearest.refused };
	int r = begin(&search, &cli->options, err);

	if (r == 0 && try_all(&search, &cli->options) < 0)
		r = csn_fail(err, -ENOMEM, "policy", "out of memory");
	if (r == 0)
		r = cli_decide(&search.kept, policy, cli->args, &nearest.plan, err);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].is_list)
			free(((struct cli_list *)((char *)&search.kept + parts[i].at))->items);
	if (r < 0)
		json_decref(nearest.refused);
	else
		*ret_nearest = nearest;
	return r;
}

void nearest_done(struct nearest *nearest)
{
	plan_done(&nearest->plan);
	json_decref(nearest->refused);
}
