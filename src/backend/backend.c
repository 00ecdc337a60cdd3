/*
 * The table of walls and the choice among them. The choice is a loop over a table in the
 * order of the contract; a wall that cannot be had is said with its cause and its fix, and
 * nothing weaker is ever taken instead.
 */
#include "backend/backend.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/command/command.h"
#include "backend/engine/engine.h"
#include "backend/host/host.h"
#include "backend/landlock/landlock.h"
#include "backend/local/local.h"
#include "backend/oci/oci.h"
#include "backend/process/process.h"
#include "base/fd.h"
#include "base/str.h"
#include "os/sys.h"

const struct backend *const backends[] = { &process_backend, &landlock_backend, &podman_backend,
					   &docker_backend,  &local_backend,    &oci_backend,
					   &gvisor_backend,  &command_backend,  NULL };

const struct backend *backend_find(const char *name)
{
	for (const struct backend *const *b = backends; *b; b++)
		if (str_is((*b)->name, name))
			return *b;
	return str_is(host_backend.name, name) ? &host_backend : NULL;
}

enum { SAID_TEXT = 160 };

static const char *unavailable(const struct plan *plan)
{
	if (plan->strict_by_policy)
		return "StrictModeRequired";
	return plan->strict_by_request ? "StrictModeUnavailable" : "TierUnavailable";
}

/* What of the plan's demands this wall lacks, as words. */
static void name_missing(uint64_t missing, char *ret_text, size_t size)
{
	size_t n = 0;

	ret_text[0] = 0;
	for (unsigned bit = 0; bit < FEATURE_COUNT && n < size; bit++)
		if (missing >> bit & 1)
			n += (size_t)snprintf(ret_text + n, size - n, "%s%s", n ? ", " : "",
					      plan_feature_name(bit));
}

/* Features that depend on the machine's cgroups, not on the wall; the monitor checks them. */
static const uint64_t by_controller = FEATURE_MEMORY | FEATURE_CPU | FEATURE_PROCESSES;

/* Who named the wall, for messages: "CAISSON_BACKEND: ", "caisson.yaml:3:1: ", or nothing. */
static const char *named_by(const struct plan *plan, char ret_text[SAID_TEXT])
{
	ret_text[0] = 0;
	for (size_t i = 0; i < plan->note_count; i++)
		if (str_is(plan->notes[i].what, "backend"))
			snprintf(ret_text, SAID_TEXT, "%s: ", plan->notes[i].where);
	return ret_text;
}

/* An engine lends its own network, and nobody else has one. */
static bool lends_network(const struct plan *plan, const struct backend *backend)
{
	return plan->network != NETWORK_ENGINE || backend->has_network;
}

static int try_backend(const struct plan *plan, const struct backend *backend,
		       struct backend_report *ret_report, struct csn_error *err)
{
	/* A controller of ours holds what runs here; what runs elsewhere is the wall's own to hold.
	 */
	uint64_t elsewhere = backend->declare || backend->is_program ? 0 : by_controller, missing;
	char names[160];

	if (!lends_network(plan, backend))
		return csn_fail(err, -ENOTSUP, "network",
				"%s: network mode engine is the network of a container engine, and "
				"the %s wall has none: take backend docker or podman, or network "
				"none",
				unavailable(plan), backend->name);
	backend->probe(ret_report);
	if (backend->declare) {
		int r = backend->declare(plan, ret_report, err);

		if (r < 0)
			return r;
	}
	if (!ret_report->is_usable)
		return csn_fail(err, -ENOTSUP, "backend",
				"%s: the %s wall cannot be had here: %s. %s", unavailable(plan),
				backend->name, ret_report->cause, ret_report->fix);
	missing = plan->required & ~ret_report->enforces & ~elsewhere;
	if (missing == 0)
		return 0;
	name_missing(missing, names, sizeof names);
	if (missing & by_controller && ret_report->unheld[0])
		return csn_fail(err, -ENOTSUP, "backend",
				"%s: the %s wall does not enforce: %s: %s. Say limits_mode: best, "
				"which leaves these limits unheld, or take the process wall",
				unavailable(plan), backend->name, names, ret_report->unheld);
	return csn_fail(err, -ENOTSUP, "backend",
			"%s: the %s wall does not enforce: %s. Leave out what needs it, or take "
			"another wall: %s%s",
			unavailable(plan), backend->name, names,
			backend->declare ? backend->declared_in : "",
			backend->declare ? ".enforces is its author's word for what it does"
					 : "`caisson doctor -v` says what each enforces");
}

static int choose_named(const struct plan *plan, const struct backend **ret_backend,
			struct backend_report *ret_report, struct csn_error *err)
{
	const struct backend *backend = backend_find(plan->backend);
	char by[SAID_TEXT];

	if (!backend)
		return csn_fail(
			err, -ENOTSUP, "backend",
			"%s: %sthere is no wall named %s in this build; caisson doctor lists them",
			unavailable(plan), named_by(plan, by), plan->backend);
	if (backend->tier < plan->tier && backend->is_callers)
		return csn_fail(err, -ENOTSUP, "backend",
				"%s: a wall of the program's own reaches tier %s and %s is asked "
				"for: write tier: %s into a trusted policy file, or leave "
				"csn_options.wall out",
				unavailable(plan), plan_tier_name(backend->tier),
				plan_tier_name(plan->tier), plan_tier_name(backend->tier));
	if (backend->tier < plan->tier)
		return csn_fail(err, -ENOTSUP, "backend",
				"%s: %sthe %s wall reaches tier %s and %s is asked for: leave the "
				"name of the wall out, or write into a trusted policy file: tier: "
				"%s",
				unavailable(plan), named_by(plan, by), backend->name,
				plan_tier_name(backend->tier), plan_tier_name(plan->tier),
				plan_tier_name(backend->tier));
	*ret_backend = backend;
	return try_backend(plan, backend, ret_report, err);
}

/* What no wall of this build can do, said before one is looked for. */
static int check_plan(const struct plan *plan, struct csn_error *err)
{
	if (plan->network == NETWORK_ALLOW)
		return csn_fail(err, -ENOTSUP, "network",
				"network mode allow is not available in this build: there is no "
				"filtering proxy. Use none or loopback");
	return 0;
}

/* landlock serves tier auto only, local only itself. */
bool backend_serves(const struct backend *backend, enum plan_tier tier)
{
	if (backend->declare || backend->is_named_only)
		return false;
	if (tier == TIER_LOCAL || backend->tier == TIER_LOCAL)
		return tier == backend->tier;
	return backend->tier >= tier;
}

static int none_reaches(const struct plan *plan, struct csn_error *err)
{
	bool is_lent = plan->network == NETWORK_ENGINE;

	return csn_fail(err, -ENOTSUP, "backend",
			"%s: no wall of this build %sreaches tier %s; caisson doctor says what "
			"there is",
			unavailable(plan), is_lent ? "with an engine's network " : "",
			plan_tier_name(plan->tier));
}

int backend_choose(const struct plan *plan, const struct backend **ret_backend,
		   struct backend_report *ret_report, struct csn_error *err)
{
	int r = check_plan(plan, err);

	if (r < 0)
		return r;
	if (!str_is(plan->backend, "any"))
		return choose_named(plan, ret_backend, ret_report, err);
	for (const struct backend *const *b = backends; *b; b++) {
		/* Who could have had another wall wants to know why not that one. */
		bool is_other = (*b)->is_runtimes || (*b)->is_program;
		struct csn_error *say = r < 0 && is_other ? NULL : err;

		if (!backend_serves(*b, plan->tier) || !lends_network(plan, *b))
			continue;
		r = try_backend(plan, *b, ret_report, say);
		if (r >= 0 && plan->tier == TIER_AUTO && (*b)->attempt && (*b)->attempt() < 0)
			r = csn_fail(err, -ENOTSUP, "backend",
				     "%s: the %s wall cannot be had here: namespaces are forbidden",
				     unavailable(plan), (*b)->name);
		if (r < 0)
			continue;
		*ret_backend = *b;
		return 0;
	}
	return r < 0 ? r : none_reaches(plan, err);
}

enum { PRIVATE_FIRST = 1879048192, PRIVATE_COUNT = 1 << 22 };

uid_t backend_private_uid(void)
{
	return PRIVATE_FIRST + (uid_t)getpid() % PRIVATE_COUNT;
}

uid_t backend_private_root(void)
{
	return backend_private_uid() + PRIVATE_COUNT;
}

bool backend_is_private_uid(uid_t uid)
{
	return uid >= PRIVATE_FIRST && uid - PRIVATE_FIRST < PRIVATE_COUNT;
}

void wall_reap(struct wall *wall)
{
	if (wall->helper > 0 && waitpid(wall->helper, NULL, WNOHANG) == wall->helper)
		wall->helper = 0;
}

void wall_done(struct wall *wall)
{
	if (wall->pidfd >= 0)
		sys_pidfd_signal(wall->pidfd, SIGKILL);
	while (wall->helper > 0 && waitpid(wall->helper, NULL, 0) < 0 && errno == EINTR)
		;
	wall->helper = 0;
	wall->pidfd = fd_close(wall->pidfd);
	wall->stream = fd_close(wall->stream);
	wall->listeners = fd_close(wall->listeners);
	wall->terminals = fd_close(wall->terminals);
	wall->failure = fd_close(wall->failure);
	wall->complaints = fd_close(wall->complaints);
	wall->life = fd_close(wall->life);
	wall->order = fd_close(wall->order);
	wall->spaces[0] = fd_close(wall->spaces[0]);
	wall->spaces[1] = fd_close(wall->spaces[1]);
	wall->userns = fd_close(wall->userns);
	wall->skeleton = fd_close(wall->skeleton);
}
