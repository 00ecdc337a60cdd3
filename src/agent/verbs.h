/*
 * verbs - what {call, …} may ask for, as one table
 *
 * A row says how often, how large and which handler; who is not in it, since only the monitor
 * has this stream (frame_decode() refuses every message that is not one of its own). The keys of
 * a verb's maps are in frame_verbs (wire/messages.c), and a call is checked against them before
 * its handler sees it. {ready, …} lists the names of this table.
 *
 * A handler answers at once, or begins something that answers later: an exec, or a job (job.h).
 */
#pragma once

#include "agent/agent.h"

struct call {
	int64_t ref;
	const struct verb *verb;
	const struct term *map; /* checked; gone when the handler returns */
};

struct verb {
	const char *name;   /* as in frame_verbs */
	unsigned at_once;   /* calls that are worked on together; others wait for their turn */
	uint32_t max_bytes; /* of the whole frame */
	void (*start)(struct agent *agent, const struct call *call);
	/* Is what it needs there? NULL: it needs nothing. Else nobody is told of the verb. */
	bool (*is_there)(const struct agent *agent);
};

/* Starts what {call, Ref, Verb, Map} asks for, or answers {failed, …}. `size` is the frame's. */
void verbs_call(struct agent *agent, const struct term *items, size_t size);

/* The list of names for {ready, …}. */
void verbs_list(const struct agent *agent, struct emit *emit);
