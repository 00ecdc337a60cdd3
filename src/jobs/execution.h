/*
 * execution - how a job's worker is run: the `execution:` block of a manifest, under flags
 *
 *   execution:
 *     mode: container                  # host | container
 *     container: {runtime: docker, image: NAME, network: none, use_bypass_permissions: true}
 *     inner_runner: [srt, --]          # a wrapper inside, in front of the worker
 *
 * Other blocks of the file are somebody else's and are not looked at; an unknown key in this one is
 * an error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/error.h"

enum { EXECUTION_TEXT = 256, EXECUTION_BYTES = 1 << 20 };

struct execution {
	char mode[EXECUTION_TEXT]; /* "host", "container"; "": unsaid, as all below */
	char runtime[EXECUTION_TEXT];
	char image[EXECUTION_TEXT];
	char network[EXECUTION_TEXT]; /* "none", "default" */
	int use_bypass;               /* -1: unsaid */
	json_t *inner_runner;         /* texts, owned; NULL: none */
};

#define EXECUTION_NONE ((struct execution){ .use_bypass = -1 })

/* Fills what the file says. -EINVAL with FILE:LINE:COLUMN, -ENOMEM. */
int execution_read(const char *name, const void *bytes, size_t size,
		   struct execution *ret_execution, struct csn_error *err);

/* A text of the command line into one of them: -EINVAL for a word that is none of its choices. */
int execution_set(struct execution *execution, const char *key, const char *text,
		  struct csn_error *err);

/* The block as JSON, a new object; and back, from a job's record. */
json_t *execution_json(const struct execution *execution);
void execution_from(const json_t *json, struct execution *ret_execution);
void execution_done(struct execution *execution);
