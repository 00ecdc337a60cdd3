/*
 * lost - runs without a result, as diff, commit and fork need them
 *
 * A monitor that was killed wrote no result, and what its copy-on-write workspace holds may be
 * the only copy of somebody's work. The facts that guard a commit stand in state.json, which is
 * written at the start.
 */
#pragma once

#include "base/error.h"
#include "cli/runs.h"

/*
 * Fills `run->result` with what state.json knows of a lost run, in the result's own keys: mounts,
 * protect, hide, policy. Its termination is "lost". -ENOENT with a sentence for a run that lives,
 * or that was lost before it wrote this down.
 */
int lost_read(struct run *run, struct csn_error *err);

/* The sentence of a run that has no result; -ENOENT. */
int lost_explain(const struct run *run, struct csn_error *err);

/* state.json; a new reference, NULL: there is none. */
json_t *lost_state(const struct run *run);
