/*
 * nearest - what is allowed where a request is refused
 *
 * A refusal names one flag and the lines that would permit it. Who reads it also wants to know
 * what he gets without asking for more: the same request without the flags that are refused.
 */
#pragma once

#include <jansson.h>

#include "cli/project.h"

/*
 * Decides with as many of the flags as are allowed, tried one after the other. Adds
 * {"flag", "reason"} for each of the others to `refused` (borrowed) and gives the plan, the
 * caller's on success. An error where even without any flag nothing is allowed.
 */
int nearest_decide(const struct cli_options *options, const struct cli_policy *policy,
		   char *const *argv, json_t *refused, struct plan *ret_plan);
