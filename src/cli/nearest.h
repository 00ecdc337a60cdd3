/*
 * nearest - what is allowed where a request is refused
 *
 * A refusal names one flag and the lines that would permit it. Who reads it also wants to know
 * what he gets without asking for more: the same request without the flags that are refused.
 */
#pragma once

#include <jansson.h>

#include "cli/project.h"

struct nearest {
	json_t *refused; /* owned: [{"flag", "reason"}] */
	struct plan plan;
};

/*
 * Decides with as many of the flags as are allowed, tried one after the other. The answer is the
 * caller's (nearest_done) on success. Where nothing is allowed even without a flag, the sentence
 * says why.
 */
int nearest_decide(const struct cli *cli, const struct cli_policy *policy,
		   struct nearest *ret_nearest, struct csn_error *err);
void nearest_done(struct nearest *nearest);
