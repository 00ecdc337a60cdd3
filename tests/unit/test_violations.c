/* Facts: cleaning, folding, bounds, JSON, sentences, and what ends a run. */
#include "monitor/violations.h"
#include "base/str.h"
#include "tap.h"

static struct plan make_plan(void)
{
	struct plan plan = { .scratch_at = "/tmp", .network = NETWORK_NONE };

	plan.workspace.host = "/home/u/project";
	plan.workspace.at = "/workspace";
	plan.limits.processes = 256;
	plan.limits.mem_bytes = UINT64_C(1) << 30;
	return plan;
}

static struct fact write_fact(const char *path)
{
	struct fact fact;

	fact_init(&fact, FACT_FILESYSTEM_WRITE, SOURCE_SECCOMP);
	fact_text(fact.detail.path, sizeof fact.detail.path, path, strlen(path));
	return fact;
}

static void test_text_is_cleaned(void)
{
	static const struct {
		const char *raw, *clean;
	} table[] = {
		{ "plain", "plain" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "a\nb\033[2Jc\x7f", "a?b?[2Jc?" },
		{ "bad\xff\xc3", "bad??" },
		{ "c1\xc2\x9b"
		  "31m",
		  "c1??31m" },
		{ "0123456789abcdefX", "0123456789ab..." },
		{ "0123456789a\xc3\xbcXYZ", "0123456789a..." },
	};
	char text[16];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		fact_text(text, sizeof text, table[i].raw, strlen(table[i].raw));
		CHECK_STR(text, table[i].clean);
		CHECK(str_is_utf8(text, strlen(text)));
	}
}

static int told;

static void count_new(const struct fact *fact, void *data)
{
	told++;
	CHECK(fact->say[0] && fact->time_ms > 0);
	CHECK(data == &told);
}

static void test_equal_facts_fold(void)
{
	struct plan plan = make_plan();
	struct violations list;
	struct fact fact = write_fact("/workspace/a"), other = write_fact("/workspace/b");

	violations_init(&list, &plan, count_new, &told);
	for (int i = 0; i < 5; i++)
		CHECK(!violations_add(&list, &fact));
	violations_add(&list, &other);
	fact.is_certain = false;
	violations_add(&list, &fact);
	snprintf(fact.comm, sizeof fact.comm, "another");
	violations_add(&list, &fact);
	CHECK(list.count == 3 && told == 3);
	CHECK(list.facts[0].count == 6 && list.facts[1].count == 1);
	CHECK(!list.facts[0].is_certain && list.facts[1].is_certain);
	CHECK(list.facts[0].last_ms >= list.facts[0].time_ms);
	CHECK(violations_count(&list, FACT_FILESYSTEM_WRITE) == 8);
	violations_done(&list);
}

static void test_flood_is_bounded(void)
{
	struct plan plan = make_plan();
	struct violations list;
	json_t *array, *last;

	violations_init(&list, &plan, NULL, NULL);
	for (int i = 0; i < 1000; i++) {
		char path[32];

		snprintf(path, sizeof path, "/workspace/%d", i);
		struct fact fact = write_fact(path);
		violations_add(&list, &fact);
	}
	CHECK(list.count == VIOLATIONS_MAX);
	CHECK(violations_count(&list, FACT_FILESYSTEM_WRITE) == 1000);
	array = violations_json(&list, NULL);
	CHECK(json_array_size(array) == VIOLATIONS_MAX + 1);
	last = json_array_get(array, VIOLATIONS_MAX);
	CHECK_STR(json_string_value(json_object_get(last, "event")), "FilesystemWriteViolation");
	CHECK(json_integer_value(json_object_get(last, "count")) == 1000 - VIOLATIONS_MAX);
	CHECK(json_is_true(json_object_get(json_object_get(last, "detail"), "others")));
	json_decref(array);
	violations_done(&list);
}

static void test_kill_and_noise(void)
{
	struct plan plan = make_plan();
	struct violations list;
	struct fact noise = write_fact("/workspace/x/__pycache__/m.pyc"),
		    real = write_fact("/etc/x"), near = write_fact("/workspace/my__pycache__x"),
		    over;

	plan.on_violation = REACT_KILL;
	violations_init(&list, &plan, NULL, NULL);
	CHECK(!violations_add(&list, &noise) && !violations_add(&list, &noise));
	CHECK(list.facts[0].is_expected && !list.wants_end);
	CHECK(violations_count(&list, FACT_FILESYSTEM_WRITE) == 0);
	fact_init(&over, FACT_POLICY_OVERRIDE, SOURCE_MONITOR);
	CHECK(!violations_add(&list, &over) && !list.wants_end);
	fact_init(&over, FACT_TIMEOUT, SOURCE_CLOCK);
	CHECK(!violations_add(&list, &over) && !list.wants_end);
	CHECK(violations_add(&list, &near) && list.wants_end);
	CHECK(violations_add(&list, &real));
	CHECK(violations_count(&list, FACT_FILESYSTEM_WRITE) == 2);
	plan.on_violation = REACT_RECORD;
	CHECK(!violations_add(&list, &real));
	violations_done(&list);
}

static void test_json(void)
{
	struct plan plan = make_plan();
	struct violations list;
	struct fact fact;
	json_t *array, *object, *detail;

	violations_init(&list, &plan, NULL, NULL);
	fact_init(&fact, FACT_SYSCALL, SOURCE_SECCOMP);
	snprintf(fact.detail.syscall, sizeof fact.detail.syscall, "ptrace");
	fact.detail.has_args = true;
	fact.detail.args[0] = UINT64_MAX;
	fact.pid = 42;
	violations_add(&list, &fact);
	fact = write_fact("");
	fact.detail.path_unknown = true;
	violations_add(&list, &fact);
	array = violations_json(&list, NULL);
	object = json_array_get(array, 0);
	detail = json_object_get(object, "detail");
	CHECK_STR(json_string_value(json_object_get(object, "event")), "SyscallViolation");
	CHECK_STR(json_string_value(json_object_get(object, "source")), "seccomp");
	CHECK(json_integer_value(json_object_get(object, "pid")) == 42);
	CHECK(json_is_true(json_object_get(object, "certain")));
	CHECK(strlen(json_string_value(json_object_get(object, "time"))) == 24);
	CHECK_STR(json_string_value(json_array_get(json_object_get(detail, "args"), 0)),
		  "0xffffffffffffffff");
	CHECK(!json_object_get(detail, "path") && !json_object_get(object, "last_time"));
	detail = json_object_get(json_array_get(array, 1), "detail");
	CHECK(json_is_null(json_object_get(detail, "path")));
	json_decref(array);
	violations_done(&list);
}

static void test_secrets_are_masked(void)
{
	struct plan plan = make_plan();
	struct violations list;
	struct redactor *redactor;
	struct fact fact = write_fact("/workspace/s3cr3t-value.txt");
	json_t *array;
	char *text;

	CHECK(redactor_new(&redactor) == 0);
	CHECK(redactor_add(redactor, "API_KEY", "s3cr3t-value") == 0);
	violations_init(&list, &plan, NULL, NULL);
	violations_add(&list, &fact);
	array = violations_json(&list, redactor);
	text = json_dumps(array, 0);
	CHECK(!strstr(text, "s3cr3t-value") && strstr(text, "[REDACTED:API_KEY]"));
	free(text);
	json_decref(array);
	redactor_free(redactor);
	violations_done(&list);
}

/* The rule and the sentence of a write in the workspace come from the path that matched. */
static void test_rules_of_the_workspace(void)
{
	static const struct {
		const char *path, *to;
		enum plan_access access;
		const char *rule, *named;
	} cases[] = {
		{ "/workspace/a", "", ACCESS_RO, "workspace.mode: ro", "ask for --rw" },
		{ "/workspace/.git/config", "", ACCESS_RW, "workspace.protect", "/config is" },
		{ "/workspace/.git", "", ACCESS_RW, "workspace.protect", "/.git is" },
		{ "/workspace/.gitx", "", ACCESS_RW, "built-in: read-only file system", "x is" },
		{ "/workspace/.git/config", "", ACCESS_COW, "built-in: read-only file system",
		  "config is" },
		{ "/workspace/a/.env", "", ACCESS_COW, "workspace.hide", "hides" },
		{ "/workspace/.env/b", "", ACCESS_RW, "workspace.hide", "hides" },
		{ "/workspace/.env", "", ACCESS_RO, "workspace.mode: ro, workspace.hide", "hides" },
		{ "/workspace/.git/config", "", ACCESS_RO, "workspace.mode: ro, workspace.protect",
		  "protects" },
		{ "/workspace/.git/config.lock", "/workspace/.git/config", ACCESS_RW,
		  "workspace.protect", "Writing /workspace/.git/config is" },
		{ "/tmp/x", "/workspace/.env", ACCESS_RW, "workspace.hide", "/workspace/.env is" },
		{ "/workspace/.env", "/tmp/x", ACCESS_RW, "workspace.hide", "/workspace/.env is" },
	};
	const char *hide[] = { ".env", NULL }, *protect[] = { ".git/config", NULL };
	struct plan plan = make_plan();
	struct fact fact;

	plan.workspace.hide = hide;
	plan.workspace.protect = protect;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		plan.workspace.access = cases[i].access;
		fact = write_fact(cases[i].path);
		snprintf(fact.detail.to, sizeof fact.detail.to, "%s", cases[i].to);
		snprintf(fact.rule, sizeof fact.rule, "workspace.protect");
		fact_judge(&fact, &plan);
		CHECK_STR(fact.rule, cases[i].rule);
		fact_say(&fact, &plan);
		CHECK(strstr(fact.say, cases[i].named));
		CHECK(!strstr(fact.rule, ", ") || !strstr(fact.say, "--rw"));
	}
	snprintf(fact.rule, sizeof fact.rule, "mounts: /data ro");
	fact_judge(&fact, &plan);
	CHECK_STR(fact.rule, "mounts: /data ro");
}

static void test_sentences(void)
{
	struct plan plan = make_plan();
	struct plan_mount data = { "/srv/data", "/workspace/data", ACCESS_RO };
	struct fact fact = write_fact("/workspace/a.txt");

	fact_say(&fact, &plan);
	CHECK_STR(fact.say, "Writing /workspace/a.txt is not permitted: the workspace is read-only "
			    "here; write to /tmp, or ask for --rw.");
	plan.mounts = &data;
	plan.mount_count = 1;
	fact = write_fact("/workspace/data/x");
	fact_say(&fact, &plan);
	CHECK(strstr(fact.say, "--mount /srv/data:/workspace/data:rw"));
	plan.workspace.access = ACCESS_RW;
	fact = write_fact("/etc/passwd");
	fact_say(&fact, &plan);
	CHECK(strstr(fact.say, "write to /tmp or /workspace."));
	fact_init(&fact, FACT_NETWORK_ACCESS, SOURCE_SECCOMP);
	snprintf(fact.detail.host, sizeof fact.detail.host, "pypi.org");
	fact_say(&fact, &plan);
	CHECK(strstr(fact.say, "pypi.org"));
	for (unsigned event = 0; event < FACT_EVENT_COUNT; event++) {
		fact_init(&fact, event, SOURCE_MONITOR);
		fact_say(&fact, &plan);
		CHECK(strlen(fact.say) > 20 && strlen(fact_event_name(event)) > 10);
	}
}

static const struct tap_test tests[] = {
	{ "untrusted text is cleaned", test_text_is_cleaned },
	{ "equal facts fold into a count", test_equal_facts_fold },
	{ "a flood of different facts is bounded", test_flood_is_bounded },
	{ "kill is for violations, not for noise", test_kill_and_noise },
	{ "the JSON has the documented fields", test_json },
	{ "secrets are masked", test_secrets_are_masked },
	{ "rule and sentence come from the path that matched", test_rules_of_the_workspace },
	{ "sentences name what is allowed instead", test_sentences },
};

TAP_MAIN(tests)
