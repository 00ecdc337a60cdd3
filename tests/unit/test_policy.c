/* The file: what is accepted, and each way to be refused, with its place. */
#include "policy/file.h"
#include "tap.h"

#include <errno.h>

#include "base/str.h"

static const char sample[] =
	"version: 1\n"
	"tier: balanced\n"
	"approval: none\n"
	"backend: any\n"
	"workspace: {path: ., at: /workspace, mode: ro, hide: [\".env\", \".env.*\", \"*.pem\"], "
	"protect: [.git/hooks, .git/config, .envrc, .vscode]}\n"
	"mounts: [{host: data/, at: /workspace/data, mode: ro}]\n"
	"mount_roots: []\n"
	"scratch: {at: /tmp, size: 512MiB}\n"
	"network: {mode: none, allow: []}\n"
	"limits: {command: 45s, budget: 180s, startup: 10s, idle: 0, cpus: 2, memory: 1GiB, "
	"processes: 256, output: 10MiB, open_files: 1024}\n"
	"limits_mode: best\n"
	"env: {pass: [LANG, TERM, NO_COLOR, COLORTERM, TZ], set: {}, git_identity: false}\n"
	"toolchains: auto\n"
	"observe: []\n"
	"on_violation: record\n"
	"strict_when: [{tag: payments}, {command: \"*migrate*\"}, {path: \"**/secrets/**\"}]\n"
	"container: {image: null, rootless: preferred}\n"
	"command: {argv: [ssh, -o, A=1, -o, A=1, host], enforces: [fs-write, pids], "
	"observes: [SyscallViolation]}\n"
	"overrides: {per_request: false}\n"
	"gates: []\n"
	"forwards: [\"tcp:127.0.0.1:8000:/tmp/model.sock\"]\n";

static int parse(const char *text, size_t size, struct policy **ret_policy, struct csn_error *err)
{
	return policy_parse("p.yaml", text, size, ret_policy, err);
}

static void test_sample(void)
{
	struct policy *policy = NULL;
	struct csn_error err = { 0 };

	if (parse(sample, sizeof sample - 1, &policy, &err) < 0)
		printf("# %s\n", err.text);
	CHECK(policy);
	for (size_t id = 0; id < KEY_COUNT; id++) {
		printf("# %s\n", policy_keys[id].path);
		CHECK(policy->values[id].is_set);
		CHECK(policy->values[id].mark.line > 0);
	}
	CHECK(policy->values[KEY_LIMITS_COMMAND].number == 45000);
	CHECK(policy->values[KEY_LIMITS_COMMAND].mark.line == 10);
	CHECK(policy->values[KEY_LIMITS_COMMAND].mark.column == 19);
	CHECK(policy->values[KEY_LIMITS_CPUS].number == 2000);
	CHECK(policy->values[KEY_MOUNTS].count == 1);
	CHECK(policy->values[KEY_STRICT_WHEN].count == 3);
	CHECK(policy_says(policy, "limits.idle") && !policy_says(policy, "limits"));
	CHECK(!policy_says(NULL, "limits.idle"));
	policy_free(policy);
	policy_free(NULL);
}

/* What follows "version: 1\n" unless it says version itself; where and what is complained of. */
static const struct bad {
	const char *text, *place, *what;
} bad_table[] = {
	{ "versoin: 1", "1:1", "unknown key versoin, expected version" },
	{ "", "1:1", "an empty file" },
	{ "tier: balanced", "1:1", "no version, expected version: 1" },
	{ "version: 2", "1:10", "expected 1" },
	{ "version: 0", "1:10", "expected 1" },
	{ "version: \"1\"", "1:10", "expected 1" },
	{ "version: 1.0", "1:10", "expected 1" },
	{ "version: [1]", "1:10", "version is a list, expected 1" },
	{ "version: 1\nversion: 1", "2:1", "duplicate key version" },
	{ "[1]", "1:1", "not a map" },
	{ "just text", "1:1", "not a map" },
	{ "version: 1\nlimts: {}", "2:1", "unknown key limts, expected limits" },
	{ "version: 1\nfoo: {}", "2:1", "unknown key foo, expected version, tier" },
	{ "version: 1\nlimits: {comand: 5s}", "2:10", "limits.comand, expected command" },
	{ "version: 1\nlimits: {command: 5s, command: 6s}", "2:23", "duplicate key command" },
	{ "version: 1\nlimits.command: 5s", "2:1", "unknown key limits.command" },
	{ "version: 1\n\"limits\": {x.command: 5s}", "2:12", "unknown key" },
	{ "version: 1\nlimits:", "2:8", "limits is not a map" },
	{ "version: 1\nlimits: []", "2:9", "limits is not a map" },
	{ "version: 1\ntier: {balanced: 1}", "2:7", "tier is a map" },
	{ "version: 1\ntier: strictest", "2:7", "expected local, virtual" },
	{ "version: 1\ntier:", "2:6", "tier is \"\"" },
	{ "version: 1\ntier: null", "2:7", "tier is \"null\"" },
	{ "version: 1\napproval: yes", "2:11", "expected none or required" },
	{ "version: 1\nbackend: Docker", "2:10", "expected any" },
	{ "version: 1\nworkspace: {mode: rwx}", "2:19", "expected ro, rw or cow" },
	{ "version: 1\nworkspace: {path: true}", "2:19", "expected a folder" },
	{ "version: 1\nworkspace: {path: \"\"}", "2:19", "expected a folder" },
	{ "version: 1\nworkspace: {path: \"a\\nb\"}", "2:19", "is \"a?b\"" },
	{ "version: 1\nworkspace: {at: here}", "2:17", "expected an absolute path" },
	{ "version: 1\nworkspace: {at: /usr/x}", "2:17", "expected an absolute path" },
	{ "version: 1\nworkspace: {hide: .env}", "2:19", "not a list" },
	{ "version: 1\nworkspace: {hide: [null]}", "2:20", "expected a pattern" },
	{ "version: 1\nworkspace: {hide: [../x]}", "2:20", "expected a pattern" },
	{ "version: 1\nworkspace: {hide: [a, b, a]}", "2:26", "twice" },
	{ "version: 1\nworkspace: {protect: [/etc]}", "2:23", "expected a path" },
	{ "version: 1\nmounts: {}", "2:9", "expected a list" },
	{ "version: 1\nmounts: [a:/b]", "2:10", "expected a list of {host" },
	{ "version: 1\nmounts: [{host: a}]", "2:10", "without at" },
	{ "version: 1\nmounts: [{at: /b}]", "2:10", "without host" },
	{ "version: 1\nmounts: [{host: a, at: b}]", "2:24", "expected an absolute path" },
	{ "version: 1\nmounts: [{host: a, at: host}]", "2:24", "expected an absolute path" },
	{ "version: 1\nmounts: [{host: a, at: /x/../y}]", "2:24", "expected an absolute path" },
	{ "version: 1\nmounts: [{host: a, at: /, mode: ro}]", "2:24", "expected an absolute" },
	{ "version: 1\nmounts: [{host: a, at: //, mode: ro}]", "2:24", "expected an absolute" },
	{ "version: 1\nmounts: [{host: a, at: /b, mode: cow}]", "2:34", "expected ro or rw" },
	{ "version: 1\nmounts: [{host: a, at: /b, ro: true}]", "2:28", "unknown key" },
	{ "version: 1\nscratch: {at: host}", "2:15", "expected an absolute path" },
	{ "version: 1\nscratch: {size: 0}", "2:17", "expected a size" },
	{ "version: 1\nnetwork: none", "2:10", "network is not a map" },
	{ "version: 1\nnetwork: {mode: all}", "2:17", "expected none, loopback" },
	{ "version: 1\nnetwork: {allow: [\"http://x\"]}", "2:19", "expected HOST" },
	{ "version: 1\nnetwork: {allow: [\"x:0\"]}", "2:19", "expected HOST" },
	{ "version: 1\nnetwork: {allow: [\"x:65536\"]}", "2:19", "expected HOST" },
	{ "version: 1\nnetwork: {allow: [a.org]}", "2:18", "under network.mode none" },
	{ "version: 1\nnetwork: {allow: [a.org], mode: loopback}", "2:18", "mode loopback" },
	{ "version: 1\nnetwork:\n  mode: engine\n  allow: [a.org]", "4:10", "mode engine" },
	{ "version: 1\nlimits: {command: 0}", "2:19", "expected a time" },
	{ "version: 1\nlimits: {command: 0s}", "2:19", "expected a time" },
	{ "version: 1\nlimits: {command: -5s}", "2:19", "\"-5s\", expected a time" },
	{ "version: 1\nlimits: {command: 45}", "2:19", "expected a time" },
	{ "version: 1\nlimits: {command: 99999999999999999999h}", "2:19", "expected a time" },
	{ "version: 1\nlimits: {command: 20000h}", "2:19", "expected a time" },
	{ "version: 1\nlimits: {command: true}", "2:19", "expected a time" },
	{ "version: 1\nlimits: {idle: -1s}", "2:16", "expected a time" },
	{ "version: 1\nlimits: {memory: 1GB}", "2:18", "expected a size" },
	{ "version: 1\nlimits: {memory: -1}", "2:18", "expected a size" },
	{ "version: 1\nlimits: {memory: 18446744073709551616GiB}", "2:18", "expected a size" },
	{ "version: 1\nlimits: {memory: unlimited}", "2:18", "expected a size" },
	{ "version: 1\nlimits: {processes: 0}", "2:21", "expected a number" },
	{ "version: 1\nlimits: {processes: -1}", "2:21", "expected a number" },
	{ "version: 1\nlimits: {processes: 4194305}", "2:21", "expected a number" },
	{ "version: 1\nlimits: {processes: 99999999999999999999}", "2:21", "expected a number" },
	{ "version: 1\nlimits: {processes: \"256\"}", "2:21", "expected a number" },
	{ "version: 1\nlimits: {processes: 0x10}", "2:21", "expected a number" },
	{ "version: 1\nlimits: {cpus: 0}", "2:16", "expected a number" },
	{ "version: 1\nlimits: {cpus: 0.0001}", "2:16", "expected a number" },
	{ "version: 1\nlimits: {cpus: 1e3}", "2:16", "expected a number" },
	{ "version: 1\nlimits: {cpus: -2}", "2:16", "expected a number" },
	{ "version: 1\nlimits: {cpus: 4097}", "2:16", "expected a number" },
	{ "version: 1\nlimits: {cpus: .5}", "2:16", "expected a number" },
	{ "version: 1\nlimits: {cpus: 2.}", "2:16", "expected a number" },
	{ "version: 1\nenv: {pass: [1X]}", "2:14", "expected a name" },
	{ "version: 1\nenv: {pass: [\"A=B\"]}", "2:14", "expected a name" },
	{ "version: 1\nenv: {pass: [\"A\\nB\"]}", "2:14", "expected a name" },
	{ "version: 1\nenv: {set: [A]}", "2:12", "expected a map" },
	{ "version: 1\nenv: {set: {A: true}}", "2:16", "text in quotes" },
	{ "version: 1\nenv: {set: {A: [b]}}", "2:16", "text in quotes" },
	{ "version: 1\nenv: {set: {\"A B\": c}}", "2:13", "not a variable's name" },
	{ "version: 1\nenv: {set: {A: b, A: c}}", "2:19", "duplicate key A" },
	{ "version: 1\nenv: {git_identity: yes}", "2:21", "expected true or false" },
	{ "version: 1\nenv: {git_identity: \"true\"}", "2:21", "expected true or false" },
	{ "version: 1\ntoolchains: all", "2:13", "expected auto or none" },
	{ "version: 1\nobserve: [writes]", "2:11", "expected reads" },
	{ "version: 1\non_violation: panic", "2:15", "expected record or kill" },
	{ "version: 1\nstrict_when: [payments]", "2:15", "not a rule" },
	{ "version: 1\nstrict_when: [{tag: a, path: b}]", "2:15", "not a rule" },
	{ "version: 1\nstrict_when: [{user: a}]", "2:15", "not a rule" },
	{ "version: 1\nstrict_when: [{tag: }]", "2:21", "not a pattern" },
	{ "version: 1\ncommand: {enforces: [fs-cow]}", "2:22", "expected fs-view, " },
	{ "version: 1\ncommand: {enforces: [pids, pids]}", "2:28", "names this twice" },
	{ "version: 1\ncommand: {observes: [TimeoutViolation]}", "2:22", "expected Network" },
	{ "version: 1\ncommand: {argv: sh}", "2:17", "not a list" },
	{ "version: 1\ncommand: {argv: [\"\"]}", "2:18", "expected an argument" },
	{ "version: 1\ncommand: [sh]", "2:10", "command is not a map" },
	{ "version: 1\ncontainer: {image: \"-v\"}", "2:20", "expected a name of an image" },
	{ "version: 1\noverrides: {per_request: 1}", "2:26", "expected true or false" },
	{ "version: 1\ngates: [\"rm -rf\"]", "2:9", "expected a name" },
	{ "version: &a 1", "1:10", "an anchor" },
	{ "version: 1\nlimits: &a {}", "2:9", "an anchor" },
	{ "version: 1\ngates: &a []", "2:8", "an anchor" },
	{ "version: 1\ntier: *a", "2:7", "an alias" },
	{ "version: 1\n*a : b", "2:1", "an alias" },
	{ "version: 1\n<<: *a", "2:5", "an alias" },
	{ "version: !!int 1", "1:10", "a tag" },
	{ "version: ! 1", "1:10", "a tag" },
	{ "version: 1\nlimits: !!map {}", "2:9", "a tag" },
	{ "version: 1\ngates: !x []", "2:8", "a tag" },
	{ "%YAML 1.1\n---\nversion: 1", "1:1", "a directive" },
	{ "%TAG ! tag:x,2000:\n---\nversion: 1", "1:1", "a directive" },
	{ "version: 1\n---\nversion: 1", "2:1", "a second document" },
	{ "version: 1\n...\n---\n", "3:1", "a second document" },
	{ "version: 1\n? [a]\n: b", "2:3", "as a key" },
	{ "version: 1\ntier: [", "", "expected YAML" },
	{ "version: 1\n\ttier: strict", "2:1", "expected YAML" },
	{ "version: 1\ntier: \"a\\0b\"", "2:7", "a NUL in a text" },
	{ "version: 1\ntier: \xff", "2:7", "not UTF-8" },
	{ "version: 1\n# gr\xc3\xbc\xc3\x9f\x80", "2:7", "not UTF-8" },
	{ "version: 1\ntier: \x01", "2:7", "expected YAML" },
	{ "version: 1\ngates: [[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]", "2:23", "nesting too deep" },
};

static void test_bad(void)
{
	int wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(bad_table); i++) {
		const struct bad *row = &bad_table[i];
		struct policy *policy = NULL;
		struct csn_error err = { 0 };
		char place[64];
		int code = parse(row->text, strlen(row->text), &policy, &err);

		snprintf(place, sizeof place, "p.yaml:%s%s", row->place, *row->place ? ": " : "");
		if (code == -EINVAL && !policy && str_starts(err.text, place) &&
		    strstr(err.text, row->what) && strstr(err.text, ", expected "))
			continue;
		printf("# row %zu, %s: %d %s\n", i, row->text, code, err.text);
		wrong++;
	}
	CHECK(wrong == 0);
}

static void test_nul_and_size(void)
{
	struct policy *policy = NULL;
	struct csn_error err = { 0 };
	size_t size = 10 << 20;
	char *big = malloc(size);

	CHECK(parse("version: 1\n\0", 12, &policy, &err) == -EINVAL);
	CHECK(str_starts(err.text, "p.yaml:2:1: a NUL"));
	CHECK(big);
	memset(big, '[', size);
	alarm(5);
	CHECK(parse(big, size, &policy, &err) == -E2BIG);
	CHECK(strstr(err.text, "expected at most 1048576"));
	CHECK(parse(big, POLICY_MAX_BYTES, &policy, &err) == -EINVAL);
	memset(big, ' ', POLICY_MAX_BYTES);
	memcpy(big, "version: 1\n", 11);
	CHECK(parse(big, POLICY_MAX_BYTES, &policy, &err) == 0);
	policy_free(policy);
	CHECK(parse(NULL, 0, &policy, &err) == -EINVAL);
	free(big);
}

/* Many entries, long texts and control bytes in names end in a bounded, clean sentence. */
static void test_floods(void)
{
	struct policy *policy = NULL;
	struct csn_error err = { 0 };
	static char text[POLICY_MAX_BYTES];
	size_t n = 0;

	n += (size_t)snprintf(text, sizeof text, "version: 1\ngates: [");
	for (int i = 0; i < 257; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "g%d, ", i);
	text[n++] = ']';
	CHECK(parse(text, n, &policy, &err) == -EINVAL);
	CHECK(strstr(err.text, "too many entries, expected at most 256"));
	n = (size_t)snprintf(text, sizeof text, "version: 1\n\"\\x1b[31m");
	memset(text + n, 'x', 500);
	n += 500;
	n += (size_t)snprintf(text + n, sizeof text - n, "\": 1\n");
	CHECK(parse(text, n, &policy, &err) == -EINVAL);
	CHECK(!strchr(err.text, 0x1b) && strstr(err.text, "unknown key ?[31mxxx"));
}

static void test_good(void)
{
	static const struct {
		const char *text;
		enum key_id id;
		uint64_t number;
	} table[] = {
		{ "version: 1", KEY_VERSION, 1 },
		{ "---\nversion: 1\n...\n", KEY_VERSION, 1 },
		{ "\xef\xbb\xbfversion: 1\n", KEY_VERSION, 1 },
		{ "{version: 1, tier: Auto}", KEY_TIER, TIER_AUTO },
		{ "{version: 1, tier: assisted}", KEY_TIER, TIER_ASSISTED },
		{ "{version: 1, tier: humanapprove}", KEY_TIER, TIER_ASSISTED },
		{ "{version: 1, tier: MANUALONLY}", KEY_TIER, TIER_STRICT },
		{ "{version: 1, limits: {cpus: 0.5}}", KEY_LIMITS_CPUS, 500 },
		{ "{version: 1, limits: {cpus: 1.25}}", KEY_LIMITS_CPUS, 1250 },
		{ "{version: 1, limits: {cpus: 0.001}}", KEY_LIMITS_CPUS, 1 },
		{ "{version: 1, limits: {cpus: 4096}}", KEY_LIMITS_CPUS, 4096000 },
		{ "{version: 1, limits: {cpus: none}}", KEY_LIMITS_CPUS, PLAN_UNLIMITED },
		{ "{version: 1, limits: {command: \"45s\"}}", KEY_LIMITS_COMMAND, 45000 },
		{ "{version: 1, limits: {command: none}}", KEY_LIMITS_COMMAND, PLAN_UNLIMITED },
		{ "{version: 1, limits: {idle: 0}}", KEY_LIMITS_IDLE, 0 },
		{ "{version: 1, limits: {idle: none}}", KEY_LIMITS_IDLE, 0 },
		{ "{version: 1, limits: {memory: 1073741824}}", KEY_LIMITS_MEMORY, 1u << 30 },
		{ "{version: 1, limits: {processes: 4194304}}", KEY_LIMITS_PROCESSES, 4194304 },
		{ "{version: 1, network: {mode: engine}}", KEY_NETWORK_MODE, NETWORK_ENGINE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct policy *policy = NULL;
		struct csn_error err = { 0 };
		int code = parse(table[i].text, strlen(table[i].text), &policy, &err);

		printf("# %.*s: %s\n", (int)strcspn(table[i].text, "\n"), table[i].text, err.text);
		CHECK(code == 0);
		CHECK(policy->values[table[i].id].number == table[i].number);
		policy_free(policy);
	}
}

static const struct tap_test tests[] = {
	{ "every key of the reference is read, with its place", test_sample },
	{ "each bad input is refused where it stands", test_bad },
	{ "size is refused before parsing", test_nul_and_size },
	{ "floods end in a bounded sentence", test_floods },
	{ "values mean what they say", test_good },
};

TAP_MAIN(tests)
