/*
 * facts - which container engine is here, and what it can do
 *
 * Asked of the engine once, by one `info`, and kept beside the sockets of sandboxes
 * (base/place.h) for ten minutes: a start asks nothing. The name under which the answer is kept is
 * made from all that could change it: the client's file, the daemon's socket, the caller's
 * configuration and variables.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "backend/piped.h"
#include "base/arena.h"

/* A client that takes docker's command line. */
struct engine {
	const char *name;    /* "docker": of the wall and of its program */
	bool is_podman;      /* has no daemon, and says some things in another way */
	const char *package; /* what brings it, for advice */
};

extern const struct engine engine_docker, engine_podman;

struct engine_facts {
	char version[32];
	char runtime[16]; /* to name to it, "": its own choice */
	bool is_rootless; /* its uid 0 is the caller */
	bool has_userns;  /* a rootful one whose containers have ids of their own */
	bool has_selinux;
	bool holds_memory;
	bool holds_processes;
	bool holds_cpu;
	bool has_groups_v1; /* control groups of the first generation: root's alone */
};

/*
 * Its client: path, environment, and argv with room for `more` arguments behind the first ones;
 * *ret_count of them are there. Everything is the arena's. 0, -ENOENT: no such program; -ENOMEM.
 */
int engine_client(const struct engine *engine, struct arena *arena, size_t more,
		  struct piped_program *ret_client, size_t *ret_count);

/*
 * 0, or -ENOTSUP with both texts filled: why it cannot be used, and what would help. With
 * `is_fresh` what was kept is not believed.
 */
int engine_facts(const struct engine *engine, bool is_fresh, struct engine_facts *ret_facts,
		 char ret_cause[256], char ret_fix[256]);
