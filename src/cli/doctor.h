/*
 * doctor - what this machine lets us build walls from
 *
 * Facts are gathered into one struct by asking the kernel, each by trying or by reading
 * the switch that decides; printing them is another file's work.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "backend/backend.h"
#include "cli/cli.h"
#include "os/cgroup.h"

enum { DOCTOR_MAX_GROUPS = 64, DOCTOR_MAX_WALLS = 32 };

struct doctor_facts {
	char kernel[128]; /* release */
	char machine[64];
	uid_t uid;
	int landlock_abi; /* 0: none */
	struct cgroup_probe cgroup;
	bool has_user_namespace; /* tried: made one and used a capability in it */
	char userns_cause[256];  /* why not, "" if it has */
	char userns_fix[256];
	int apparmor_restricts;          /* 1 yes, 0 no, -1 the kernel has no such switch */
	int yama_scope;                  /* kernel.yama.ptrace_scope, -1 without Yama */
	gid_t groups[DOCTOR_MAX_GROUPS]; /* supplementary groups that a sandbox of ours keeps */
	size_t group_count;
	uint64_t missing_capabilities; /* of root: bits of struct doctor_capability */
};

/* Capabilities that a wall started by root makes use of. */
struct doctor_capability {
	int number;
	const char *name;
	const char *loss; /* what is lost without it */
};

extern const struct doctor_capability doctor_capabilities[];
extern const size_t doctor_capability_count;

/*
 * Tier by tier: which walls `any` takes for it here, or why none and how to get one. `reports` are
 * those of backends[], in its order (doctor_tiers.c).
 */
void doctor_print_tiers(const struct cli *cli, const struct backend_report *reports);
/* The same as a new list of objects. */
json_t *doctor_tiers_json(const struct backend_report *reports);

/* Fills everything; never fails: what cannot be asked is said to be missing. */
void doctor_look(struct doctor_facts *ret_facts);
