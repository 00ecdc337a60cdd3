/*
 * channels - the descriptors between a monitor and a first process that it forks itself
 */
#pragma once

#include "backend/backend.h"
#include "launch/launch.h"

/* The child's sides; the wall has the monitor's. -1: none. */
struct channels {
	int stream;
	int listeners;
	int failure;
	int life;
};

#define CHANNELS_NONE          \
	(struct channels)      \
	{                      \
		-1, -1, -1, -1 \
	}

/* Makes all of them; fills `wall`'s sides. `has_listeners`: commands announce listeners, unless
 * Yama lets nobody take them. 0 or -errno. */
int channels_make(struct channels *channels, struct wall *wall, bool has_listeners);
void channels_done(struct channels *channels);

/*
 * Adds to `report->weaker` what the machine takes from every wall: Yama closes the way to commands'
 * listeners (`is_owner` as for yama_permits(), `loss`: what that costs here), a crash would start
 * the machine's handler.
 */
void channels_weaken(struct backend_report *report, bool is_owner, const char *loss);

/* Adds the limits that every launch has: core files, and memory where no controller holds it. */
void channels_limit(const struct backend_start *how, struct launch *launch);

/* What every launch takes from plan and how: limits, agent, groups, the child's sides. */
void channels_fill(const struct channels *channels, const struct plan *plan,
		   const struct backend_start *how, struct launch *launch);
