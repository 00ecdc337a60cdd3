/*
 * output - what a job's worker writes on stdout and stderr, kept under a ceiling
 *
 *   logs/stdout          the first half of the ceiling, of the job's whole life
 *   logs/stdout.1  .2    what came last: .2 is written, and becomes .1 when it is a quarter long
 *
 * It is on disk as it comes, so a kill loses nothing of it; and a worker that writes for a week
 * fills no disk. What lies between is gone, and `caisson job logs` says how much.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output {
	int logs_fd; /* borrowed: the folder */
	uint64_t cap;
	struct output_stream {
		const char *name;
		int fd;        /* of the file that is written; -1: none yet */
		bool is_first; /* the first half is not full */
		uint64_t room; /* of that file */
	} streams[2];
};

/* Continues what is there. */
void output_init(struct output *output, int logs_fd, uint64_t cap);
void output_done(struct output *output);

/* 0, or a negative errno: a full disk. */
int output_add(struct output *output, bool is_stderr, const void *bytes, size_t size);
