/*
 * What a request may change. Grants are the caller's to lend while no file speaks for the
 * folder; bounds are the file's. So: every flag is applied first, then each key it touched
 * is compared with what stood before, and what became wider without a right to it is
 * refused with the YAML that would give that right.
 */
#include "policy/decide.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"
#include "policy/slip.h"

enum { MAX_ENTRIES = 256, MAX_YAML = 4096 };

static int too_many(struct decision *d, const char *flag)
{
	return csn_fail(d->err, -E2BIG, "policy",
			"more than %d times %s; put them into a policy file", MAX_ENTRIES, flag);
}

static int not_text(struct decision *d, const char *flag)
{
	return csn_fail(d->err, -EINVAL, "policy",
			"%s has a control character or bytes that are not UTF-8; rename it", flag);
}

static size_t count_of(const char *const *list)
{
	size_t count = 0;

	while (list && list[count])
		count++;
	return count;
}

/* Bounded, and text that a log and a policy file can hold. */
static int check_list(struct decision *d, const char *const *list, const char *flag)
{
	if (count_of(list) > MAX_ENTRIES)
		return too_many(d, flag);
	for (; list && *list; list++)
		if (**list && !str_is_utf8(*list, strlen(*list)))
			return not_text(d, flag);
	return 0;
}

static int check_request(struct decision *d)
{
	const struct policy_request *r = d->request;
	const struct {
		const char *const *list;
		const char *flag;
	} lists[] = {
		{ r->mounts, "--mount" },
		{ r->allow, "--allow" },
		{ r->limits, "--limit" },
		{ r->env, "--env" },
		{ r->tags, "--tag" },
		{ r->forwards, "--forward" },
		{ (const char *const[]){ r->workspace, NULL }, "--workspace" },
	};
	int code = 0;

	for (size_t i = 0; code == 0 && i < ARRAY_SIZE(lists); i++)
		code = check_list(d, lists[i].list, lists[i].flag);
	return code;
}

/* Reads one flag's text as the value of a key and puts it into the plan. */
static int take(struct decision *d, enum key_id id, const char *text, const char *where)
{
	struct policy_source source = { &d->plan->arena, where, d->err };
	struct policy_value value;
	int code = value_read_text(&source, &policy_keys[id], text, &value);

	if (code == 0)
		code = decide_store(d, id, &value, d->facts->cwd, where);
	if (code == 0)
		d->by_flag[id] = where;
	return code;
}

static int take_texts(struct decision *d)
{
	const struct policy_request *r = d->request;
	const struct {
		const char *text;
		enum key_id id;
		const char *where;
	} flags[] = {
		{ r->backend, KEY_BACKEND, r->backend_from ? r->backend_from : "--backend" },
		{ r->workspace, KEY_WORKSPACE_PATH, "--workspace" },
		{ r->workspace_mode, KEY_WORKSPACE_MODE, "--workspace mode" },
		{ r->workspace_at, KEY_WORKSPACE_AT, "--at" },
		{ r->network, KEY_NETWORK_MODE, "--network" },
		{ r->allow && r->allow[0] && !r->network ? "allow" : NULL, KEY_NETWORK_MODE,
		  "--allow" },
	};
	int code = 0;

	for (size_t i = 0; code == 0 && i < ARRAY_SIZE(flags); i++)
		if (flags[i].text)
			code = take(d, flags[i].id, flags[i].text, flags[i].where);
	return code;
}

static int take_allow(struct decision *d)
{
	const char **list;

	if (!d->request->allow || !d->request->allow[0])
		return 0;
	list = arena_array(&d->plan->arena, 1, sizeof *list);
	if (!list)
		return decide_no_memory(d);
	for (const char *const *host = d->request->allow; *host; host++) {
		int code;

		if (!text_is_host(*host))
			return csn_fail(d->err, -EINVAL, "policy",
					"--allow: \"%.100s\" is not a host, expected %s", *host,
					policy_keys[KEY_NETWORK_ALLOW].expected);
		code = plan_has(list, *host) ? 0 : decide_add_text(d, &list, *host);
		if (code < 0)
			return code;
	}
	d->plan->allow = list;
	d->by_flag[KEY_NETWORK_ALLOW] = "--allow";
	return 0;
}

/*
 * A list of hosts without its mode says nothing: from flags it is a slip, and the file's own
 * goes with a mode that a flag made stricter.
 */
static int settle_allow(struct decision *d)
{
	if (!d->plan->allow[0] || d->plan->network == NETWORK_ALLOW)
		return 0;
	if (d->by_flag[KEY_NETWORK_ALLOW])
		return csn_fail(d->err, -EINVAL, "policy",
				"--allow names hosts and --network %s reaches none of them; leave "
				"one of the two out",
				plan_network_name(d->plan->network));
	d->plan->allow = arena_array(&d->plan->arena, 1, sizeof *d->plan->allow);
	if (!d->plan->allow)
		return decide_no_memory(d);
	d->by_flag[KEY_NETWORK_ALLOW] = "--network";
	return 0;
}

static int no_such_limit(struct decision *d, const char *name)
{
	const char *meant = slip_limit(name);

	return csn_fail(d->err, -EINVAL, "policy",
			"--limit %s: no such limit, expected command, budget, startup, idle, "
			"cpus, memory, processes, output, open_files or scratch%s%s%s",
			name, meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
}

/* KEY=VALUE; KEY as in `limits:`, and `scratch`. */
static int take_limit(struct decision *d, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t n = equals ? (size_t)(equals - text) : 0;
	char path[64], name[32];
	const char *where;
	enum key_id id;

	if (!equals || n == 0 || n >= sizeof name)
		return csn_fail(d->err, -EINVAL, "policy",
				"--limit %.100s: expected KEY=VALUE, such as command=10m", text);
	snprintf(name, sizeof name, "%.*s", (int)n, text);
	snprintf(path, sizeof path, "limits.%s", name);
	id = str_is(name, "scratch") ? KEY_SCRATCH_SIZE : key_find(path);
	if (id == KEY_COUNT)
		return no_such_limit(d, name);
	where = arena_printf(&d->plan->arena, "--limit %s", name);
	return where ? take(d, id, equals + 1, where) : decide_no_memory(d);
}

static int take_limits(struct decision *d)
{
	int code = 0;

	for (const char *const *text = d->request->limits; code == 0 && text && *text; text++)
		code = take_limit(d, *text);
	return code;
}

/* As in the file: a longer command takes the budget along where the flag may loosen at all. */
static int raise_budget(struct decision *d)
{
	const char *where = d->by_flag[KEY_LIMITS_COMMAND];

	if (!where || d->by_flag[KEY_LIMITS_BUDGET] || !d->flags_may_loosen ||
	    !decide_budget_follows(d))
		return 0;
	d->plan->limits.budget_ms = d->plan->limits.command_ms;
	d->by_flag[KEY_LIMITS_BUDGET] = where;
	return 0;
}

/* The entry of a "NAME=VALUE" list for a name of n bytes, or NULL. */
static const char **find_variable(const char **list, const char *name, size_t n)
{
	for (; *list; list++)
		if (strncmp(*list, name, n) == 0 && (*list)[n] == '=')
			return list;
	return NULL;
}

static int pass_variable(struct decision *d, const char *name)
{
	if (plan_has(d->plan->env_pass, name))
		return 0;
	d->by_flag[KEY_ENV_PASS] = "--env";
	return decide_add_text(d, &d->plan->env_pass, name);
}

/*
 * A value of the caller's own. Where a file is in force it may do that for the names the
 * file passes: passing the caller's variable and setting it first come to the same.
 */
static int set_variable(struct decision *d, const char *name, const char *text)
{
	const char **list, **old = find_variable(d->plan->env_set, name, strlen(name));
	size_t skip = old ? (size_t)(old - d->plan->env_set) : SIZE_MAX;
	int code = 0;

	if (old && str_is(*old, text))
		return 0;
	if (d->policy && !plan_has(d->granted.env_pass, name))
		return pass_variable(d, name);
	list = arena_array(&d->plan->arena, 1, sizeof *list);
	if (!list)
		return decide_no_memory(d);
	for (size_t i = 0; code == 0 && d->plan->env_set[i]; i++)
		if (i != skip)
			code = decide_add_text(d, &list, d->plan->env_set[i]);
	if (code == 0)
		code = decide_add_text(d, &list, text);
	d->plan->env_set = list;
	return code;
}

static int take_env(struct decision *d)
{
	struct plan before = *d->plan;
	int code = 0;

	for (const char *const *text = d->request->env; code == 0 && text && *text; text++) {
		const char *equals = strchr(*text, '=');
		size_t n = equals ? (size_t)(equals - *text) : strlen(*text);
		const char *name = arena_copy(&d->plan->arena, *text, n);

		if (!name)
			return decide_no_memory(d);
		if (!text_is_name(name))
			return csn_fail(
				d->err, -EINVAL, "policy",
				"--env: not a variable's name, expected letters, digits and _ "
				"(NAME or NAME=VALUE)");
		code = equals ? set_variable(d, name, *text) : pass_variable(d, name);
	}
	return code < 0 ? code : decide_note(d, KEY_ENV_SET, &before, "--env", false);
}

/* A narrower workspace keeps what was hidden and protected in the wider one. */
static int rebase_list(struct decision *d, const char *tail, const char ***list)
{
	const char **fresh = arena_array(&d->plan->arena, 1, sizeof *fresh);
	int code = fresh ? 0 : decide_no_memory(d);
	char folder[101], host[101];

	str_escape(tail, false, folder, sizeof folder);
	str_escape(d->plan->workspace.host, false, host, sizeof host);
	for (const char **old = *list; code == 0 && *old; old++) {
		const char *pattern;

		if (plan_rebase(*old, tail, &pattern) < 0)
			return csn_fail_lines(
				d->err, -EPERM, "policy",
				"--workspace: the policy hides or protects %.100s, which cannot "
				"be kept in the folder %s alone; lend the whole workspace, "
				"or write in the policy file:\nworkspace: {path: %s}",
				*old, folder, host);
		if (!plan_has(fresh, pattern))
			code = decide_add_text(d, &fresh, pattern);
	}
	if (code == 0)
		*list = fresh;
	return code;
}

static int narrow_workspace(struct decision *d)
{
	const char *host = d->plan->workspace.host, *whole = d->granted.workspace.host, *tail;
	int code;

	if (!d->policy || !d->by_flag[KEY_WORKSPACE_PATH] || !path_is_beneath(host, whole) ||
	    str_is(host, whole))
		return 0;
	tail = path_tail(host, whole);
	code = rebase_list(d, tail, &d->plan->workspace.hide);
	if (code == 0)
		code = rebase_list(d, tail, &d->plan->workspace.protect);
	return code;
}

/* Is `key` in the same section as `last` (NULL: none before)? */
static bool shares_section(const struct key *last, const struct key *key)
{
	size_t n = key_section(key);

	return last && n && key_section(last) == n && memcmp(last->path, key->path, n) == 0;
}

/* Appends `section: {key: value, ...}` or `key: value` lines for the refused keys. */
static int add_yaml(struct decision *d, const bool *is_refused, struct buf *yaml)
{
	const struct key *last = NULL;
	int code = 0;

	for (size_t id = 0; code == 0 && id < KEY_COUNT; id++) {
		const struct key *key = &policy_keys[id];
		size_t n = key_section(key);

		if (!is_refused[id])
			continue;
		if (shares_section(last, key))
			code = buf_add_text(yaml, ", ");
		else
			code = buf_printf(yaml, "%s%s%.*s%s", last && key_section(last) ? "}" : "",
					  last ? "\n" : "", (int)n, key->path, n ? ": {" : "");
		if (code == 0)
			code = buf_printf(yaml, "%s: ", key->path + (n ? n + 1 : 0));
		if (code == 0)
			code = key_show(key, d->plan, SHOW_NAMES, yaml);
		last = key;
	}
	return code < 0 || !last || !key_section(last) ? code : buf_add_byte(yaml, '}');
}

/* What no wall of this build can do is not offered as lines for a policy. */
static const struct plan_gap *refused_anyway(const struct decision *d, const char *key)
{
	const struct plan_gap *gap;
	size_t at = 0;

	while ((gap = plan_gap_next(d->plan, &at)))
		if (gap->is_refused && str_is(gap->key, key))
			return gap;
	return NULL;
}

static int refuse_gap(struct decision *d, size_t id, const struct plan_gap *gap)
{
	return csn_fail(d->err, -EPERM, "policy",
			"%.60s: %.60s is wider than the %s %.60s, and not available in this "
			"build: %s; leave it out",
			d->by_flag[id], decide_shown(d, (enum key_id)id, d->plan),
			d->policy ? "policy's" : "built-in",
			decide_shown(d, (enum key_id)id, &d->granted), gap->why);
}

static int refuse_flags(struct decision *d, bool *is_refused)
{
	_cleanup_buf_ struct buf yaml;
	char way[WAY_TEXT];
	const char *text;
	size_t id = 0;

	while (!is_refused[id])
		id++;
	/*
	 * The lines should work as they are. A list of hosts means nothing without its mode, and
	 * what a flag lends while there is no file, a new file would take away.
	 */
	for (size_t key = 0; !d->policy && key < KEY_COUNT; key++)
		is_refused[key] |= d->by_flag[key] && policy_keys[key].kind == KIND_CHOICE &&
				   key_is_wider(&policy_keys[key], d->plan, &d->granted);
	is_refused[KEY_NETWORK_MODE] |= is_refused[KEY_NETWORK_ALLOW];
	buf_init(&yaml, MAX_YAML);
	text = add_yaml(d, is_refused, &yaml) < 0 ? NULL : buf_text(&yaml);
	return csn_fail_lines(
		d->err, -EPERM, "policy",
		"%.60s: %.60s is wider than the %s %.60s; a trusted policy file may permit "
		"it: %s\n%s",
		d->by_flag[id], decide_shown(d, (enum key_id)id, d->plan),
		d->policy ? "policy's" : "built-in", decide_shown(d, (enum key_id)id, &d->granted),
		decide_way(d, is_refused, way), text ? text : policy_keys[id].path);
}

/* The first refused flag; one that no build of ours carries out is not offered as YAML. */
static int refuse(struct decision *d, bool *is_refused)
{
	const struct plan_gap *gap;

	for (size_t id = 0; id < KEY_COUNT; id++) {
		gap = is_refused[id] ? refused_anyway(d, policy_keys[id].path) : NULL;
		if (gap)
			return refuse_gap(d, id, gap);
	}
	return refuse_flags(d, is_refused);
}

/* May this key become wider because a flag says so? */
static bool may_widen(const struct decision *d, const struct key *key)
{
	if (d->policy)
		return !key->is_grant && d->flags_may_loosen;
	/* Loopback is lent like a folder; a way out is not. */
	if (key == &policy_keys[KEY_NETWORK_MODE])
		return d->plan->network == NETWORK_LOOPBACK;
	return key->is_grant || key == &policy_keys[KEY_BACKEND];
}

static int check_flags(struct decision *d)
{
	bool is_refused[KEY_COUNT] = { false }, is_fine = true;
	int code = 0;

	for (size_t id = 0; code == 0 && id < KEY_COUNT; id++) {
		const struct key *key = &policy_keys[id];
		bool is_wider;

		if (!d->by_flag[id])
			continue;
		is_wider = key_is_wider(key, d->plan, &d->granted);
		is_refused[id] = is_wider && !may_widen(d, key);
		is_fine &= !is_refused[id];
		code = decide_note(d, (enum key_id)id, &d->granted, d->by_flag[id],
				   is_wider && !key->is_grant && d->policy);
	}
	return code < 0 || is_fine ? code : refuse(d, is_refused);
}

static int split_mount(struct decision *d, const char *text, struct plan_mount *ret_mount)
{
	char *copy = arena_text(&d->plan->arena, text);

	if (!copy)
		return decide_no_memory(d);
	if (policy_split_mount(copy, ret_mount) < 0)
		return csn_fail(d->err, -EINVAL, "policy",
				"--mount %.100s: expected HOST:AT[:ro|rw], AT an absolute path",
				text);
	return 0;
}

static int parse_mount(struct decision *d, const char *text, struct plan_mount *ret_mount)
{
	char host[POLICY_PATH_MAX], at[POLICY_PATH_MAX];
	struct plan_mount mount;
	int code = split_mount(d, text, &mount);

	if (code < 0)
		return code;
	if (!text_is_inside(mount.at) || path_normalize(mount.at, at, sizeof at) < 0)
		return csn_fail(d->err, -EINVAL, "policy",
				"--mount: %.200s is not a place for a mount, expected %s", mount.at,
				policy_keys[KEY_SCRATCH_AT].expected);
	if (path_join(d->facts->cwd, mount.host, host, sizeof host) < 0)
		return csn_fail(
			d->err, -EINVAL, "policy",
			"--mount: %.200s is not a usable path; give one that is shorter and "
			"does not climb above /",
			mount.host);
	code = decide_real(d, WANT_MOUNTABLE, "--mount", host);
	if (code < 0)
		return code;
	mount.at = arena_text(&d->plan->arena, at);
	mount.host = arena_text(&d->plan->arena, host);
	if (!mount.at || !mount.host)
		return decide_no_memory(d);
	*ret_mount = mount;
	return 0;
}

static bool is_beneath_one(const char *path, const char *const *roots)
{
	for (; *roots; roots++)
		if (path_is_beneath(path, *roots))
			return true;
	return false;
}

/* A mount of the file's, which the flag asks for again or asks less of; NULL if none is. */
static struct plan_mount *same_mount(struct decision *d, const struct plan_mount *mount)
{
	for (size_t i = 0; i < d->granted.mount_count; i++) {
		struct plan_mount *old = &d->plan->mounts[i];

		if (str_is(old->at, mount->at) && path_is_beneath(mount->host, old->host) &&
		    (mount->access == ACCESS_RO || old->access == ACCESS_RW))
			return old;
	}
	return NULL;
}

static int refuse_mount(struct decision *d, const struct plan_mount *mount)
{
	_cleanup_buf_ struct buf yaml;
	const bool wanted[KEY_COUNT] = { [KEY_MOUNT_ROOTS] = true };
	char way[WAY_TEXT], host[101];
	const char *text = NULL;

	str_escape(mount->host, false, host, sizeof host);
	buf_init(&yaml, MAX_YAML);
	if (decide_add_text(d, &d->plan->mount_roots, mount->host) == 0 &&
	    key_show(&policy_keys[KEY_MOUNT_ROOTS], d->plan, SHOW_NAMES, &yaml) == 0)
		text = buf_text(&yaml);
	return csn_fail_lines(d->err, -EPERM, "policy",
			      "--mount: %s is beneath none of the policy's mount_roots; a trusted "
			      "policy file may permit it: %s\nmount_roots: %s",
			      host, decide_way(d, wanted, way), text ? text : "[HOST]");
}

static int take_mount(struct decision *d, const char *text)
{
	struct plan_mount mount, *old;
	int code = parse_mount(d, text, &mount);

	if (code < 0)
		return code;
	old = d->policy ? same_mount(d, &mount) : NULL;
	if (old) {
		*old = mount;
		return 0;
	}
	code = decide_add_mount(d, &mount, "--mount");
	if (code == 0 && d->policy && !is_beneath_one(mount.host, d->granted.mount_roots))
		return refuse_mount(d, &mount);
	return code;
}

static int take_mounts(struct decision *d)
{
	struct plan before = *d->plan;
	struct plan_mount *own;
	int code = 0;

	/* Narrowing a mount changes it in place: the notes compare with the old ones. */
	own = arena_array(&d->plan->arena, before.mount_count + 1, sizeof *own);
	if (!own)
		return decide_no_memory(d);
	if (before.mount_count)
		memcpy(own, before.mounts, before.mount_count * sizeof *own);
	d->plan->mounts = own;
	for (const char *const *text = d->request->mounts; code == 0 && text && *text; text++)
		code = take_mount(d, *text);
	return code < 0 ? code : decide_note(d, KEY_MOUNTS, &before, "--mount", false);
}

static int raise_approval(struct decision *d)
{
	struct plan before = *d->plan;
	enum plan_tier tier;
	bool approval = false;

	if (d->request->tier)
		plan_tier_parse(d->request->tier, &tier, &approval);
	if (!approval)
		return 0;
	d->plan->needs_approval = true;
	return decide_note(d, KEY_APPROVAL, &before, "--tier", false);
}

/* Who brings a wall of his own and has no file that asks for more could do without any. */
static enum plan_tier built_in_tier(const struct decision *d)
{
	return d->request->brings_wall && !d->policy ? TIER_AUTO : TIER_BALANCED;
}

static int note_tier(struct decision *d)
{
	const struct policy_value *file = d->policy ? &d->policy->values[KEY_TIER] : NULL;
	enum plan_tier asked,
		old = file && file->is_set ? (enum plan_tier)file->number : built_in_tier(d);

	if (!d->request->tier || plan_tier_parse(d->request->tier, &asked, NULL) < 0 ||
	    asked == old || asked != d->plan->tier)
		return 0;
	return decide_note_tier(d, old, asked, "--tier");
}

int decide_flags(struct decision *d)
{
	static int (*const steps[])(struct decision *) = {
		check_request,        note_tier,   raise_approval, take_texts, take_allow,
		settle_allow,         take_limits, raise_budget,   take_env,   narrow_workspace,
		decide_take_forwards, check_flags, take_mounts,
	};
	int code = 0;

	for (size_t i = 0; code == 0 && i < ARRAY_SIZE(steps); i++)
		code = steps[i](d);
	return code;
}

static int lower_tier(struct decision *d, enum plan_tier asked, enum plan_tier tier)
{
	const bool wanted[KEY_COUNT] = { [KEY_TIER] = true };
	char way[WAY_TEXT];

	if (d->flags_may_loosen && asked != TIER_LOCAL)
		return 0;
	d->plan->tier = asked; /* for the lines: nobody else sees this plan */
	return csn_fail_lines(
		d->err, -EPERM, "policy",
		"--tier: %s is weaker than the %s %s%s; a trusted policy file may permit "
		"it: %s\ntier: %s",
		plan_tier_name(asked), d->policy ? "policy's" : "built-in", plan_tier_name(tier),
		asked == TIER_LOCAL ? ", in fact no wall at all" : "", decide_way(d, wanted, way),
		plan_tier_name(asked));
}

int decide_tier(struct decision *d, enum plan_tier *ret_tier)
{
	const struct policy_value *file = d->policy ? &d->policy->values[KEY_TIER] : NULL;
	enum plan_tier tier = built_in_tier(d), asked;
	int code;

	if (file && file->is_set) {
		tier = (enum plan_tier)file->number;
		if (tier < TIER_BALANCED && !d->is_trusted)
			return csn_fail(
				d->err, -EPERM, "policy",
				"%.120s:%u:%u: tier: %s is weaker than the built-in balanced, "
				"which a file found by search may not say until you trust it; "
				"read it, then run: caisson policy trust",
				d->policy->name, file->mark.line, file->mark.column,
				plan_tier_name(tier));
	}
	*ret_tier = tier;
	if (!d->request->tier)
		return 0;
	if (plan_tier_parse(d->request->tier, &asked, NULL) < 0)
		return csn_fail(d->err, -EINVAL, "policy",
				"--tier %.60s: no such tier, expected %s", d->request->tier,
				policy_keys[KEY_TIER].expected);
	code = asked < tier ? lower_tier(d, asked, tier) : 0;
	if (code == 0)
		*ret_tier = asked;
	return code;
}
