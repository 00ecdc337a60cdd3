/*
 * The gates of a run: which walls have them, where they are inside, and what the agent says of it.
 * Commands reach them through a socket in scratch, which the agent makes; what they ask for is in
 * gates.c.
 */
#include <errno.h>
#include <string.h>

#include "monitor/run_private.h"

const char *run_place_gates(struct run *run)
{
	if (run->plan->gate_count > 0)
		run->gates_at = arena_printf(&run->arena, "%s/.caisson", run->plan->scratch_at);
	return run->gates_at;
}

int run_open_gates(struct run *run)
{
	const struct gates_setup setup = { run, &run->channel, &run->record.chain };

	if (run->plan->gate_count > 0 && (run_is_apart(run) || run->backend->tier == TIER_LOCAL))
		return csn_fail(&run->error, -ENOTSUP, "gates",
				"the policy names gates, and the %s wall has none: leave gates "
				"out, or take the wall process or landlock",
				run->backend->name);
	return gates_new(&setup, &run->gates, &run->error);
}

/* Where the filter cannot ask us about an address, it refuses connect() as a whole. */
int run_check_gates(struct run *run)
{
	const char *end = strstr(run_profile(run), "-alone");

	if (!run->gates || !end)
		return 0;
	return csn_fail(&run->error, -ENOTSUP, "gates",
			"the policy names gates, and commands of the %s wall may connect to no "
			"socket here, since nobody can be shown the address: leave gates out, or "
			"take another wall",
			run->backend->name);
}

/* Beneath scratch, where commands may connect; env.c names it to them. */
void run_emit_gates(struct emit *emit, const struct run *run)
{
	const struct plan *plan = run->plan;

	emit_atom(emit, "gates");
	emit_list(emit, (uint32_t)plan->gate_count);
	for (size_t i = 0; i < plan->gate_count; i++)
		emit_text(emit, plan->gates[i].name);
	emit_nil(emit);
	emit_atom(emit, "gates_at");
	emit_text(emit, run->gates_at);
}

int run_check_ready(const struct run *run, const struct term *map, struct csn_error *err)
{
	const struct term *gates = term_get(map, "gates");

	if (!run->gates || (gates && term_is_atom(gates, "true")))
		return 0;
	return csn_fail(err, -ENOTSUP, "gates",
			"the agent cannot offer gates in %s: the scratch space does not take a "
			"socket or a program, or the path is longer than 107 bytes",
			run->gates_at);
}
