/* Gates of a plan: one by its name, and whether two are the same. */
#include <string.h>

#include "base/str.h"
#include "plan/plan.h"

const struct plan_gate *plan_gate_find(const struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->gate_count; i++)
		if (str_is(plan->gates[i].name, name))
			return &plan->gates[i];
	return NULL;
}

static bool is_same_text(const char *a, const char *b)
{
	return a && b ? str_is(a, b) : a == b;
}

static bool is_same_argv(const char **a, const char **b)
{
	if (!a || !b)
		return a == b;
	for (; *a && *b; a++, b++)
		if (!str_is(*a, *b))
			return false;
	return !*a && !*b;
}

bool plan_gate_is_same(const struct plan_gate *a, const struct plan_gate *b)
{
	return str_is(a->name, b->name) && is_same_text(a->schema, b->schema) &&
	       is_same_argv(a->argv, b->argv) && a->timeout_ms == b->timeout_ms &&
	       a->rate == b->rate && a->is_ephemeral == b->is_ephemeral;
}
