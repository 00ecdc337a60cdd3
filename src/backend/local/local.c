/* No wall; see local.h. The same agent and the same frames, so every verb behaves the same. */
#include "backend/local/local.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/channels.h"
#include "base/fd.h"
#include "os/sys.h"

static int local_start(const struct plan *plan, const struct backend_start *how,
		       struct wall *ret_wall, struct csn_error *err)
{
	struct channels channels = CHANNELS_NONE;
	struct launch *launch = launch_new();
	struct wall wall = WALL_NONE;
	int r = launch ? channels_make(&channels, &wall, false) : -ENOMEM;

	if (r >= 0) {
		channels_fill(&channels, plan, how, launch);
		wall.kernel_uid = geteuid();
		wall.pid = sys_clone(0, &wall.pidfd, how->clone_group);
		r = wall.pid < 0 ? wall.pid : 0;
	}
	if (wall.pid == 0) {
		close(wall.life);
		launch_run(launch, launch_local_steps);
	}
	channels_done(&channels);
	free(launch);
	if (r < 0) {
		wall_done(&wall);
		return csn_fail(err, r, "start", "cannot start the command");
	}
	*ret_wall = wall;
	return 0;
}

static void local_probe(struct backend_report *ret_report)
{
	*ret_report = (struct backend_report){ .is_usable = true,
					       .enforces = FEATURE_TIME | FEATURE_OUTPUT };
	snprintf(ret_report->weaker, sizeof ret_report->weaker,
		 "no wall at all: the command has every right of the caller");
}

const struct backend local_backend = {
	.name = "local",
	.tier = TIER_LOCAL,
	.runtime = "local",
	.profile = "none",
	.steps = launch_local_steps,
	.probe = local_probe,
	.start = local_start,
};
