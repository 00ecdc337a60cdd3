/*
 * piped - starts a wall that is a program of the host's, with frames on its standard streams
 *
 * A prefix that ends in an agent, an engine's command line, a container runtime: whatever it does
 * beneath, for us it is one process with three streams. Frames go over the first two; the third is
 * a file of a fixed size, which takes what it complains of without anybody having to read, and
 * refuses the rest. It has a session of its own, and a small environment.
 *
 * A wall that is started so sets `is_program` in its backend: the monitor then adopts and ends
 * what it leaves behind, its cleaner does where the monitor was killed, and nobody looks at its
 * process for what the commands use.
 */
#pragma once

#include "backend/backend.h"
#include "base/arena.h"
#include "launch/launch.h"

struct piped_program {
	const char *path;  /* absolute */
	char *const *argv; /* NULL-terminated */
	char *const *env;  /* the same; nothing of ours is added */
};

/*
 * Its usual environment, from the arena: PATH, which is the system's folders and then
 * `last_folder` (NULL: none), HOME, USER, LOGNAME and LANG, and those of `more` (names,
 * NULL-terminated; NULL: none) that the caller has. NULL: out of memory.
 */
char **piped_env(const char *last_folder, const char *const *more, struct arena *arena);

/* The value of PATH in such an environment. */
const char *piped_path(char *const *env);

/*
 * Starts it by launch_command_steps, in the groups that `how` names and with the limits for memory
 * that it names. Fills `ret_wall`: pid, pidfd, stream, complaints, life, failure; kernel_uid is the
 * caller's, for the backend to correct. 0, or -errno with a sentence and nothing left.
 */
int piped_start(const struct piped_program *program, const struct plan *plan,
		const struct backend_start *how, struct wall *ret_wall, struct csn_error *err);

/* A start with steps of its own. All borrowed. */
struct piped {
	const struct piped_program *program;
	const struct plan *plan;
	const struct backend_start *how;
	const struct launch_step *steps;
};

/* The same with a launch that was filled for these steps: its program, streams and limits come
 * from here. Fills `wall`, which wall_done() clears on failure as well. 0 or -errno. */
int piped_launch(const struct piped *piped, struct launch *launch, struct wall *wall);
