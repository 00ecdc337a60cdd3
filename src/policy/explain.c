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

static int explain_key(const struct policy *policy, const struct plan *plan, size_t id,
		       struct buf *buf)
{
	const struct key *key = &policy_keys[id];
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
