/* From flags to the gate of monitor/approval.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "base/path.h"
#include "base/str.h"
#include "cli/approve.h"
#include "cli/out.h"

/* In every mode, also --quiet: who waits has to know for what. */
static void say_waiting(const struct approval *approval, const char *how, void *data)
{
	const struct cli_options *options = data;

	fprintf(stderr,
		"caisson: waits up to %s for a person's yes to %s: ", options->wait_approval,
		approval->id);
	out_text(stderr, how);
	fputc('\n', stderr);
}

static int parse_wait(const char *text, uint64_t *ret_ms, struct csn_error *err)
{
	*ret_ms = 0;
	if (!text)
		return 0;
	if (str_parse_duration(text, ret_ms) < 0 || *ret_ms == 0 || *ret_ms > APPROVAL_MAX_MS)
		return csn_fail(err, -EINVAL, "usage",
				"--wait-approval takes a time as 90s, 10m or 2h, at most 24h");
	return 0;
}

/* The record root that a person's `caisson approve` would look into by itself. */
static bool is_elsewhere(const char *root)
{
	char usual[PATH_MAX], normal[PATH_MAX];

	return project_run_root(NULL, usual, sizeof usual, NULL) < 0 ||
	       path_normalize(usual, normal, sizeof normal) < 0 ||
	       (!str_is(root, usual) && !str_is(root, normal));
}

int approve_start(const struct cli_options *options, const struct cli_policy *policy,
		  struct run_setup *setup, struct approval *approval, struct csn_error *err)
{
	struct approval_wish wish = { .root = policy->project.run_root,
				      .id = options->approval,
				      .waits = say_waiting,
				      .data = (void *)options };
	int r = parse_wait(options->wait_approval, &wish.wait_ms, err);

	if (r < 0 || !setup->plan->needs_approval)
		return r;
	wish.is_elsewhere = is_elsewhere(wish.root);
	return approval_gate(setup, &wish, approval, err);
}
