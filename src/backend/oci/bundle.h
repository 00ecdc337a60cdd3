/*
 * bundle - the config.json of an OCI runtime, made from a plan
 *
 * Pure: what the host has was looked at before, by settle(). The mounts are the plan's and no more;
 * every source is a tree that we laid out ourselves (launch/stage.h), so that a runtime never
 * walks a path which somebody else may change. docs/decisions/oci.md
 */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "launch/rootfs.h"
#include "plan/plan.h"

/* Where the agent is inside, and the ids there. */
#define BUNDLE_AGENT "/run/caisson/agent"
#define BUNDLE_HOME "/tmp/home" /* env_make() says HOME */

struct bundle {
	const struct plan *plan;
	const struct rootfs *rootfs; /* settled */
	const char *stage;           /* the host's folder of launch/stage.h */
	const char *cgroup;          /* beneath the runtime's own group; NULL: it stays there */
	uid_t uid;                   /* kernel id behind LAUNCH_UID */
	uid_t root_uid;              /* and behind the runtime's own uid 0 of the user namespace */
	bool has_search;             /* the program of searches is lent as well */
	unsigned own_processes;
	uint64_t data_bytes; /* RLIMIT_DATA, PLAN_UNLIMITED */
	bool is_held;        /* groups of ours around the runtime's hold memory and processes */
};

/*
 * Looks at what is to be covered, frozen or pinned: marks what is there (is_ahead) and whether it
 * is a file, beneath descriptors. Every other item that the root tree itself has, or is a mount
 * point of, was marked before. -ELOOP, -ENOENT with a sentence: a mount has no place.
 */
int bundle_settle(struct rootfs *rootfs, struct csn_error *err);

/* The configuration, a new object; NULL: a path has no place in JSON, which `err` names, or out of
 * memory, without a sentence. */
json_t *bundle_config(const struct bundle *bundle, struct csn_error *err);
