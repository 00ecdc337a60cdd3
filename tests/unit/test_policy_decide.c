/* Who may loosen what: file, flags and trust on the left, the plan or the refusal on the right. */
#include "policy_help.h"

enum { UNTRUSTED, TRUSTED };

struct good {
	const char *yaml;
	struct policy_request request;
	bool is_trusted;
	const char *key, *value; /* what the plan says afterwards */
	const char *where;       /* of the note; NULL: no note */
	bool loosens;
};

static int try_good(const struct good *row)
{
	struct csn_error err = { 0 };
	struct plan plan;
	const struct plan_note *note;
	int code = decide(row->yaml, &row->request, row->is_trusted, &plan, &err), wrong;

	if (code < 0) {
		printf("# %s: refused: %s\n", row->yaml ? row->yaml : row->key, err.text);
		return 1;
	}
	note = note_of(&plan, row->key);
	wrong = !str_is(shown(&plan, row->key), row->value) ||
		(row->where != NULL) != (note != NULL) ||
		(note && (!str_is(note->where, row->where) || note->loosens != row->loosens));
	if (wrong)
		printf("# %s: %s is %s, by %s, loosens %d\n", row->yaml ? row->yaml : "no file",
		       row->key, shown(&plan, row->key), note ? note->where : "nobody",
		       note ? note->loosens : 0);
	plan_done(&plan);
	return wrong;
}

static void check_good(const struct good *rows, size_t count)
{
	int wrong = 0;

	for (size_t i = 0; i < count; i++)
		wrong += try_good(&rows[i]);
	CHECK(wrong == 0);
}

struct refusal {
	const char *yaml;
	struct policy_request request;
	bool is_trusted;
	int code;
	const char *text; /* part of the sentence */
};

/* The YAML after the first newline of a refusal, as a trusted file, must permit the request. */
static int try_permit(const struct refusal *row, const char *sentence)
{
	const char *yaml = strchr(sentence, '\n');
	struct csn_error err = { 0 };
	struct plan plan;
	int code;

	if (!yaml || row->code != -EPERM || strstr(yaml, "DIR"))
		return 0;
	code = decide(yaml + 1, &row->request, TRUSTED, &plan, &err);
	if (code == 0) {
		plan_done(&plan);
		return 0;
	}
	printf("# does not permit:%s: %s\n", yaml, err.text);
	return 1;
}

static void check_refusals(const struct refusal *rows, size_t count, bool wants_yaml)
{
	int wrong = 0;

	for (size_t i = 0; i < count; i++) {
		struct csn_error err = { 0 };
		struct plan plan;
		int code = decide(rows[i].yaml, &rows[i].request, rows[i].is_trusted, &plan, &err);

		if (code != rows[i].code || !strstr(err.text, rows[i].text) ||
		    (wants_yaml && !strchr(err.text, '\n'))) {
			printf("# row %zu: %d %s\n", i, code, err.text);
			wrong++;
		}
		wrong += try_permit(&rows[i], err.text);
	}
	CHECK(wrong == 0);
}

/* Tiers, none of which a request can lower. */
static const struct good tier_rows[] = {
	{ NULL, { 0 }, 0, "tier", "balanced", NULL, 0 },
	{ NULL, { .tier = "strict" }, 0, "tier", "strict", "--tier", 0 },
	{ NULL, { .tier = "strict" }, 0, "limits.memory", "1536MiB", NULL, 0 },
	{ NULL, { .tier = "HUMANAPPROVE" }, 0, "tier", "assisted", "--tier", 0 },
	{ NULL, { .tier = "HumanApprove" }, 0, "approval", "required", "--tier", 0 },
	{ NULL, { .tier = "assisted" }, 0, "limits_mode", "hard", NULL, 0 },
	{ NULL, { .tier = "assisted" }, 0, "approval", "none", NULL, 0 },
	{ "tier: auto", { 0 }, TRUSTED, "tier", "auto", "p.yaml:2:7", 1 },
	{ "tier: auto", { .tier = "balanced" }, TRUSTED, "tier", "balanced", "--tier", 0 },
	{ "tier: local", { 0 }, TRUSTED, "tier", "local", "p.yaml:2:7", 1 },
	{ "tier: local", { .tier = "local" }, TRUSTED, "tier", "local", "p.yaml:2:7", 1 },
	{ "tier: strict", { 0 }, UNTRUSTED, "tier", "strict", "p.yaml:2:7", 0 },
	{ "tier: ManualOnly", { 0 }, UNTRUSTED, "approval", "required", "p.yaml:2:7", 0 },
	{ "{version: 1, tier: HumanApprove, approval: none}",
	  { 0 },
	  TRUSTED,
	  "approval",
	  "required",
	  "p.yaml:1:20",
	  0 },
	{ "tier: assisted\nlimits_mode: best",
	  { 0 },
	  TRUSTED,
	  "limits_mode",
	  "best",
	  "p.yaml:3:14",
	  1 },
	{ "overrides: {per_request: true}",
	  { .tier = "auto" },
	  TRUSTED,
	  "tier",
	  "auto",
	  "--tier",
	  1 },
};

static const struct refusal tier_refusals[] = {
	{ NULL, { .tier = "auto" }, 0, -EPERM, "auto is weaker" },
	{ NULL, { .tier = "local" }, 0, -EPERM, "no wall at all" },
	{ "tier: strict", { .tier = "assisted" }, TRUSTED, -EPERM, "weaker than the policy's" },
	{ "overrides: {per_request: true}", { .tier = "local" }, TRUSTED, -EPERM, "tier: local" },
	{ NULL, { .tier = "strictest" }, 0, -EINVAL, "no such tier" },
};

static void test_tiers(void)
{
	check_good(tier_rows, ARRAY_SIZE(tier_rows));
	check_refusals(tier_refusals, ARRAY_SIZE(tier_refusals) - 1, true);
	check_refusals(tier_refusals, ARRAY_SIZE(tier_refusals), false);
}

static void test_who_asked_for_strict(void)
{
	const struct {
		const char *yaml, *tier;
		bool by_request, by_policy;
	} rows[] = {
		{ NULL, "strict", true, false },
		{ NULL, NULL, false, false },
		{ "tier: strict", NULL, false, true },
		{ "tier: strict", "strict", true, true },
		{ "strict_when: [{tag: t}]", NULL, false, true },
		{ "strict_when: [{tag: t}]", "ManualOnly", true, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct policy_request request = { .tier = rows[i].tier, .tags = LIST("t") };
		struct csn_error err = { 0 };
		struct plan plan;

		CHECK(decide(rows[i].yaml, &request, true, &plan, &err) == 0);
		CHECK(plan.strict_by_request == rows[i].by_request);
		CHECK(plan.strict_by_policy == rows[i].by_policy);
		plan_done(&plan);
	}
}

/* One row for each key that a stranger's file may not loosen. */
static const char *const loosening[] = {
	"tier: local",
	"tier: virtual",
	"tier: auto",
	"backend: command",
	"backend: kubernetes",
	"command: {argv: [sh]}",
	"command: {enforces: [net-none]}",
	"command: {observes: [SyscallViolation]}",
	"backend: local",
	"workspace: {path: ..}",
	"workspace: {path: /srv/x}",
	"workspace: {mode: rw}",
	"workspace: {hide: [.env]}",
	"workspace: {hide: []}",
	"workspace: {protect: []}",
	"mounts: [{host: /srv/a, at: /a}]",
	"mount_roots: [/srv]",
	"scratch: {at: /scratch}",
	"scratch: {size: 1GiB}",
	"scratch: {size: none}",
	"network: {mode: loopback}",
	"network: {mode: allow}",
	"network: {mode: engine}",
	"network: {mode: allow, allow: [example.org]}",
	"limits: {command: 46s}",
	"limits: {command: none}",
	"limits: {budget: 181s}",
	"limits: {startup: 11s}",
	"limits: {cpus: 2.001}",
	"limits: {memory: 1025MiB}",
	"limits: {processes: 257}",
	"limits: {output: 11MiB}",
	"limits: {open_files: 1025}",
	"tier: assisted\nlimits_mode: best",
	"env: {pass: [AWS_KEY]}",
	"env: {set: {A: b}}",
	"env: {git_identity: true}",
	"container: {image: evil}",
	"overrides: {per_request: true}",
	"gates: [read_file]",
	"forwards: [\"tcp:127.0.0.1:8000:/tmp/m\"]",
};

static const char *const tightening[] = {
	"tier: balanced",
	"tier: strict",
	"approval: required",
	"backend: process",
	"workspace: {path: .}",
	"workspace: {path: src}",
	"workspace: {mode: cow}",
	"workspace: {at: host}",
	"workspace: {hide: [.env, .env.*, \"*.pem\", \"*.key\"]}",
	"scratch: {size: 1MiB}",
	"limits: {command: 1s, memory: 8MiB, cpus: 0.5, idle: 5m}",
	"limits_mode: hard",
	"env: {pass: [LANG]}",
	"env: {pass: []}",
	"toolchains: none",
	"observe: [reads]",
	"on_violation: kill",
	"strict_when: [{command: \"*\"}]",
	"container: {rootless: required}",
	"overrides: {per_request: false}",
	"mounts: []",
	"mount_roots: []",
	"network: {mode: none}",
};

static int try_loosening(const char *yaml)
{
	const struct policy_request request = { 0 };
	struct csn_error err = { 0 };
	struct plan plan;
	int code = decide(yaml, &request, UNTRUSTED, &plan, &err), wrong;

	wrong = code != -EPERM || !str_starts(err.text, "p.yaml:") ||
		!strstr(err.text, "caisson policy trust");
	if (wrong)
		printf("# untrusted %s: %d %s\n", yaml, code, err.text);
	code = decide(yaml, &request, TRUSTED, &plan, &err);
	if (code == 0)
		plan_done(&plan);
	/* The folder above is the home directory: refused for that, trusted or not. */
	if (code != 0 && !strstr(yaml, "..")) {
		printf("# trusted %s: %s\n", yaml, err.text);
		wrong++;
	}
	return wrong;
}

static int try_tightening(const char *yaml)
{
	const struct policy_request request = { 0 };
	struct csn_error err = { 0 };
	struct plan plan;
	int wrong = 0;

	if (decide(yaml, &request, UNTRUSTED, &plan, &err) < 0) {
		printf("# untrusted %s: %s\n", yaml, err.text);
		return 1;
	}
	for (size_t n = 0; n < plan.note_count; n++)
		wrong += plan.notes[n].loosens;
	CHECK(!plan.policy_is_trusted && str_is(plan.policy_path, "p.yaml"));
	plan_done(&plan);
	return wrong;
}

static void test_trust(void)
{
	int wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(loosening); i++)
		wrong += try_loosening(loosening[i]);
	for (size_t i = 0; i < ARRAY_SIZE(tightening); i++)
		wrong += try_tightening(tightening[i]);
	CHECK(wrong == 0);
}

static const struct good grant_rows[] = {
	/* No file: the caller lends what is his. */
	{ NULL, { 0 }, 0, "workspace.path", "/home/u/proj", NULL, 0 },
	{ NULL, { .workspace = "/srv/x" }, 0, "workspace.path", "/srv/x", "--workspace", 0 },
	{ NULL, { .workspace_mode = "rw" }, 0, "workspace.mode", "rw", "--workspace mode", 0 },
	{ NULL, { .workspace_at = "host" }, 0, "workspace.at", "/home/u/proj", "--at", 0 },
	{ NULL, { .workspace_at = "/w//x" }, 0, "workspace.at", "/w/x", "--at", 0 },
	{ NULL, { .network = "loopback" }, 0, "network.mode", "loopback", "--network", 0 },
	{ NULL, { .backend = "oci" }, 0, "backend", "oci", "--backend", 0 },
	{ NULL, { .env = LIST("A", "B=c d") }, 0, "env.set", "{B: \"c d\"}", "--env", 0 },
	{ NULL,
	  { .env = LIST("A", "A") },
	  0,
	  "env.pass",
	  "[LANG, TERM, NO_COLOR, COLORTERM, TZ, A]",
	  "--env",
	  0 },
	{ NULL, { .env = LIST("B=1", "B=2") }, 0, "env.set", "{B: 2}", "--env", 0 },
	{ NULL,
	  { .mounts = LIST("data:/d", "/srv/a:b:/x:rw") },
	  0,
	  "mounts",
	  "[{host: /home/u/proj/data, at: /d, mode: ro}, "
	  "{host: \"/srv/a:b\", at: /x, mode: rw}]",
	  "--mount",
	  0 },
	/* A file: flags only narrow. */
	{ "workspace: {mode: rw}",
	  { .workspace_mode = "ro" },
	  TRUSTED,
	  "workspace.mode",
	  "ro",
	  "--workspace mode",
	  0 },
	{ "workspace: {mode: rw}",
	  { .workspace_mode = "cow" },
	  TRUSTED,
	  "workspace.mode",
	  "cow",
	  "--workspace mode",
	  0 },
	{ "tier: balanced",
	  { .workspace_mode = "cow" },
	  UNTRUSTED,
	  "workspace.mode",
	  "cow",
	  "--workspace mode",
	  0 },
	{ "tier: balanced",
	  { .workspace = "/home/u/proj/src" },
	  UNTRUSTED,
	  "workspace.path",
	  "/home/u/proj/src",
	  "--workspace",
	  0 },
	{ "env: {pass: [A]}",
	  { .env = LIST("A", "A=1") },
	  TRUSTED,
	  "env.set",
	  "{A: 1}",
	  "--env",
	  0 },
	{ "mount_roots: [/srv]",
	  { .mounts = LIST("/srv/x:/x:rw") },
	  TRUSTED,
	  "mounts",
	  "[{host: /srv/x, at: /x, mode: rw}]",
	  "--mount",
	  0 },
	{ "mounts: [{host: data, at: /d, mode: rw}]",
	  { .mounts = LIST("data:/d") },
	  TRUSTED,
	  "mounts",
	  "[{host: /home/u/proj/data, at: /d, mode: ro}]",
	  "--mount",
	  0 },
	{ "network: {mode: allow, allow: [a.org, b.org]}",
	  { .network = "none" },
	  TRUSTED,
	  "network.allow",
	  "[]",
	  "--network",
	  0 },
	{ "network: {mode: allow, allow: [a.org, b.org]}",
	  { .allow = LIST("b.org") },
	  TRUSTED,
	  "network.allow",
	  "[b.org]",
	  "--allow",
	  0 },
	{ "network: {mode: engine}",
	  { .network = "none" },
	  TRUSTED,
	  "network.mode",
	  "none",
	  "--network",
	  0 },
	/* What the file itself grants. */
	{ "workspace: {path: src}",
	  { 0 },
	  TRUSTED,
	  "workspace.path",
	  "/home/u/proj/src",
	  "p.yaml:2:19",
	  0 },
	{ "workspace: {mode: rw}", { 0 }, TRUSTED, "workspace.mode", "rw", "p.yaml:2:19", 1 },
	{ "mounts: [{host: data/, at: /workspace/data}]",
	  { 0 },
	  TRUSTED,
	  "mounts",
	  "[{host: /home/u/proj/data, at: /workspace/data, mode: ro}]",
	  "p.yaml:2:9",
	  1 },
	{ "network: {mode: engine}", { 0 }, TRUSTED, "network.mode", "engine", "p.yaml:2:17", 1 },
};

static const struct refusal grant_refusals[] = {
	{ "tier: balanced", { .workspace_mode = "rw" }, TRUSTED, -EPERM, "workspace: {mode: rw}" },
	{ "overrides: {per_request: true}", { .workspace_mode = "rw" }, TRUSTED, -EPERM, "rw" },
	{ "tier: balanced", { .workspace = "/srv/x" }, TRUSTED, -EPERM, "path: /srv/x" },
	{ "tier: balanced", { .workspace = "/home/u/proj2" }, TRUSTED, -EPERM, "proj2" },
	{ "tier: balanced", { .network = "loopback" }, TRUSTED, -EPERM, "{mode: loopback}" },
	{ "tier: balanced", { .env = LIST("AWS") }, TRUSTED, -EPERM, "COLORTERM, TZ, AWS]" },
	{ "tier: balanced", { .env = LIST("AWS=x") }, TRUSTED, -EPERM, "COLORTERM, TZ, AWS]" },
	{ "env: {set: {A: b}}", { .env = LIST("A=c") }, TRUSTED, -EPERM, "TZ, A]" },
	{ "tier: balanced",
	  { .mounts = LIST("/srv/x:/x") },
	  TRUSTED,
	  -EPERM,
	  "mount_roots: [/srv/x]" },
	{ "mount_roots: [/srv/y]",
	  { .mounts = LIST("/srv/yy:/x") },
	  TRUSTED,
	  -EPERM,
	  "[/srv/y, /srv/yy]" },
	{ "mounts: [{host: data, at: /d}]",
	  { .mounts = LIST("data:/d:rw") },
	  TRUSTED,
	  -EPERM,
	  "mount_roots" },
	{ "network: {mode: allow, allow: [a.org]}",
	  { .allow = LIST("b.org") },
	  TRUSTED,
	  -EPERM,
	  "allow: [b.org]" },
	{ "backend: docker", { .backend = "process" }, TRUSTED, -EPERM, "backend: process" },
	{ "tier: balanced", { .backend = "command" }, TRUSTED, -EPERM, "backend: command" },
};

/* What no build carries out: lines for a policy would lead to the next refusal. */
static const struct refusal planned[] = {
	{ NULL, { .network = "allow" }, 0, -EPERM, "not available in this build" },
	{ NULL, { .allow = LIST("a.org") }, 0, -EPERM, "not available in this build" },
};

static void test_grants(void)
{
	check_good(grant_rows, ARRAY_SIZE(grant_rows));
	/* A file that repeats data: the last two grant_rows of mounts collide when read back. */
	check_refusals(grant_refusals, ARRAY_SIZE(grant_refusals), true);
	check_refusals(planned, ARRAY_SIZE(planned), false);
}

static const struct good bound_rows[] = {
	{ NULL, { 0 }, 0, "limits.command", "45s", NULL, 0 },
	{ NULL,
	  { .limits = LIST("command=10s") },
	  0,
	  "limits.command",
	  "10s",
	  "--limit command",
	  0 },
	{ NULL,
	  { .limits = LIST("command=20s", "command=10s", "command=30s") },
	  0,
	  "limits.command",
	  "30s",
	  "--limit command",
	  0 },
	{ NULL,
	  { .limits = LIST("scratch=1MiB") },
	  0,
	  "scratch.size",
	  "1MiB",
	  "--limit scratch",
	  0 },
	{ NULL, { .limits = LIST("cpus=0.5") }, 0, "limits.cpus", "0.500", "--limit cpus", 0 },
	{ NULL, { .limits = LIST("idle=5m") }, 0, "limits.idle", "5m", "--limit idle", 0 },
	{ NULL, { .stays = true }, 0, "limits.idle", "30m", NULL, 0 },
	{ NULL, { .stays = true }, 0, "limits.budget", "none", NULL, 0 },
	{ "limits: {budget: 1h}",
	  { .stays = true },
	  UNTRUSTED,
	  "limits.budget",
	  "1h",
	  "p.yaml:2:18",
	  0 },
	{ "limits: {command: 10m}", { 0 }, TRUSTED, "limits.command", "10m", "p.yaml:2:19", 1 },
	{ "limits: {command: 45s}", { 0 }, TRUSTED, "limits.command", "45s", NULL, 0 },
	{ "limits: {command: 10m}",
	  { .limits = LIST("command=5m") },
	  TRUSTED,
	  "limits.command",
	  "5m",
	  "--limit command",
	  0 },
	{ "limits: {command: none}",
	  { .limits = LIST("command=5m") },
	  TRUSTED,
	  "limits.command",
	  "5m",
	  "--limit command",
	  0 },
	/* A budget that nobody set is never shorter than one command. */
	{ "limits: {command: 10m}", { 0 }, TRUSTED, "limits.budget", "10m", "p.yaml:2:19", 1 },
	{ "limits: {command: none}", { 0 }, TRUSTED, "limits.budget", "none", "p.yaml:2:19", 1 },
	{ "limits: {command: 2m}", { 0 }, TRUSTED, "limits.budget", "3m", NULL, 0 },
	{ "limits: {command: 10m, budget: 1m}",
	  { 0 },
	  TRUSTED,
	  "limits.budget",
	  "1m",
	  "p.yaml:2:32",
	  0 },
	{ "limits: {command: none}", { .stays = true }, TRUSTED, "limits.budget", "none", NULL, 0 },
	{ "overrides: {per_request: true}",
	  { .limits = LIST("command=10m") },
	  TRUSTED,
	  "limits.budget",
	  "10m",
	  "--limit command",
	  1 },
	{ "overrides: {per_request: true}",
	  { .limits = LIST("command=10m", "budget=4m") },
	  TRUSTED,
	  "limits.budget",
	  "4m",
	  "--limit budget",
	  1 },
	{ "overrides: {per_request: true}\nlimits: {budget: 4m}",
	  { .limits = LIST("command=10m") },
	  TRUSTED,
	  "limits.budget",
	  "4m",
	  "p.yaml:3:18",
	  1 },
	{ "overrides: {per_request: true}",
	  { .limits = LIST("command=none") },
	  TRUSTED,
	  "limits.command",
	  "none",
	  "--limit command",
	  1 },
	{ "overrides: {per_request: true}",
	  { .allow = LIST("a.org") },
	  TRUSTED,
	  "network.mode",
	  "allow",
	  "--allow",
	  1 },
	{ "tier: strict\nlimits: {memory: 1200MiB}",
	  { 0 },
	  UNTRUSTED,
	  "limits.memory",
	  "1200MiB",
	  "p.yaml:3:18",
	  0 },
};

static const struct refusal bound_refusals[] = {
	{ NULL,
	  { .limits = LIST("command=46s") },
	  0,
	  -EPERM,
	  "\nversion: 1\nlimits: {command: 46s}" },
	{ NULL, { .limits = LIST("command=none") }, 0, -EPERM, "limits: {command: none}" },
	{ NULL,
	  { .limits = LIST("memory=4GiB", "scratch=2GiB", "command=1h") },
	  0,
	  -EPERM,
	  "scratch: {size: 2GiB}\nlimits: {command: 1h, memory: 4GiB}" },
	{ NULL, { .stays = true, .limits = LIST("idle=0") }, 0, -EPERM, "limits: {idle: 0}" },
	{ NULL, { .stays = true, .limits = LIST("idle=31m") }, 0, -EPERM, "{idle: 31m}" },
	{ "limits: {command: 10s}",
	  { .limits = LIST("command=11s") },
	  TRUSTED,
	  -EPERM,
	  "policy's 10s" },
	{ "limits: {command: 10s}",
	  { .limits = LIST("command=11s") },
	  UNTRUSTED,
	  -EPERM,
	  "policy's 10s" },
};

static const struct refusal nonsense[] = {
	{ NULL, { .limits = LIST("command") }, 0, -EINVAL, "expected KEY=VALUE" },
	{ NULL, { .limits = LIST("=1s") }, 0, -EINVAL, "expected KEY=VALUE" },
	{ NULL, { .limits = LIST("comand=1s") }, 0, -EINVAL, "no such limit" },
	{ NULL, { .limits = LIST("command=0") }, 0, -EINVAL, "expected a time" },
	{ NULL, { .limits = LIST("command=-1s") }, 0, -EINVAL, "--limit command: " },
	{ NULL, { .limits = LIST("memory=1TB") }, 0, -EINVAL, "expected a size" },
	{ NULL, { .backend = "dockre" }, 0, -EINVAL, "--backend: backend is \"dockre\"" },
	{ NULL, { .workspace_mode = "wr" }, 0, -EINVAL, "expected ro, rw or cow" },
	{ NULL, { .network = "all" }, 0, -EINVAL, "expected none, loopback" },
	{ NULL, { .allow = LIST("http://x") }, 0, -EINVAL, "is not a host" },
	{ NULL, { .allow = LIST("a.org"), .network = "none" }, 0, -EINVAL, "leave one of the two" },
	{ "overrides: {per_request: true}",
	  { .allow = LIST("a.org"), .network = "engine" },
	  TRUSTED,
	  -EINVAL,
	  "leave one of the two" },
	{ NULL, { .env = LIST("1A=b") }, 0, -EINVAL, "not a variable's name" },
	{ NULL, { .env = LIST("=b") }, 0, -EINVAL, "not a variable's name" },
	{ NULL, { .env = LIST("A\nB=b") }, 0, -EINVAL, "not a variable's name" },
	{ NULL, { .env = LIST("A=\xff") }, 0, -EINVAL, "not UTF-8" },
};

static void test_bounds(void)
{
	check_good(bound_rows, ARRAY_SIZE(bound_rows));
	check_refusals(bound_refusals, ARRAY_SIZE(bound_refusals), true);
	check_refusals(nonsense, ARRAY_SIZE(nonsense), false);
}

static const struct tap_test tests[] = {
	{ "a tier is a minimum that no request lowers", test_tiers },
	{ "strict remembers who asked", test_who_asked_for_strict },
	{ "a file found by search only tightens", test_trust },
	{ "grants are lent by flags, narrowed where a file speaks", test_grants },
	{ "bounds are loosened by a file only", test_bounds },
};

TAP_MAIN(tests)
