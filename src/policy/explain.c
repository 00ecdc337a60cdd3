/*
 * A decided plan told rule by rule: `key: value  <- who said so`.
 *
 * The notes of a plan name who changed what, last one last; a key without a note has the
 * built-in value, which the file may have repeated.
 */
#include "policy/file.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

static const char *last_note(const struct plan *plan, const char *what)
{
	for (size_t i = plan->note_count; i-- > 0;)
		if (str_is(plan->notes[i].what, what))
			return plan->notes[i].where;
	return NULL;
}

static int add_place(const struct policy *policy, struct policy_mark mark, struct buf *buf)
{
	return buf_printf(buf, "%s:%u:%u", policy->name, mark.line, mark.column);
}

static const struct plan_gap *gap_of(const struct plan *plan, const char *key)
{
	const struct plan_gap *gap;
	size_t at = 0;

	while ((gap = plan_gap_next(plan, &at)))
		if (str_is(gap->key, key))
			return gap;
	return NULL;
}

static int add_gap(const struct plan_gap *gap, struct buf *buf)
{
	return buf_printf(buf, gap->is_refused ? "; refused by run: %s" : "; no effect on run: %s",
			  gap->why);
}

static int explain_key(const struct policy *policy, const struct plan *plan, size_t id,
		       struct buf *buf)
{
	const struct key *key = &policy_keys[id];
	const struct plan_gap *gap = gap_of(plan, key->path);
	const char *where = last_note(plan, key->path);
	int code = buf_printf(buf, "%s: ", key->path);

	if (code == 0)
		code = key_show(key, plan, SHOW_NAMES, buf);
	if (code == -EILSEQ)
		code = buf_add_text(buf, "(not UTF-8)");
	if (code == 0)
		code = buf_add_text(buf, "  <- ");
	if (code == 0 && !where && policy && policy->values[id].is_set)
		code = add_place(policy, policy->values[id].mark, buf);
	else if (code == 0)
		code = buf_add_text(buf, where ? where : "built-in");
	if (code == 0 && gap)
		code = add_gap(gap, buf);
	return code < 0 ? code : buf_add_byte(buf, '\n');
}

/* Rules of the file that are not values of the plan. */
static int explain_rules(const struct policy *policy, struct buf *buf)
{
	const struct policy_value *rules = &policy->values[KEY_STRICT_WHEN];
	const struct policy_value *override = &policy->values[KEY_OVERRIDES_PER_REQUEST];
	int code = 0;

	for (size_t i = 0; code == 0 && i < rules->count; i++) {
		code = buf_printf(buf, "strict_when: {%s: ", rules->items[i].name);
		if (code == 0)
			code = key_show_text(rules->items[i].text, buf);
		if (code == 0)
			code = buf_add_text(buf, "}  <- ");
		if (code == 0)
			code = add_place(policy, rules->items[i].mark, buf);
		if (code == 0)
			code = buf_add_byte(buf, '\n');
	}
	if (code == 0 && override->is_set) {
		code = buf_printf(buf, "overrides.per_request: %s  <- ",
				  override->number ? "true" : "false");
		if (code == 0)
			code = add_place(policy, override->mark, buf);
		if (code == 0)
			code = buf_add_byte(buf, '\n');
	}
	return code;
}

int policy_explain(const struct policy *policy, const struct plan *plan, struct buf *ret_text)
{
	int code = 0;

	for (size_t id = 0; code == 0 && id < KEY_COUNT; id++)
		if (policy_keys[id].width)
			code = explain_key(policy, plan, id, ret_text);
	return code < 0 || !policy ? code : explain_rules(policy, ret_text);
}

/* Enough of a plan for plan_gap_next(): what the file says, decided by nobody. */
static void take_values(const struct policy *policy, struct plan *plan)
{
	static struct plan_gate function;

	for (size_t id = 0; id < KEY_COUNT; id++) {
		const struct policy_value *value = &policy->values[id];
		enum key_kind kind = policy_keys[id].kind;

		if (value->is_set && (kind == KIND_CHOICE || kind == KIND_TIME))
			key_store(&policy_keys[id], plan, value->number);
	}
	plan->needs_approval |= policy->values[KEY_TIER].approval;
	plan->image = policy->values[KEY_CONTAINER_IMAGE].text;
	if (policy->values[KEY_BACKEND].is_set)
		plan->backend = policy->values[KEY_BACKEND].text;
	if (gates_have_function(&policy->values[KEY_GATES])) {
		plan->gates = &function;
		plan->gate_count = 1;
	}
}

int policy_remarks(const struct policy *policy, struct buf *ret_text)
{
	const struct plan_gap *gap;
	struct plan plan;
	size_t at = 0;
	int code = plan_init(&plan, TIER_BALANCED);

	if (code < 0)
		return code;
	take_values(policy, &plan);
	while (code == 0 && (gap = plan_gap_next(&plan, &at))) {
		const struct policy_value *value = &policy->values[key_find(gap->key)];

		/* A tier's name may ask for approval without that key. */
		code = add_place(policy,
				 value->is_set ? value->mark : policy->values[KEY_TIER].mark,
				 ret_text);
		if (code == 0)
			code = buf_printf(ret_text, ": %s", gap->key);
		if (code == 0)
			code = add_gap(gap, ret_text);
		if (code == 0)
			code = buf_add_byte(ret_text, '\n');
	}
	plan_done(&plan);
	return code;
}
