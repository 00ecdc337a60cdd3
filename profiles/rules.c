/*
 * The rules of this architecture: what the monitor says about a notified call. It decides
 * anew from the notified arguments, because a notification does not say which line it
 * came from.
 */
#include "tables.h"

#include <string.h>

#define X32_BIT 0x40000000

static const struct profile_rules_entry *find_entry(const char *name)
{
	const struct profile_rules_entry *entry = PROFILE_NATIVE(profile_rules);

	for (; entry->name; entry++)
		if (strcmp(entry->name, name) == 0)
			return entry;
	return NULL;
}

const struct profile_rule *profile_rules(const char *name, size_t *ret_count)
{
	const struct profile_rules_entry *entry = find_entry(name);

	if (!entry)
		return NULL;
	*ret_count = entry->count;
	return entry->rules;
}

/* The first rule of `nr`, or one past the last. */
static const struct profile_rule *first_rule(const struct profile_rules_entry *entry, int nr)
{
	size_t low = 0, high = entry->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (entry->rules[middle].nr < nr)
			low = middle + 1;
		else
			high = middle;
	}
	return entry->rules + low;
}

const struct profile_rule *profile_rule_of(const char *name, int nr)
{
	const struct profile_rules_entry *entry = find_entry(name);

	if (!entry)
		return NULL;
	const struct profile_rule *rule = first_rule(entry, nr), *end = entry->rules + entry->count;
	for (; rule < end && rule->nr == nr; rule++)
		if (rule->verdict != PROFILE_ALLOW)
			return rule;
	return NULL;
}

static bool test_holds(const struct profile_test *test, const struct seccomp_data *data)
{
	uint64_t whole = data->args[test->arg];
	uint32_t value = (uint32_t)whole & test->mask;
	bool holds = false;

	if (test->kind == PROFILE_HAS)
		holds = value != 0;
	else if (test->kind == PROFILE_NULL)
		holds = whole == 0;
	else
		for (unsigned i = 0; i < test->value_count; i++)
			holds |= value == test->values[i];
	return holds != test->is_negated;
}

static bool rule_holds(const struct profile_rule *rule, const struct seccomp_data *data)
{
	for (unsigned i = 0; i < rule->test_count; i++)
		if (!test_holds(&rule->tests[i], data))
			return false;
	return true;
}

const struct profile_rule *profile_decide_in(const struct profile_rules_entry *entry,
					     const struct seccomp_data *data, bool has_x32)
{
	const struct profile_rule *rule = first_rule(entry, data->nr);
	const struct profile_rule *otherwise = entry->rules + entry->count;

	if (has_x32 && (unsigned)data->nr >= X32_BIT)
		return NULL;
	for (; rule < otherwise && rule->nr == data->nr; rule++)
		if (rule_holds(rule, data))
			return rule;
	return otherwise;
}

const struct profile_rule *profile_decide(const char *name, const struct seccomp_data *data)
{
	const struct profile_rules_entry *entry = find_entry(name);

	if (!entry || data->arch != PROFILE_NATIVE(profile_arch))
		return NULL;
	return profile_decide_in(entry, data, PROFILE_NATIVE_HAS_X32);
}

const char *profile_syscall_name(int nr)
{
	if (nr < 0 || nr >= PROFILE_NAMES_END)
		return NULL;
	return PROFILE_NATIVE(profile_names)[nr];
}
