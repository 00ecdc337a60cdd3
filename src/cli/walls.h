/*
 * walls - names of walls and tiers on the command line, and which of them can be had here
 */
#pragma once

#include "base/error.h"
#include "cli/cli.h"

/* Takes the wall that CAISSON_BACKEND names, for a command that starts a sandbox and has no
 * --backend. An empty variable names none. */
void walls_take_variable(struct cli *cli);

/*
 * Are --tier and --backend names of ours? -EINVAL with the nearest one, and what there is: the
 * walls are asked only for that sentence.
 */
int walls_check_names(const struct cli_options *options, struct csn_error *err);

/* The same, and is --backend a wall of this build? -ENOTSUP for one that is only planned. */
int walls_check_built(const struct cli_options *options, struct csn_error *err);
