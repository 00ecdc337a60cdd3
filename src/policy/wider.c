/*
 * Does one value of a key give the code inside more than another? The whole of "tighten"
 * and "loosen" is here: one comparison per way in which a key can grow.
 */
#include "policy/keys.h"

#include <string.h>

#include "base/path.h"
#include "base/str.h"

static bool never(const struct key *key, const struct plan *now, const struct plan *base)
{
	(void)key;
	(void)now;
	(void)base;
	return false;
}

static bool more(const struct key *key, const struct plan *now, const struct plan *base)
{
	return key_number(key, now) > key_number(key, base);
}

static bool less(const struct key *key, const struct plan *now, const struct plan *base)
{
	return key_number(key, now) < key_number(key, base);
}

static bool changed(const struct key *key, const struct plan *now, const struct plan *base)
{
	const char *a = key_text(key, now), *b = key_text(key, base);

	return a && b ? !str_is(a, b) : a != b;
}

static bool lacks(const char *const *list, const char *const *wanted)
{
	for (; *wanted; wanted++)
		if (!plan_has(list, *wanted))
			return true;
	return false;
}

static bool added(const struct key *key, const struct plan *now, const struct plan *base)
{
	return lacks(key_list(key, base), key_list(key, now));
}

static bool removed(const struct key *key, const struct plan *now, const struct plan *base)
{
	return lacks(key_list(key, now), key_list(key, base));
}

/* Under cow the host's files do not change, so it gives no more than ro. */
static bool more_access(const struct key *key, const struct plan *now, const struct plan *base)
{
	return key_number(key, now) == ACCESS_RW && key_number(key, base) != ACCESS_RW;
}

static bool later(const struct key *key, const struct plan *now, const struct plan *base)
{
	uint64_t a = key_number(key, now), b = key_number(key, base);

	return b != 0 && (a == 0 || a > b);
}

static bool outside(const struct key *key, const struct plan *now, const struct plan *base)
{
	const char *a = key_text(key, now), *b = key_text(key, base);

	return a && (!b || !path_is_beneath(a, b));
}

/*
 * `any` to one of the walls that `any` chooses from is a narrowing; a remote pod, a stranger's
 * program or no wall at all is not. One named wall to another is a change of what was asked.
 */
static bool other_wall(const struct key *key, const struct plan *now, const struct plan *base)
{
	static const char *const chosen[] = { "any",  "process",     "podman",   "docker", "gvisor",
					      "qemu", "firecracker", "landlock", NULL };
	const char *a = key_text(key, now), *b = key_text(key, base);

	return !str_is(a, b) && !(str_is(b, "any") && plan_has(chosen, a));
}

static bool more_mounts(const struct key *key, const struct plan *now, const struct plan *base)
{
	(void)key;
	return now->mount_count > base->mount_count;
}

static bool more_gates(const struct key *key, const struct plan *now, const struct plan *base)
{
	(void)key;
	for (size_t i = 0; i < now->gate_count; i++) {
		const struct plan_gate *gate = plan_gate_find(base, now->gates[i].name);

		if (!gate || !plan_gate_is_same(gate, &now->gates[i]))
			return true;
	}
	return false;
}

bool key_is_wider(const struct key *key, const struct plan *now, const struct plan *base)
{
	static bool (*const ways[WIDER_COUNT])(const struct key *, const struct plan *,
					       const struct plan *) = {
		[WIDER_NEVER] = never,        [WIDER_MORE] = more,
		[WIDER_LESS] = less,          [WIDER_CHANGED] = changed,
		[WIDER_ADDED] = added,        [WIDER_REMOVED] = removed,
		[WIDER_ACCESS] = more_access, [WIDER_IDLE] = later,
		[WIDER_OUTSIDE] = outside,    [WIDER_BACKEND] = other_wall,
		[WIDER_MOUNTS] = more_mounts, [WIDER_GATES] = more_gates,
	};

	return key->width != 0 && ways[key->wider](key, now, base);
}
