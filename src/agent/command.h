/*
 * command - the argument map of an exec call, as C strings
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "wire/term.h"

struct command {
	char *const *argv;
	char *const *env;
	const char *path;    /* PATH in env, or a default */
	const char *cwd;     /* NULL: the workspace */
	const char *profile; /* NULL: the agent's */
	uint64_t open_files; /* 0: as the agent's */
	bool has_stdin;
	bool has_tty;
	bool has_report;     /* a pipe for reports, descriptor 3 */
	bool is_last;        /* the agent ends with it */
	bool is_detached;    /* outlives its call */
	const char *tag;     /* NULL: none */
	uint64_t timeout_ms; /* 0: none */
	const void *image;   /* the program itself; NULL: `argv` names it */
	size_t image_size;
	unsigned rows;
	unsigned cols;
};

/*
 * Reads a map that frame_check_map() accepted. Everything lives in the arena. 0; -EINVAL: not one
 * of argv and command, or a detached one that is the last, has input or reports; -EOPNOTSUPP: a key
 * that the protocol has and this agent does not do, which must not be passed over (a limit that
 * nobody sets); -ENOMEM.
 */
int command_read(const struct term *map, struct arena *arena, struct command *ret_command);
