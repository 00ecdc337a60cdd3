/*
 * argv - the command line of a container, from a plan
 *
 * Pure: what the host has, and what the engine can do, was looked at before. tests/containers
 * holds the whole line.
 */
#pragma once

#include "backend/backend.h"
#include "backend/engine/binds.h"
#include "backend/engine/facts.h"

#define ENGINE_AGENT "/run/caisson" /* the agent's folder inside */
#define ENGINE_LABEL "caisson.sandbox"
#define ENGINE_LABEL_KEEP "caisson.keep"     /* whose it is, for `caisson gc`: keep.h */
#define ENGINE_LABEL_RECORD "caisson.record" /* where its record is */
#define ENGINE_PREFIX "caisson-"             /* of a container's name; then the sandbox's id */

struct engine_box {
	const struct engine *engine;
	const struct engine_facts *facts;
	const struct plan *plan;
	const struct backend_start *how;
	const struct binds *binds;
	const struct binds *own; /* files of /etc in the place of the engine's */
	const char *image;       /* a name or an id that the engine has */
	const char *const
		*volumes; /* folders that the image would make writable; NULL-terminated */
	const char *keep; /* the folder of keep.h */
	const char *agent, *search; /* the host's files; `search` may be NULL */
	uid_t uid;                  /* inside */
	gid_t gid;
};

/* Room for arguments beside the binds. */
enum { ENGINE_ARGS = 128 };

/*
 * Adds to `client`, whose argv has room for ENGINE_ARGS + two for each bind. Texts are the arena's
 * or borrowed. 0 or -ENOMEM.
 */
int engine_argv(const struct engine_box *box, struct arena *arena, struct piped_program *client,
		size_t count);
