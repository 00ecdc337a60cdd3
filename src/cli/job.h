/*
 * job - the job commands' common ground: finding a job, and deciding how it is run
 */
#pragma once

#include <limits.h>

#include <jansson.h>

#include "audit/audit.h"
#include "cli/project.h"
#include "jobs/job.h"

/* A run root and a job in it. */
struct job_place {
	int root_fd; /* owned; -1: none */
	char root[PATH_MAX];
	char id[RUN_ID_SIZE];
};

#define JOB_PLACE_NONE ((struct job_place){ .root_fd = -1 })
#define _cleanup_job_place_ __attribute__((cleanup(job_place_done)))

/* Opens the run root and finds the job that `name`, its id or the end of one, means: -ENOENT, or
 * -ENOTUNIQ with the candidates in `err`. NULL: no job is looked for. */
int job_place_open(const struct cli *cli, const char *name, struct job_place *ret_place,
		   struct csn_error *err);
void job_place_done(struct job_place *place);

/* Opens a job's folder to read from it: -EPERM with a sentence where it, its logs or its chain are
 * somebody else's or others may write there (record_check_job()). A descriptor of the caller's. */
int job_open_own(const struct job_place *place, const char *id, struct csn_error *err);

/* Calls `each` with the id of every job of the run root. */
int job_each(int root_fd, int (*each)(const char *id, void *data), void *data);

/* What is decided of a launch. */
struct job_decision {
	struct cli_policy policy;
	struct plan plan;
	struct job_order order;
	char tools[PATH_MAX];
	bool has_policy, has_plan;
};

/*
 * Decides what `config` says (job_config()) of the job `id`: policy, wall, grants. Changes nothing.
 * 0, or a negative errno with a sentence; job_decision_done() in either case.
 */
int job_decide(struct cli *cli, const char *id, json_t *config, struct job_decision *ret_decision,
	       struct csn_error *err);
void job_decision_done(struct job_decision *decision);

/* The forwards of flags for a configuration: a new array. */
json_t *job_forwards(const struct cli_list *list);

/* The configuration of a new job from the flags and the manifest; an object. */
int job_config(struct cli *cli, json_t **ret_config, struct csn_error *err);

/* Applies --max-… and --add-… to `limits`; how many there were, or -EINVAL with a sentence. */
int job_take_limits(const struct cli *cli, struct book_limits *limits, struct csn_error *err);
