/*
 * The forwards of a run: which walls have them, where the agent listens, and what it says of it.
 * What goes through them is in forwards.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"
#include "monitor/run_private.h"

/* A path stands in scratch, the one place where commands may connect; a port on a loopback that is
 * the sandbox's own and up. */
static int check_place(struct run *run, const struct plan_forward *forward)
{
	const struct plan *plan = run->plan;
	bool is_watched = !run_is_apart(run) && !run->backend->is_runtimes;

	if (forward->at_port && is_watched && plan->network == NETWORK_NONE)
		return csn_fail(&run->error, -EINVAL, "forward",
				"--forward …:%u: without a network there is no loopback to listen "
				"on: name a path, %s/model.sock, or use --network loopback",
				forward->at_port, plan->scratch_at);
	if (!forward->at_port && (!path_is_beneath(forward->at, plan->scratch_at) ||
				  str_is(forward->at, plan->scratch_at)))
		return csn_fail(&run->error, -EINVAL, "forward",
				"--forward …:%s: code may connect to sockets in the scratch space "
				"only: name a path in %s",
				forward->at, plan->scratch_at);
	return 0;
}

int run_open_forwards(struct run *run)
{
	const struct forwards_setup setup = { run->plan, &run->channel, &run->record.chain };
	struct plan_forward forward;
	int r = 0;

	if (!run->plan->forwards[0])
		return 0;
	if (!run->backend->has_view || run_is_declared(run) || run->backend->tier == TIER_LOCAL)
		return csn_fail(&run->error, -ENOTSUP, "forward",
				"the %s wall cannot forward: leave --forward out, or take the wall "
				"process, docker, podman, oci or gvisor",
				run->backend->name);
	for (const char **text = run->plan->forwards; r >= 0 && *text; text++) {
		r = plan_forward_read(*text, &forward);
		if (r >= 0)
			r = check_place(run, &forward);
	}
	return r < 0 ? r : forwards_new(&setup, &run->forwards, &run->error);
}

/* Where nobody is shown an address commands have no connect() or, with a port, no path sockets. */
int run_check_forwards(struct run *run)
{
	const char *profile = run_profile(run);
	bool has_paths = !str_is(profile, "command-alone") && !str_is(profile, "command-alone-net");

	for (const char **text = run->plan->forwards; *text && !has_paths; text++) {
		struct plan_forward forward;

		if (plan_forward_read(*text, &forward) == 0 && !forward.at_port)
			return csn_fail(&run->error, -ENOTSUP, "forward",
					"--forward …:%s: commands of the %s wall may connect to no "
					"path here, since nobody can be shown the address: name a "
					"port, as --forward …:8080, or take the wall process or "
					"gvisor",
					forward.at, run->backend->name);
	}
	return 0;
}

void run_emit_forwards(struct emit *emit, const struct run *run)
{
	const char **texts = run->plan->forwards;
	uint32_t count = 0;

	while (texts[count])
		count++;
	emit_atom(emit, "forwards");
	emit_list(emit, count);
	for (uint32_t i = 0; i < count; i++)
		emit_text(emit, strrchr(texts[i], ':') + 1);
	emit_nil(emit);
}

int run_check_listening(const struct run *run, const struct term *map, struct csn_error *err)
{
	const struct term *listens = term_get(map, "forwards");
	const struct term *why = term_get(map, "forward_error");
	char text[160] = "", shown[200];

	if (!run->forwards || (listens && term_is_atom(listens, "true")))
		return 0;
	if (why)
		snprintf(text, sizeof text, "%.*s", (int)why->bytes.size,
			 (const char *)why->bytes.data);
	str_escape(text, false, shown, sizeof shown);
	return csn_fail(err, -ENOTSUP, "forward", "the agent cannot listen inside: %s",
			shown[0] ? shown : "it does not say why");
}
