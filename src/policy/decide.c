/*
 * Built-in defaults, then the file, then the flags: one plan, and who decided what.
 *
 * The order of tiers comes first because defaults depend on it. strict_when needs the
 * mounts, which need the file and the flags, so a request that turns out to need strict is
 * decided a second time from strict's defaults; there is no plan that was raised half way.
 */
#include "policy/decide.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"

enum { MAX_SHOWN = 64 << 10, STAY_IDLE_MS = 30 * 60 * 1000 };

const char *decide_place(struct decision *d, struct policy_mark mark)
{
	return arena_printf(&d->plan->arena, "%s:%u:%u", d->policy->name, mark.line, mark.column);
}

int decide_no_memory(struct decision *d)
{
	return csn_fail(d->err, -ENOMEM, "policy",
			"the request does not fit in memory; make its lists shorter");
}

const char *decide_shown(struct decision *d, enum key_id id, const struct plan *plan)
{
	static const char hidden[] = "(not shown)";
	_cleanup_buf_ struct buf buf;
	const char *text;

	buf_init(&buf, MAX_SHOWN);
	if (key_show(&policy_keys[id], plan, SHOW_NAMES, &buf) < 0)
		return hidden;
	text = arena_copy(&d->plan->arena, buf_at(&buf), buf_size(&buf));
	return text ? text : hidden;
}

/* Same value? Texts in the plan's memory never change, so a shown value decides. */
static bool is_same(struct decision *d, enum key_id id, const struct plan *a, const struct plan *b)
{
	_cleanup_buf_ struct buf one, two;

	(void)d;
	buf_init(&one, MAX_SHOWN);
	buf_init(&two, MAX_SHOWN);
	if (key_show(&policy_keys[id], a, SHOW_VALUES, &one) < 0 ||
	    key_show(&policy_keys[id], b, SHOW_VALUES, &two) < 0)
		return false;
	return buf_size(&one) == buf_size(&two) &&
	       memcmp(buf_at(&one), buf_at(&two), buf_size(&one)) == 0;
}

int decide_note(struct decision *d, enum key_id id, const struct plan *before, const char *where,
		bool loosens)
{
	struct plan_note note = { policy_keys[id].path, .where = where, .loosens = loosens };

	if (is_same(d, id, before, d->plan))
		return 0;
	note.old = decide_shown(d, id, before);
	note.now = decide_shown(d, id, d->plan);
	return plan_note(d->plan, &note) < 0 ? decide_no_memory(d) : 0;
}

bool decide_budget_follows(const struct decision *d)
{
	return !(d->policy && d->policy->values[KEY_LIMITS_BUDGET].is_set) &&
	       d->plan->limits.command_ms > d->plan->limits.budget_ms;
}

int decide_note_tier(struct decision *d, enum plan_tier old, enum plan_tier now, const char *where)
{
	struct plan_note note = { "tier", plan_tier_name(old), plan_tier_name(now), where,
				  .loosens = now < old };

	return !where || plan_note(d->plan, &note) < 0 ? decide_no_memory(d) : 0;
}

static int join(struct decision *d, const char *folder, const char *path, const char *where,
		char *ret_path)
{
	if (path_join(folder, path, ret_path, POLICY_PATH_MAX) < 0)
		return csn_fail(d->err, -EINVAL, "policy",
				"%.120s: %.200s is not a usable path; give one that is shorter and "
				"does not climb above /",
				where, path);
	return 0;
}

static int join_real(struct decision *d, const char *folder, const char *path, const char *where,
		     char *ret_path)
{
	int code = join(d, folder, path, where, ret_path);

	return code < 0 ? code : decide_real(d, WANT_FOLDER, where, ret_path);
}

static int store_number(struct decision *d, enum key_id id, const struct policy_value *value,
			const char *folder, const char *where)
{
	(void)folder;
	(void)where;
	key_store(&policy_keys[id], d->plan, value->number);
	return 0;
}

static int store_text(struct decision *d, enum key_id id, const struct policy_value *value,
		      const char *folder, const char *where)
{
	char path[POLICY_PATH_MAX];
	const char *text = value->text;
	char *at = (char *)d->plan + policy_keys[id].offset;
	int code = 0;

	if (id == KEY_WORKSPACE_PATH)
		code = join_real(d, folder, text, where, path);
	else if (text && text[0] == '/' && policy_keys[id].is_valid == text_is_inside)
		code = join(d, "/", text, where, path);
	else
		path[0] = 0;
	if (code < 0)
		return code;
	if (text) {
		text = arena_text(&d->plan->arena, path[0] ? path : text);
		if (!text)
			return decide_no_memory(d);
	}
	memcpy(at, &text, sizeof text);
	return 0;
}

static int store_list(struct decision *d, enum key_id id, const struct policy_value *value,
		      const char *folder, const char *where)
{
	const char **list = arena_array(&d->plan->arena, value->count + 1, sizeof *list);
	char path[POLICY_PATH_MAX];
	size_t count = 0;

	if (!list)
		return decide_no_memory(d);
	if (policy_keys[id].choices) {
		key_store(&policy_keys[id], d->plan, value->count > 0);
		return 0;
	}
	for (size_t i = 0; i < value->count; i++) {
		const char *text = value->items[i].text;
		int code = id == KEY_MOUNT_ROOTS ? join(d, folder, text, where, path) : 0;

		if (code == 0 && id == KEY_MOUNT_ROOTS)
			code = decide_real(d, WANT_ROOT, where, path);
		if (code < 0)
			return code;
		if (id == KEY_MOUNT_ROOTS)
			text = path;
		if (id == KEY_FORWARDS)
			code = decide_forward(d, text, folder, where, &text);
		if (code < 0)
			return code;
		/* Two spellings of one folder are one. */
		if (!policy_keys[id].may_repeat && plan_has(list, text))
			continue;
		list[count] = arena_text(&d->plan->arena, text);
		if (!list[count++])
			return decide_no_memory(d);
	}
	memcpy((char *)d->plan + policy_keys[id].offset, &list, sizeof list);
	return 0;
}

static int store_env(struct decision *d, enum key_id id, const struct policy_value *value,
		     const char *folder, const char *where)
{
	const char **list = arena_array(&d->plan->arena, value->count + 1, sizeof *list);

	(void)id;
	(void)folder;
	(void)where;
	if (!list)
		return decide_no_memory(d);
	for (size_t i = 0; i < value->count; i++) {
		list[i] = arena_printf(&d->plan->arena, "%s=%s", value->items[i].name,
				       value->items[i].text);
		if (!list[i])
			return decide_no_memory(d);
	}
	d->plan->env_set = list;
	return 0;
}

static int store_mounts(struct decision *d, enum key_id id, const struct policy_value *value,
			const char *folder, const char *where)
{
	int code = 0;

	(void)id;
	for (size_t i = 0; code == 0 && i < value->count; i++) {
		const struct policy_item *item = &value->items[i];
		char host[POLICY_PATH_MAX], at[POLICY_PATH_MAX];
		const char *place = item->mark.line ? decide_place(d, item->mark) : where;
		struct plan_mount mount = { host, at, (enum plan_access)item->access };

		if (!place)
			return decide_no_memory(d);
		code = join(d, folder, item->name, place, host);
		if (code == 0)
			code = join(d, "/", item->text, place, at);
		if (code == 0)
			code = decide_real(d, WANT_MOUNTABLE, place, host);
		if (code == 0)
			code = decide_add_mount(d, &mount, place);
	}
	return code;
}

static int store_gates(struct decision *d, enum key_id id, const struct policy_value *value,
		       const char *folder, const char *where)
{
	(void)id;
	return decide_gates(d, value, folder, where);
}

int decide_store(struct decision *d, enum key_id id, const struct policy_value *value,
		 const char *folder, const char *where)
{
	static int (*const stores[KIND_COUNT_])(struct decision *, enum key_id,
						const struct policy_value *, const char *,
						const char *) = {
		[KIND_CHOICE] = store_number, [KIND_BOOL] = store_number,
		[KIND_TIME] = store_number,   [KIND_SIZE] = store_number,
		[KIND_COUNT] = store_number,  [KIND_CPUS] = store_number,
		[KIND_TEXT] = store_text,     [KIND_LIST] = store_list,
		[KIND_ENV] = store_env,       [KIND_MOUNTS] = store_mounts,
		[KIND_GATES] = store_gates,
	};

	return stores[policy_keys[id].kind](d, id, value, folder, where);
}

/* A file that was found, not given, is whoever's wrote the folder: it may only tighten. */
static int refuse_untrusted(struct decision *d, enum key_id id, struct policy_mark mark)
{
	bool in_plan = policy_keys[id].width != 0;

	return csn_fail(d->err, -EPERM, "policy",
			"%.120s:%u:%u: %s: %.80s loosens the built-in %.80s, which a file found by "
			"search may not do until you trust it; read it, then run: caisson policy "
			"trust",
			d->policy->name, mark.line, mark.column, policy_keys[id].path,
			in_plan ? decide_shown(d, id, d->plan) : "true",
			in_plan ? decide_shown(d, id, &d->built_in) : "false");
}

static int apply_key(struct decision *d, enum key_id id)
{
	const struct policy_value *value = &d->policy->values[id];
	struct plan before = *d->plan;
	const char *where = decide_place(d, value->mark);
	bool is_wider;
	int code;

	if (!where)
		return decide_no_memory(d);
	if (id != KEY_TIER) {
		code = decide_store(d, id, value, d->facts->policy_dir, where);
		if (code < 0)
			return code;
	}
	is_wider = key_is_wider(&policy_keys[id], d->plan, &d->built_in);
	if (is_wider && !d->is_trusted)
		return refuse_untrusted(d, id, value->mark);
	return decide_note(d, id, &before, where, is_wider);
}

/* One command may not outlast the budget of all: where nobody set a budget, it grows with it. */
static int raise_budget(struct decision *d)
{
	const struct policy_value *command = &d->policy->values[KEY_LIMITS_COMMAND];
	struct plan before = *d->plan;
	const char *where;

	if (!command->is_set || !decide_budget_follows(d))
		return 0;
	d->plan->limits.budget_ms = d->plan->limits.command_ms;
	where = decide_place(d, command->mark);
	return where ? decide_note(d, KEY_LIMITS_BUDGET, &before, where, true)
		     : decide_no_memory(d);
}

/* The file's own tier; a tier raised by flag or rule notes itself. */
static int apply_tier(struct decision *d)
{
	const struct policy_value *value = &d->policy->values[KEY_TIER];
	enum plan_tier tier = (enum plan_tier)value->number;

	if (!value->is_set || tier == TIER_BALANCED)
		return 0;
	return decide_note_tier(d, TIER_BALANCED, tier, decide_place(d, value->mark));
}

static int apply_file(struct decision *d)
{
	const struct policy_value *values = d->policy->values;
	const struct policy_value *override = &values[KEY_OVERRIDES_PER_REQUEST];
	int code = apply_tier(d);

	for (unsigned id = 0; code == 0 && id < KEY_COUNT; id++)
		if (values[id].is_set && policy_keys[id].width && id != KEY_TIER)
			code = apply_key(d, (enum key_id)id);
	if (code == 0)
		code = raise_budget(d);
	if (code == 0 && override->is_set && override->number && !d->is_trusted)
		code = refuse_untrusted(d, KEY_OVERRIDES_PER_REQUEST, override->mark);
	if (code == 0 && values[KEY_TIER].approval && !d->plan->needs_approval) {
		struct plan before = *d->plan;

		d->plan->needs_approval = true;
		code = decide_note(d, KEY_APPROVAL, &before, decide_place(d, values[KEY_TIER].mark),
				   false);
	}
	return code;
}

/* Who made it strict: the two are told apart when strict cannot be had. */
static void mark_strict(struct decision *d, bool by_rule)
{
	const struct policy_value *tier = d->policy ? &d->policy->values[KEY_TIER] : NULL;
	enum plan_tier asked;
	bool approval;

	d->plan->strict_by_policy =
		by_rule || (tier && tier->is_set && tier->number == TIER_STRICT);
	d->plan->strict_by_request = d->request->tier &&
				     plan_tier_parse(d->request->tier, &asked, &approval) == 0 &&
				     asked == TIER_STRICT;
	d->plan->local_is_trusted = d->plan->tier == TIER_LOCAL;
}

/* A rule of strict_when only raises. */
static int note_rule(struct decision *d, enum plan_tier tier, const struct policy_item *rule)
{
	const struct policy_value *value = &d->policy->values[KEY_TIER];
	enum plan_tier old = value->is_set ? (enum plan_tier)value->number : TIER_BALANCED;

	return decide_note_tier(d, old, tier, decide_place(d, rule->mark));
}

static int fill_plan(struct decision *d, enum plan_tier tier, const struct policy_item *rule)
{
	struct plan *plan = d->plan;
	int code = 0;

	if (d->request->stays) {
		plan->limits.idle_ms = STAY_IDLE_MS;
		plan->limits.budget_ms = PLAN_UNLIMITED;
	}
	plan->workspace.host = arena_text(&plan->arena, d->facts->project);
	if (!plan->workspace.host)
		return decide_no_memory(d);
	memset(d->by_flag, 0, sizeof d->by_flag);
	d->built_in = *plan;
	if (d->policy)
		code = apply_file(d);
	if (code < 0)
		return code;
	if (rule)
		code = note_rule(d, tier, rule);
	if (code < 0)
		return code;
	d->granted = *plan;
	code = decide_flags(d);
	if (code == 0)
		code = decide_places(d);
	if (code == 0)
		code = decide_forwards_fit(d);
	if (code == 0)
		code = decide_functions(d);
	return code < 0 ? code : decide_gates_safe(d);
}

static int build(struct decision *d, enum plan_tier tier, const struct policy_item *rule)
{
	struct plan *plan = d->plan;
	int code;

	if (plan_init(plan, tier) < 0)
		return csn_fail(d->err, -ENOMEM, "policy", "out of memory");
	code = fill_plan(d, tier, rule);
	if (code < 0)
		return code;
	code = decide_keep_rules(d);
	if (code < 0)
		return code;
	mark_strict(d, rule != NULL);
	if (d->policy) {
		plan->policy_path = arena_text(&plan->arena, d->policy->name);
		plan->policy_is_trusted = d->is_trusted;
		if (!plan->policy_path)
			return decide_no_memory(d);
	}
	plan_require(plan);
	return 0;
}

static int decide(struct decision *d)
{
	const struct policy_item *rule = NULL;
	enum plan_tier tier;
	int code = decide_tier(d, &tier);

	if (code == 0)
		code = build(d, tier, NULL);
	if (code == 0)
		code = decide_strict_rule(d, &rule);
	if (code == 0 && rule && tier < TIER_STRICT) {
		plan_done(d->plan);
		return build(d, TIER_STRICT, rule);
	}
	if (code == 0 && rule)
		d->plan->strict_by_policy = true;
	return code;
}

int policy_decide(const struct policy *policy, const struct policy_request *request,
		  const struct policy_facts *facts, struct plan *ret_plan, struct csn_error *err)
{
	struct plan plan = { 0 };
	struct decision d = {
		.policy = policy, .request = request, .facts = facts, .err = err, .plan = &plan
	};
	int code;

	d.is_trusted = facts->policy_is_trusted || facts->policy_is_explicit;
	d.flags_may_loosen =
		policy && d.is_trusted && policy->values[KEY_OVERRIDES_PER_REQUEST].number != 0;
	code = decide(&d);
	if (code < 0) {
		plan_done(&plan);
		return code;
	}
	plan.env_any = d.flags_may_loosen;
	*ret_plan = plan;
	return 0;
}

bool policy_says(const struct policy *policy, const char *key)
{
	enum key_id id = key_find(key);

	return policy && id != KEY_COUNT && policy->values[id].is_set;
}
