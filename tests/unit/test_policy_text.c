/* What is printed: explain, render (which reads back), the template, edits, the reference. */
#include "policy/file.h"
#include "tap.h"

#include <errno.h>

#include "base/str.h"

static const struct policy_facts facts = { "/p", "/p", "/home/u", "/r", "/p", true, true };
static const struct policy_request no_request = { 0 };

static void decide(const char *yaml, size_t size, const struct policy_request *request,
		   struct plan *ret_plan, struct policy **ret_policy)
{
	struct csn_error err = { 0 };
	struct policy *policy = NULL;

	if (policy_parse("p.yaml", yaml, size, &policy, &err) < 0 ||
	    policy_decide(policy, request, &facts, ret_plan, &err) < 0) {
		printf("# %s\n# %.*s\n", err.text, (int)size, yaml);
		CHECK(!"decided");
	}
	if (ret_policy)
		*ret_policy = policy;
	else
		policy_free(policy);
}

static const char wild[] =
	"version: 1\ntier: ManualOnly\nbackend: qemu\n"
	"workspace: {path: sub, at: host, mode: rw, hide: [\"*.key\", \"\\u00e4 b\"], protect: "
	"[]}\n"
	"mounts: [{host: \"a: b\", at: /x}, {host: /usr, at: \"/y #z\"}, {host: d, at: /d, mode: "
	"rw}]\n"
	"mount_roots: [., /srv]\nscratch: {at: /scratch, size: none}\n"
	"network: {mode: allow, allow: [a.org, \"b.org:443\"]}\n"
	"limits: {command: none, budget: 1500ms, startup: 1h, idle: 90s, cpus: 1.5, memory: "
	"4097KiB,"
	" processes: none, output: 1, open_files: 7}\nlimits_mode: best\n"
	"env: {pass: [A], set: {B: \"\", C: \"true\", D: \"x\\n\\\"\\\\\\u2028\\ty\", E: -1, F: "
	"\"a: b\"},"
	" git_identity: true}\ntoolchains: none\nobserve: [reads]\non_violation: kill\n"
	"container: {image: \"debian:12\", rootless: required}\ngates: [echo, read_file]\n"
	"forwards: [\"unix:/run/a: b.sock:/tmp/m\", \"tcp:127.0.0.1:80:8080\"]\n";

static void test_render_reads_back(void)
{
	static const char *const files[] = { wild, "version: 1", "{version: 1, tier: local}",
					     "{version: 1, tier: assisted}",
					     "{version: 1, strict_when: [{tag: t}]}" };
	struct policy_request request = { .tags = (const char *const[]){ "t", NULL } };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_buf_ struct buf one = { .max = 1 << 16 }, two = { .max = 1 << 16 };
		struct plan plan, again;

		decide(files[i], strlen(files[i]), &request, &plan, NULL);
		CHECK(policy_render(&plan, &one) == 0);
		decide((const char *)buf_at(&one), buf_size(&one), &no_request, &again, NULL);
		CHECK(policy_render(&again, &two) == 0);
		CHECK_STR(buf_text(&one), buf_text(&two));
		CHECK(plan.required == again.required && plan.tier == again.tier);
		CHECK(plan.strict_by_policy == again.strict_by_policy);
		CHECK(plan.local_is_trusted == again.local_is_trusted);
		CHECK(memcmp(&plan.limits, &again.limits, sizeof plan.limits) == 0);
		CHECK(plan_within(&plan, &again, NULL) == 0 &&
		      plan_within(&again, &plan, NULL) == 0);
		plan_done(&plan);
		plan_done(&again);
	}
}

static void test_render_values(void)
{
	_cleanup_buf_ struct buf text = { .max = 1 << 16 };
	struct plan plan;

	decide(wild, strlen(wild), &no_request, &plan, NULL);
	CHECK(plan_has(plan.env_set, "D=x\n\"\\\xe2\x80\xa8\ty"));
	CHECK(policy_render(&plan, &text) == 0);
	CHECK(strstr(buf_text(&text), "  command: none\n"));
	CHECK(strstr(buf_text(&text), "  cpus: 1.500\n"));
	CHECK(strstr(buf_text(&text), "  at: /p/sub\n"));
	CHECK(strstr(buf_text(&text), "  allow: [a.org, \"b.org:443\"]\n"));
	plan.workspace.host = "/p/\xff";
	CHECK(policy_render(&plan, &text) == -EILSEQ);
	buf_done(&text);
	text.max = 64;
	plan.workspace.host = "/p";
	CHECK(policy_render(&plan, &text) == -E2BIG);
	plan_done(&plan);
}

static void test_explain(void)
{
	static const char yaml[] =
		"version: 1\ntier: balanced\nlimits: {command: 10m, memory: 1GiB}\n"
		"env: {set: {TOKEN: hunter2}}\n"
		"strict_when: [{path: \"**/x\"}]\noverrides: {per_request: false}\n";
	static const char *const lines[] = {
		"limits.command: 5m  <- --limit command\n",
		"limits.memory: 1GiB  <- p.yaml:3:32\n",
		"limits.cpus: 2  <- built-in\n",
		"tier: balanced  <- p.yaml:2:7\n",
		"env.set: {TOKEN: ...}  <- p.yaml:4:12\n",
		"strict_when: {path: \"**/x\"}  <- p.yaml:5:15\n",
		"overrides.per_request: false  <- p.yaml:6:26\n",
	};
	struct policy_request request = { .limits = (const char *const[]){ "command=5m", NULL } };
	_cleanup_buf_ struct buf text = { .max = 1 << 16 };
	struct policy *policy;
	struct plan plan;

	decide(yaml, strlen(yaml), &request, &plan, &policy);
	CHECK(policy_explain(policy, &plan, &text) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		printf("# %s", lines[i]);
		CHECK(strstr(buf_text(&text), lines[i]));
	}
	CHECK(!strstr(buf_text(&text), "hunter2"));
	buf_clear(&text);
	CHECK(policy_explain(NULL, &plan, &text) == 0);
	plan_done(&plan);
	policy_free(policy);
}

static const struct remark {
	const char *yaml, *remarks; /* each line's beginning, in order */
} remark_table[] = {
	{ "version: 1\nlimits: {idle: 0}\nnetwork: {mode: loopback}\ngates: []\n", "" },
	{ "version: 1\nlimits: {idle: none}\napproval: none\ncontainer: {image: null}\n", "" },
	{ "version: 1\nlimits: {idle: 5s}\n", "p.yaml:2:16: limits.idle; no effect on run: \n" },
	{ "version: 1\ntier: HumanApprove\n", "" },
	{ "version: 1\napproval: required\n", "" },
	{ "version: 1\nnetwork: {mode: allow, allow: [a.org]}\n",
	  "p.yaml:2:17: network.mode; refused by run: \n" },
	{ "version: 1\nnetwork: {mode: engine}\n", "" },
	{ "version: 1\nnetwork: {mode: engine}\nbackend: docker\n", "" },
	{ "version: 1\nnetwork: {mode: engine}\nbackend: process\n",
	  "p.yaml:2:17: network.mode; refused by run: \n" },
	{ "version: 1\ngates: [ask]\ncontainer: {image: debian, rootless: required}\n",
	  "p.yaml:3:20: container.image; no effect on run: \n"
	  "p.yaml:3:38: container.rootless; no effect on run: \n"
	  "p.yaml:2:8: gates; no effect on run: \n" },
};

/* The reason of each line cut off: it is a clause for people. */
static void without_reasons(struct buf *text, struct buf *ret_short)
{
	for (const char *line = buf_text(text); line && *line; line = strchr(line, '\n') + 1) {
		const char *end = strstr(line, " run: ");

		CHECK(end && end < strchr(line, '\n') && strchr(line, '\n') > end + 12);
		CHECK(buf_add(ret_short, line, (size_t)(end - line) + 6) == 0);
		CHECK(buf_add_byte(ret_short, '\n') == 0);
	}
}

/* Whatever a file says and a run does not do is said, with its place; explain says the same. */
static void test_remarks(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(remark_table); i++) {
		const struct remark *row = &remark_table[i];
		_cleanup_buf_ struct buf text = { .max = 1 << 16 }, heads = { .max = 1 << 16 };
		struct policy_request request = { 0 };
		struct policy *policy;
		struct plan plan;
		const struct plan_gap *gap;
		size_t at = 0, gaps = 0, lines = 0;

		printf("# row %zu\n", i);
		decide(row->yaml, strlen(row->yaml), &request, &plan, &policy);
		CHECK(policy_remarks(policy, &text) == 0);
		without_reasons(&text, &heads);
		CHECK(str_is(buf_text(&heads) ? buf_text(&heads) : "", row->remarks));
		buf_clear(&text);
		CHECK(policy_explain(policy, &plan, &text) == 0);
		while ((gap = plan_gap_next(&plan, &at))) {
			gaps++;
			CHECK(strstr(buf_text(&text), gap->why));
		}
		for (const char *c = row->remarks; *c; c++)
			lines += *c == '\n';
		CHECK(gaps == lines);
		plan_done(&plan);
		policy_free(policy);
	}
}

/* The template is the built-in policy, as it is and with every key uncommented; limits.idle, which
 * a run has not, is there as a sandbox that stays has it. */
static void test_template(void)
{
	const char *text = policy_template();
	size_t size = strlen(text), used = 0;
	char *open = malloc(size + 1);
	struct policy *policy;
	struct plan plan;

	CHECK(open);
	decide(text, size, &no_request, &plan, NULL);
	CHECK(plan.note_count == 0);
	plan_done(&plan);
	for (size_t i = 0; i < size; i++) {
		bool is_start = i == 0 || text[i - 1] == '\n';
		const char *rest = text + i + 1 + strspn(text + i + 1, " ");

		/* "#key:" and "#  key:" are keys, "# Prose" is not. */
		if (is_start && text[i] == '#' && (rest - text - (ptrdiff_t)i) != 2)
			continue;
		open[used++] = text[i];
	}
	decide(open, used, &no_request, &plan, &policy);
	for (size_t i = 0; i < plan.note_count; i++)
		printf("# %s %s %s\n", plan.notes[i].what, plan.notes[i].old, plan.notes[i].now);
	CHECK(plan.note_count == 1 && !strcmp(plan.notes[0].what, "limits.idle") &&
	      !strcmp(plan.notes[0].now, "30m"));
	for (size_t id = 0; id < KEY_COUNT; id++)
		if (!policy->values[id].is_set) {
			printf("# %s is not in the template\n", policy_keys[id].path);
			CHECK(!"complete");
		}
	plan_done(&plan);
	policy_free(policy);
	free(open);
}

static const struct {
	const char *before, *key, *value, *after; /* NULL: refused */
} set_rows[] = {
	{ "version: 1\nlimits:\n  command: 45s   # why\n", "limits.command", "10m",
	  "version: 1\nlimits:\n  command: 10m   # why\n" },
	{ "version: 1\nlimits: {command: 45s, cpus: 2} # x\n", "limits.cpus", "0.5",
	  "version: 1\nlimits: {command: 45s, cpus: 0.5} # x\n" },
	{ "version: 1\nlimits:\n  # first\n  cpus: 2\n", "limits.command", "10m",
	  "version: 1\nlimits:\n  # first\n  command: 10m\n  cpus: 2\n" },
	{ "version: 1\nlimits: {cpus: 2}\n", "limits.command", "10m",
	  "version: 1\nlimits: {command: 10m, cpus: 2}\n" },
	{ "version: 1\nlimits: {}\n", "limits.command", "10m",
	  "version: 1\nlimits: {command: 10m}\n" },
	{ "version: 1", "limits.command", "10m", "version: 1\nlimits:\n  command: 10m\n" },
	{ "version: 1\n# end\n", "tier", "strict", "version: 1\n# end\ntier: strict\n" },
	{ "  version: 1\n", "tier", "strict", "  version: 1\n  tier: strict\n" },
	{ "{version: 1}", "tier", "strict", "{tier: strict, version: 1}" },
	{ "{version: 1}", "limits.cpus", "2", "{limits: {cpus: 2}, version: 1}" },
	{ "# gr\xc3\xbc\xc3\x9f\nversion: 1\ntier: \"auto\" # \xc3\xa4\n", "tier", "strict",
	  "# gr\xc3\xbc\xc3\x9f\nversion: 1\ntier: strict # \xc3\xa4\n" },
	{ "{version: 1, env: {set: {A: \"\xc3\xa4\xe2\x82\xac\"}}, tier: auto}", "tier", "strict",
	  "{version: 1, env: {set: {A: \"\xc3\xa4\xe2\x82\xac\"}}, tier: strict}" },
	{ "version: 1\r\ntier: auto\r\ngates: []\r\n", "tier", "strict",
	  "version: 1\r\ntier: strict\r\ngates: []\r\n" },
	{ "version: 1\nworkspace: {path: .}\n", "workspace.path", "a b: c #d",
	  "version: 1\nworkspace: {path: \"a b: c #d\"}\n" },
	{ "version: 1\n", "container.image", "null", "version: 1\ncontainer:\n  image: null\n" },
	{ "version: 1\n", "workspace.path", "true", "version: 1\nworkspace:\n  path: \"true\"\n" },
	{ "version: 1\n", "limits.command", "10", NULL },
	{ "version: 1\n", "limits.command", "10m\ntier: local", NULL },
	{ "version: 1\n", "limits.command", "", NULL },
	{ "version: 1\n", "limits.command", "1s, cpus: 3", NULL },
	{ "version: 1\n", "version", "2", NULL },
	{ "version: 1\n", "limits", "1", NULL },
	{ "version: 1\n", "no.such\x1bkey", "1", NULL },
	{ "version: 1\n", "mount_roots", "[]", "version: 1\nmount_roots: []\n" },
	{ "version: 1\n", "mount_roots", "[ a,b ]", "version: 1\nmount_roots: [a, b]\n" },
	{ "version: 1\nworkspace:\n  hide: [a] # x\n", "workspace.hide",
	  "[\"*.k, ey\", 'b c', d e]",
	  "version: 1\nworkspace:\n  hide: [\"*.k, ey\", 'b c', \"d e\"] # x\n" },
	{ "version: 1\n", "mount_roots", "a", NULL },
	{ "version: 1\n", "mount_roots", "[\"\\x61\", b]",
	  "version: 1\nmount_roots: [\"\\x61\", b]\n" },
	{ "version: 1\n", "mount_roots", "[\"a\\\"]", NULL },
	{ "version: 1\n", "mount_roots", "[a", NULL },
	{ "version: 1\n", "mount_roots", "[a] x", NULL },
	{ "version: 1\n", "mount_roots", "[a,,b]", NULL },
	{ "version: 1\n", "mount_roots", "['a]", NULL },
	{ "version: 1\n", "mount_roots", "[a]\ntier: local", NULL },
	{ "version: 1\n", "gates", "[]", NULL },
	{ "version: 1\n", "mounts", "[]", NULL },
	{ "version: 1\nworkspace:\n  hide:\n    - a\n", "workspace.hide", "[]", NULL },
	/* Comments that show a key are what it replaces. */
	{ "version: 1\n#mount_roots: []   # x\n", "mount_roots", "[a]",
	  "version: 1\nmount_roots: [a]   # x\n" },
	{ "version: 1\n#limits:\n#  cpus: 2 # c\n#  memory: 1GiB\n#x: 1\n", "limits.memory", "2GiB",
	  "version: 1\nlimits:\n#  cpus: 2 # c\n  memory: 2GiB\n#x: 1\n" },
	{ "version: 1\nlimits:\n#  cpus: 2 # c\n  memory: 2GiB\n", "limits.cpus", "3",
	  "version: 1\nlimits:\n  cpus: 3 # c\n  memory: 2GiB\n" },
	{ "version: 1\n#limits:   # x\n#env:\n#  cpus: 2\n", "limits.cpus", "3",
	  "version: 1\nlimits:   # x\n  cpus: 3\n#env:\n#  cpus: 2\n" },
	{ "version: 1\n#network: {mode: none, allow: []} # x\n", "network.mode", "loopback",
	  "version: 1\nnetwork: {mode: loopback} # x\n" },
	{ "version: 1\nlimits: {cpus: 1}\n#  memory: 1GiB\n", "limits.memory", "2GiB",
	  "version: 1\nlimits: {memory: 2GiB, cpus: 1}\n#  memory: 1GiB\n" },
	{ "version: 1\n# tier: auto\n", "tier", "auto", "version: 1\n# tier: auto\ntier: auto\n" },
	{ "version: 1\nenv: {set: {A: \"x\n#tier: y\n  z\"}}\n", "tier", "auto",
	  "version: 1\nenv: {set: {A: \"x\n#tier: y\n  z\"}}\ntier: auto\n" },
	{ "version: 1\n...\n", "tier", "strict", NULL },
	{ "version: 1\nworkspace:\n  path: |-\n    a\n", "workspace.path", "b", NULL },
	{ "version: 2\n", "tier", "strict", NULL },
};

static void test_set(void)
{
	int wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(set_rows); i++) {
		_cleanup_buf_ struct buf out = { .max = 1 << 16 };
		struct csn_error err = { 0 };
		struct policy_file file = { "p.yaml", set_rows[i].before,
					    strlen(set_rows[i].before) };
		int code = policy_set(&file, set_rows[i].key, set_rows[i].value, &out, &err);
		bool is_good = set_rows[i].after
				       ? code == 0 && str_is(buf_text(&out), set_rows[i].after)
				       : code < 0 && buf_size(&out) == 0 && err.text[0] &&
						 !strchr(err.text, 0x1b);

		if (!is_good)
			printf("# row %zu: %d %s\n%s\n", i, code, err.text,
			       code ? "" : buf_text(&out));
		wrong += !is_good;
	}
	CHECK(wrong == 0);
}

/* docs/policy.md has one row for each key, with its default and what is expected. */
static void test_reference(void)
{
	static char doc[1 << 16];
	char path[1024];
	FILE *file;
	size_t rows = 0;
	struct plan plan;
	int wrong = 0;

	snprintf(path, sizeof path, "%s", __FILE__);
	*strrchr(path, '/') = 0;
	strncat(path, "/../../docs/policy.md", sizeof path - strlen(path) - 1);
	file = fopen(path, "r");
	if (!file) /* started from the root of the tree, not from a build folder */
		file = fopen("docs/policy.md", "r");
	CHECK(file);
	doc[fread(doc, 1, sizeof doc - 1, file)] = 0;
	fclose(file);
	CHECK(plan_init(&plan, TIER_BALANCED) == 0);
	plan.workspace.host = ".";
	for (size_t id = 0; id < KEY_COUNT; id++) {
		const struct key *key = &policy_keys[id];
		_cleanup_buf_ struct buf value = { .max = 1 << 12 }, row = { .max = 1 << 12 };

		if (key->width == 0)
			CHECK(buf_add_text(&value, id == KEY_STRICT_WHEN             ? "[]"
						   : id == KEY_OVERRIDES_PER_REQUEST ? "false"
										     : "1") == 0);
		else if (id == KEY_WORKSPACE_PATH)
			CHECK(buf_add_text(&value, ".") == 0);
		else
			CHECK(key_show(key, &plan, SHOW_VALUES, &value) == 0);
		CHECK(buf_printf(&row, "| `%s` | `%s` | %s | %s |\n", key->path, buf_text(&value),
				 key->meaning, key->expected) == 0);
		/* Where the test fails it prints the row to paste. */
		for (char *bar = (char *)buf_text(&row); (bar = strstr(bar, "ro | rw")); bar += 7)
			memcpy(bar, "ro / rw", 7);
		if (!strstr(doc, buf_text(&row))) {
			printf("# missing: %s", buf_text(&row));
			wrong++;
		}
	}
	for (const char *at = doc; (at = strstr(at, "\n| `")); at++)
		rows++;
	plan_done(&plan);
	CHECK(wrong == 0);
	CHECK(rows == KEY_COUNT);
}

static const struct tap_test tests[] = {
	{ "what is rendered decides to the same plan", test_render_reads_back },
	{ "rendered values are exact", test_render_values },
	{ "explain names file, flag and built-in", test_explain },
	{ "what a run does not do is said", test_remarks },
	{ "the template is the built-in policy", test_template },
	{ "an edit changes one value and nothing else", test_set },
	{ "the reference has each key of the table", test_reference },
};

TAP_MAIN(tests)
