/*
 * The caller's own wall; see host.h. It ends with its stream, and the stream with it: there is no
 * process to wait for, to kill or to measure, so `pid` and `pidfd` stay -1.
 */
#include "backend/host/host.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static int host_start(const struct plan *plan, const struct backend_start *how,
		      struct wall *ret_wall, struct csn_error *err)
{
	(void)plan;
	if (how->wall_fd <= 0)
		return csn_fail(err, -EBADF, "start", "nobody answers as the wall");
	*ret_wall = WALL_NONE;
	ret_wall->stream = how->wall_fd;
	ret_wall->kernel_uid = geteuid();
	return 0;
}

static int host_declare(const struct plan *plan, struct backend_report *ret_report,
			struct csn_error *err)
{
	(void)err;
	*ret_report = (struct backend_report){ .is_usable = true };
	/* Clocks and caps are ours, whoever answers; a layer of theirs we could not find. */
	ret_report->enforces =
		plan_features(plan->command_enforces) | FEATURE_TIME | FEATURE_OUTPUT;
	ret_report->enforces &= ~(uint64_t)FEATURE_FS_COW;
	snprintf(ret_report->weaker, sizeof ret_report->weaker,
		 "what it enforces is the word of the program that opened the sandbox");
	return 0;
}

static void host_probe(struct backend_report *ret_report)
{
	*ret_report = (struct backend_report){ 0 };
}

const struct backend host_backend = {
	.name = "host",
	.tier = TIER_AUTO,
	.runtime = "host",
	.profile = "none",
	.has_view = true,
	.probe = host_probe,
	.declare = host_declare,
	.declared_in = "csn_wall",
	.is_callers = true,
	.means = "declared",
	.start = host_start,
};
