/*
 * `gates:` of a policy file: what code inside may ask the host for, by name.
 *
 * A gate with a command runs a program of the host's with the caller's rights, so only a trusted
 * file may name one, and no path of it may lie where the code can write: the code would choose what
 * runs. A schema is carried as the text of a JSON object, as YAML's maps and lists say it; what its
 * words mean is the monitor's to check, which is the one that uses it.
 */
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/str.h"
#include "policy/decide.h"

enum { SCHEMA_BYTES = 16 << 10, HOUR_MS = 3600 * 1000, RATE_MAX = 60000, NAME_MAX_BYTES = 64 };

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_word(const struct node *node)
{
	return node->kind == NODE_SCALAR && text_is_word(node->text);
}

static bool is_gate_name(const struct node *node)
{
	return is_word(node) && text_is_name(node->text) && strlen(node->text) <= NAME_MAX_BYTES;
}

/* A bare program would be whatever the caller's PATH finds. */
static bool is_argv(const struct node *node)
{
	if (node->kind != NODE_LIST || !node->first || !is_word(node->first) ||
	    !strchr(node->first->text, '/'))
		return false;
	for (const struct node *word = node->first; word; word = word->next)
		if (!is_word(word))
			return false;
	return true;
}

static bool is_map(const struct node *node)
{
	return node->kind == NODE_MAP;
}

static bool is_time(const struct node *node)
{
	uint64_t ms;

	return node->kind == NODE_SCALAR && str_parse_duration(node->text, &ms) == 0 && ms > 0 &&
	       ms <= HOUR_MS;
}

static bool is_rate(const struct node *node)
{
	uint64_t rate;

	return node->kind == NODE_SCALAR && node->is_plain &&
	       str_parse_u64(node->text, RATE_MAX, &rate) == 0 && rate > 0;
}

static bool is_bool(const struct node *node)
{
	return node->kind == NODE_SCALAR && node->is_plain &&
	       (str_is(node->text, "true") || str_is(node->text, "false"));
}

static const struct {
	const char *name;
	bool (*is)(const struct node *node);
	const char *expected;
} parts[] = {
	{ "name", is_gate_name, "letters, digits and _" },
	{ "command", is_argv, "[PROGRAM, ARGUMENT, ...] with a '/' in PROGRAM" },
	{ "schema", is_map, "a map: {type: object, properties: {...}}" },
	{ "timeout", is_time, "a time like 30s, at most 1h" },
	{ "rate", is_rate, "calls a minute, a number from 1 to 60000" },
	{ "ephemeral", is_bool, "true or false" },
};

static int read_part(const struct policy_source *source, const struct node *part)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!str_is(parts[i].name, part->key))
			continue;
		if (parts[i].is(part))
			return 0;
		return node_fail(source->err, source->name, part->mark,
				 "%s of a gate is not usable, expected %s", part->key,
				 parts[i].expected);
	}
	return node_fail(source->err, source->name, part->key_mark,
			 "an unknown key in a gate, expected name, command, schema, timeout, rate "
			 "or ephemeral");
}

static int read_gate(const struct policy_source *source, const struct node *node,
		     const char **ret_name)
{
	const struct node *name = node->kind == NODE_MAP ? node_get(node, "name") : node;
	int code = 0;

	for (const struct node *part = node->kind == NODE_MAP ? node->first : NULL;
	     part && code == 0; part = part->next)
		code = read_part(source, part);
	if (code < 0)
		return code;
	if (!name || !is_gate_name(name))
		return node_fail(source->err, source->name, node->mark,
				 "not a gate, expected a name of letters, digits and _, or {name: "
				 "NAME, command: [PROGRAM, ...]}");
	*ret_name = name->text;
	return 0;
}

int gates_read(const struct policy_source *source, const struct key *key, const struct node *node,
	       struct policy_value *value)
{
	struct policy_item *item;

	if (node->kind != NODE_LIST || node->count > PLAN_GATES)
		return node_fail(source->err, source->name, node->mark,
				 "%s is not what was expected: %s, at most %d", key->path,
				 key->expected, PLAN_GATES);
	item = arena_array(source->arena, node->count + 1, sizeof *item);
	if (!item)
		return csn_fail(source->err, -ENOMEM, "policy", "%.200s: out of memory",
				source->name);
	value->items = item;
	value->count = node->count;
	for (const struct node *child = node->first; child; child = child->next, item++) {
		int code = read_gate(source, child, &item->name);

		if (code < 0)
			return code;
		item->mark = child->mark;
		for (struct policy_item *other = value->items; other < item; other++)
			if (str_is(other->name, item->name))
				return node_fail(source->err, source->name, child->mark,
						 "%s names this twice, expected it once",
						 key->path);
	}
	return 0;
}

bool gates_have_function(const struct policy_value *value)
{
	const struct node *child = value->is_set ? value->node->first : NULL;

	while (child && child->kind == NODE_MAP && node_get(child, "command"))
		child = child->next;
	return child != NULL;
}

/* ---- a schema as JSON ------------------------------------------------------------------------ */

static int add_string(struct buf *buf, const char *text)
{
	int code = buf_add_byte(buf, '"');

	for (; code == 0 && *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			code = buf_printf(buf, "\\%c", c);
		else if (c < 0x20)
			code = buf_printf(buf, "\\u%04x", c);
		else
			code = buf_add_byte(buf, c);
	}
	return code < 0 ? code : buf_add_byte(buf, '"');
}

/* What stands without quotes and is a word or a number of JSON's means that; 18 digits fit. */
static bool is_literal(const struct node *node)
{
	const char *text = node->text + (node->text[0] == '-');
	size_t n = strspn(text, "0123456789");

	if (!node->is_plain)
		return false;
	return is_bool(node) || str_is(node->text, "null") ||
	       (n > 0 && n < 19 && !text[n] && (n == 1 || text[0] != '0'));
}

/* The depth is bounded by the reader of the file: NODE_MAX_DEPTH. */
static int add_json(struct buf *buf, const struct node *node)
{
	bool is_object = node->kind == NODE_MAP;
	int code;

	if (node->kind == NODE_SCALAR)
		return is_literal(node) ? buf_add_text(buf, node->text)
					: add_string(buf, node->text);
	code = buf_add_byte(buf, is_object ? '{' : '[');
	for (const struct node *child = node->first; code == 0 && child; child = child->next) {
		code = buf_add_text(buf, child == node->first ? "" : ", ");
		if (code == 0 && is_object)
			code = add_string(buf, child->key);
		if (code == 0 && is_object)
			code = buf_add_text(buf, ": ");
		if (code == 0)
			code = add_json(buf, child);
	}
	return code < 0 ? code : buf_add_byte(buf, is_object ? '}' : ']');
}

/* ---- into the plan --------------------------------------------------------------------------- */

static int store_schema(struct decision *d, const struct node *node, const char *where,
			struct plan_gate *gate)
{
	_cleanup_buf_ struct buf buf;

	buf_init(&buf, SCHEMA_BYTES);
	if (add_json(&buf, node) < 0)
		return csn_fail(d->err, -E2BIG, "policy",
				"%.120s: the schema of gate %s is longer than %d bytes", where,
				gate->name, SCHEMA_BYTES);
	gate->schema = arena_copy(&d->plan->arena, buf_at(&buf), buf_size(&buf));
	return gate->schema ? 0 : decide_no_memory(d);
}

/* What the program is on the host, links followed: that is what runs, and what is judged. */
static int find_program(struct decision *d, const char *text, const char *folder, const char *where,
			struct policy_real *ret_real)
{
	int code = path_join(folder, text, ret_real->path, sizeof ret_real->path);
	char path[POLICY_PATH_MAX];

	if (code < 0)
		return csn_fail(d->err, -EINVAL, "policy", "%.120s: %.200s is not a usable path",
				where, text);
	if (!d->facts->resolve)
		return 0;
	memcpy(path, ret_real->path, sizeof path);
	code = d->facts->resolve(path, ret_real);
	if (code < 0 || ret_real->kind != POLICY_FILE)
		return csn_fail(d->err, code < 0 ? code : -EINVAL, "policy",
				"%.120s: %.200s is no file that a gate could execute: %s", where,
				path, code < 0 ? strerror(-code) : "it is a folder or a device");
	return 0;
}

static int store_argv(struct decision *d, const struct node *node, const char *folder,
		      const char *where, struct plan_gate *gate)
{
	struct policy_real program;
	size_t count = 0;
	int code = find_program(d, node->first->text, folder, where, &program);

	if (code < 0)
		return code;
	gate->argv = arena_array(&d->plan->arena, node->count + 1, sizeof *gate->argv);
	if (!gate->argv)
		return decide_no_memory(d);
	for (const struct node *word = node->first; word; word = word->next) {
		gate->argv[count] = arena_text(&d->plan->arena, count ? word->text : program.path);
		if (!gate->argv[count++])
			return decide_no_memory(d);
	}
	return 0;
}

static int store_gate(struct decision *d, const struct node *node, const char *folder,
		      struct plan_gate *gate)
{
	const struct node *name = node->kind == NODE_MAP ? node_get(node, "name") : node;
	const struct node *argv = node_get(node, "command"), *schema = node_get(node, "schema");
	const struct node *timeout = node_get(node, "timeout"), *rate = node_get(node, "rate");
	const struct node *ephemeral = node_get(node, "ephemeral");
	const char *where = decide_place(d, node->mark);
	int code = 0;

	*gate = (struct plan_gate){ .name = arena_text(&d->plan->arena, name->text),
				    .timeout_ms = PLAN_GATE_MS,
				    .rate = PLAN_GATE_RATE,
				    .is_ephemeral = ephemeral && str_is(ephemeral->text, "true") };
	if (!gate->name || !where)
		return decide_no_memory(d);
	if (timeout)
		code = str_parse_duration(timeout->text, &gate->timeout_ms);
	if (code == 0 && rate)
		code = str_parse_u64(rate->text, RATE_MAX, &gate->rate);
	if (code == 0 && argv)
		code = store_argv(d, argv, folder, where, gate);
	if (code == 0 && schema)
		code = store_schema(d, schema, where, gate);
	return code;
}

int decide_gates(struct decision *d, const struct policy_value *value, const char *folder,
		 const char *where)
{
	struct plan_gate *gates = arena_array(&d->plan->arena, value->count + 1, sizeof *gates);
	size_t count = 0;
	int code = 0;

	(void)where;
	if (!gates)
		return decide_no_memory(d);
	for (const struct node *node = value->node->first; code == 0 && node; node = node->next)
		code = store_gate(d, node, folder, &gates[count++]);
	if (code < 0)
		return code;
	d->plan->gates = gates;
	d->plan->gate_count = count;
	return 0;
}

/* ---- functions of who opens it --------------------------------------------------------------- */

static int refuse_function(struct decision *d, const char *name, bool has_program)
{
	if (has_program)
		return csn_fail(d->err, -EPERM, "policy",
				"--gate: the policy answers %s with a program of its own: leave it "
				"out",
				name);
	return csn_fail(d->err, -EPERM, "policy",
			"--gate: the policy file in force, %.200s, does not name %s; it may say:\n"
			"gates: [%s]",
			d->policy->name, name, name);
}

/* As many places more as there are functions. */
static int make_room(struct decision *d, size_t more)
{
	struct plan *plan = d->plan;
	struct plan_gate *gates =
		arena_array(&plan->arena, plan->gate_count + more + 1, sizeof *gates);

	if (!gates)
		return decide_no_memory(d);
	if (plan->gate_count > 0)
		memcpy(gates, plan->gates, plan->gate_count * sizeof *gates);
	plan->gates = gates;
	return 0;
}

static struct plan_gate *find_or_add(struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->gate_count; i++)
		if (str_is(plan->gates[i].name, name))
			return &plan->gates[i];
	plan->gates[plan->gate_count] = (struct plan_gate){ .name = name,
							    .timeout_ms = PLAN_GATE_MS,
							    .rate = PLAN_GATE_RATE };
	return &plan->gates[plan->gate_count++];
}

/* What the file says of it holds; its own schema counts where the file has none. */
static int add_function(struct decision *d, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t n = equals ? (size_t)(equals - text) : strlen(text);
	const char *name = arena_copy(&d->plan->arena, text, n);
	const struct plan_gate *known = name ? plan_gate_find(d->plan, name) : NULL;
	struct plan_gate *gate;

	if (!name)
		return decide_no_memory(d);
	if (!text_is_name(name) || n > NAME_MAX_BYTES)
		return csn_fail(d->err, -EINVAL, "policy",
				"--gate: not a gate's name, expected letters, digits and _");
	if ((known && known->argv) || (!known && d->policy && !d->flags_may_loosen))
		return refuse_function(d, name, known != NULL);
	gate = find_or_add(d->plan, name);
	gate->is_answered = true;
	if (equals && !gate->schema)
		gate->schema = arena_text(&d->plan->arena, equals + 1);
	return equals && !gate->schema ? decide_no_memory(d) : 0;
}

int decide_functions(struct decision *d)
{
	const char *const *text = d->request->gates;
	struct plan before = *d->plan;
	size_t count = 0;
	int code;

	while (text && text[count])
		count++;
	if (count == 0)
		return 0;
	if (before.gate_count + count > PLAN_GATES)
		return csn_fail(d->err, -E2BIG, "policy", "--gate: more than %d gates", PLAN_GATES);
	code = make_room(d, count);
	for (size_t i = 0; code == 0 && i < count; i++)
		code = add_function(d, text[i]);
	return code < 0 ? code : decide_note(d, KEY_GATES, &before, "--gate", false);
}

/* ---- what the code could replace ------------------------------------------------------------- */

/* The writable area that holds this path; NULL: none. */
static const char *writable_above(const struct plan *plan, const char *path)
{
	const struct plan_workspace *workspace = &plan->workspace;

	if (workspace->host && workspace->access == ACCESS_RW &&
	    path_is_beneath(path, workspace->host))
		return workspace->host;
	for (size_t i = 0; i < plan->mount_count; i++)
		if (plan->mounts[i].access == ACCESS_RW &&
		    path_is_beneath(path, plan->mounts[i].host))
			return plan->mounts[i].host;
	for (const char **root = plan->mount_roots; *root; root++)
		if (path_is_beneath(path, *root))
			return *root;
	return NULL;
}

static int check_word(struct decision *d, const struct plan_gate *gate, const char *word)
{
	struct policy_real real;
	const char *folder;

	if (word[0] != '/' || path_normalize(word, real.path, sizeof real.path) < 0)
		return 0;
	if (d->facts->resolve) {
		char path[POLICY_PATH_MAX];

		memcpy(path, real.path, sizeof path);
		if (d->facts->resolve(path, &real) < 0)
			memcpy(real.path, path, sizeof path);
	}
	folder = writable_above(d->plan, real.path);
	if (!folder)
		return 0;
	return csn_fail(d->err, -EPERM, "policy",
			"the gate %s uses %.200s, which lies in %.200s, and the code may write "
			"there: it would choose what runs on the host. Move it elsewhere, or use "
			"workspace.mode: ro or cow",
			gate->name, real.path, folder);
}

int decide_gates_safe(struct decision *d)
{
	int code = 0;

	for (size_t i = 0; code == 0 && i < d->plan->gate_count; i++) {
		const char **word = d->plan->gates[i].argv;

		for (; code == 0 && word && *word; word++)
			code = check_word(d, &d->plan->gates[i], *word);
	}
	return code;
}
