/*
 * May `child` run inside `parent`? A table of questions, each about one field; the first
 * that is wider is named. Used for children of a session and for sandboxes that a sandbox
 * asks for, so every rule errs to "no": text that cannot be compared is wider.
 */
#include "plan/plan.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"

bool plan_has(const char *const *list, const char *text)
{
	for (; *list; list++)
		if (str_is(*list, text))
			return true;
	return false;
}

static bool is_subset(const char *const *part, const char *const *whole)
{
	for (; *part; part++)
		if (!plan_has(whole, *part))
			return false;
	return true;
}

/* Is the first component of `pattern` (length n) free of wildcards? */
static bool is_literal(const char *pattern, size_t n)
{
	return strcspn(pattern, "*?[\\") >= n;
}

int plan_rebase(const char *pattern, const char *tail, const char **ret_pattern)
{
	const char *p = pattern, *t = tail;

	/* Without a slash it holds at every depth; unless it names a folder above. */
	if (!strchr(pattern, '/')) {
		char part[256];

		for (; *t; t += strspn(t, "/")) {
			size_t n = strcspn(t, "/");

			if (n >= sizeof part)
				return -EPERM;
			memcpy(part, t, n);
			part[n] = 0;
			if (str_path_matches(pattern, part))
				return -EPERM;
			t += n;
		}
		*ret_pattern = pattern;
		return 0;
	}
	while (*t) {
		size_t np = strcspn(p, "/"), nt = strcspn(t, "/");

		if (!is_literal(p, np))
			return -EPERM;
		if (np != nt || memcmp(p, t, np) != 0) {
			*ret_pattern = pattern;
			return 0;
		}
		p += np + strspn(p + np, "/");
		t += nt + strspn(t + nt, "/");
		if (!*p)
			return -EPERM;
	}
	*ret_pattern = p;
	return 0;
}

static bool names_hold(const char *const *child, const char *const *parent, const char *tail)
{
	const char *pattern;

	for (; *parent; parent++)
		if (plan_rebase(*parent, tail, &pattern) < 0 || !plan_has(child, pattern))
			return false;
	return true;
}

static bool access_within(enum plan_access child, enum plan_access parent)
{
	return child != ACCESS_RW || parent == ACCESS_RW;
}

static bool workspace_within(const struct plan *child, const struct plan *parent)
{
	const struct plan_workspace *c = &child->workspace, *p = &parent->workspace;
	const char *tail;

	if (!c->host)
		return true;
	if (!p->host || !path_is_beneath(c->host, p->host) || !access_within(c->access, p->access))
		return false;
	tail = path_tail(c->host, p->host);
	return names_hold(c->hide, p->hide, tail) && names_hold(c->protect, p->protect, tail);
}

static bool mount_within(const struct plan_mount *mount, const struct plan *parent)
{
	for (size_t i = 0; i < parent->mount_count; i++)
		if (path_is_beneath(mount->host, parent->mounts[i].host) &&
		    access_within(mount->access, parent->mounts[i].access))
			return true;
	return false;
}

static bool mounts_within(const struct plan *child, const struct plan *parent)
{
	for (size_t i = 0; i < child->mount_count; i++)
		if (!mount_within(&child->mounts[i], parent))
			return false;
	return true;
}

static bool is_beneath_one(const char *path, const char *const *roots)
{
	for (; *roots; roots++)
		if (path_is_beneath(path, *roots))
			return true;
	return false;
}

static bool roots_within(const struct plan *child, const struct plan *parent)
{
	for (const char **root = child->mount_roots; *root; root++)
		if (!is_beneath_one(*root, parent->mount_roots))
			return false;
	return true;
}

#define LIMIT(key, member)                                \
	{                                                 \
		key, offsetof(struct plan_limits, member) \
	}

/* By their names in a policy file and in flags. */
static const struct {
	const char *key;
	size_t offset;
} limits[] = {
	LIMIT("command", command_ms),    LIMIT("budget", budget_ms),
	LIMIT("startup", startup_ms),    LIMIT("idle", idle_ms),
	LIMIT("cpus", cpu_milli),        LIMIT("memory", mem_bytes),
	LIMIT("processes", processes),   LIMIT("output", output_bytes),
	LIMIT("open_files", open_files), LIMIT("scratch", scratch_bytes),
};

/* Of the row i. `idle` is off at 0. */
static uint64_t limit_of(const struct plan_limits *from, size_t i)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)from + limits[i].offset, sizeof value);
	return value == 0 && limits[i].offset == offsetof(struct plan_limits, idle_ms)
		       ? PLAN_UNLIMITED
		       : value;
}

static bool limits_within(const struct plan *child, const struct plan *parent)
{
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (limit_of(&child->limits, i) > limit_of(&parent->limits, i))
			return false;
	return true;
}

static bool is_named(const char *const *settings, const char *key)
{
	size_t size = strlen(key);

	for (; settings && *settings; settings++)
		if (strncmp(*settings, key, size) == 0 && (*settings)[size] == '=')
			return true;
	return false;
}

void plan_lower(struct plan *child, const struct plan *parent, const char *const *named)
{
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		size_t at = limits[i].offset;

		if (limit_of(&child->limits, i) > limit_of(&parent->limits, i) &&
		    !is_named(named, limits[i].key))
			memcpy((uint8_t *)&child->limits + at,
			       (const uint8_t *)&parent->limits + at, sizeof(uint64_t));
	}
}

static bool network_within(const struct plan *child, const struct plan *parent)
{
	if (child->network > parent->network)
		return false;
	/* The engine's own network knows no list, so anything is part of it. */
	return child->network != NETWORK_ALLOW || parent->network == NETWORK_ENGINE ||
	       is_subset(child->allow, parent->allow);
}

static bool env_within(const struct plan *child, const struct plan *parent)
{
	return is_subset(child->env_pass, parent->env_pass) &&
	       is_subset(child->env_set, parent->env_set) && child->env_any <= parent->env_any &&
	       child->git_identity <= parent->git_identity;
}

static bool tier_within(const struct plan *child, const struct plan *parent)
{
	return child->tier >= parent->tier && child->local_is_trusted <= parent->local_is_trusted;
}

static bool backend_within(const struct plan *child, const struct plan *parent)
{
	return (str_is(parent->backend, "any") || str_is(child->backend, parent->backend)) &&
	       child->rootless_required >= parent->rootless_required;
}

static bool is_same_list(const char *const *a, const char *const *b)
{
	for (; *a && *b; a++, b++)
		if (!str_is(*a, *b))
			return false;
	return !*a && !*b;
}

/* A wall that somebody declares: the parent's own, and not declared to do more. */
static bool command_within(const struct plan *child, const struct plan *parent)
{
	if (!str_is(child->backend, "command") && !str_is(child->backend, "host"))
		return true;
	return str_is(parent->backend, child->backend) &&
	       is_same_list(child->command_argv, parent->command_argv) &&
	       is_subset(child->command_enforces, parent->command_enforces) &&
	       is_subset(child->command_observes, parent->command_observes);
}

static bool image_within(const struct plan *child, const struct plan *parent)
{
	if (!child->image || !parent->image)
		return child->image == parent->image;
	return str_is(child->image, parent->image);
}

static bool gates_within(const struct plan *child, const struct plan *parent)
{
	for (size_t i = 0; i < child->gate_count; i++) {
		const struct plan_gate *gate = plan_gate_find(parent, child->gates[i].name);

		if (!gate || !plan_gate_is_same(&child->gates[i], gate))
			return false;
	}
	return true;
}

static bool forwards_within(const struct plan *child, const struct plan *parent)
{
	return is_subset(child->forwards, parent->forwards);
}

static bool toolchains_within(const struct plan *child, const struct plan *parent)
{
	return child->toolchains_auto <= parent->toolchains_auto;
}

static bool demands_hold(const struct plan *child, const struct plan *parent)
{
	return child->needs_approval >= parent->needs_approval &&
	       child->observe_reads >= parent->observe_reads &&
	       child->limits_mode >= parent->limits_mode &&
	       child->on_violation >= parent->on_violation;
}

static const struct question {
	const char *field;
	bool (*holds)(const struct plan *child, const struct plan *parent);
} questions[] = {
	{ "tier", tier_within },
	{ "backend", backend_within },
	{ "command", command_within },
	{ "workspace", workspace_within },
	{ "mounts", mounts_within },
	{ "mount_roots", roots_within },
	{ "network", network_within },
	{ "limits", limits_within },
	{ "env", env_within },
	{ "toolchains", toolchains_within },
	{ "container.image", image_within },
	{ "gates", gates_within },
	{ "forwards", forwards_within },
	{ "approval, observe, limits_mode or on_violation", demands_hold },
};

int plan_within(const struct plan *child, const struct plan *parent, struct csn_error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
		if (!questions[i].holds(child, parent))
			return csn_fail(err, -EPERM, "plan",
					"the child's %s is wider than its parent's; ask for no "
					"more than the parent has",
					questions[i].field);
	return 0;
}
