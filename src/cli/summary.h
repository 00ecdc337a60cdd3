/*
 * summary - what a person is told on stderr after a run
 */
#pragma once

#include "cli/cli.h"
#include "monitor/run.h"

/*
 * Our own error always; what was denied or limited when stderr is a terminal or with -v; nothing
 * with -q. Texts from inside are escaped.
 */
void summary_print(const struct cli *cli, const struct run_outcome *outcome);
