/*
 * Every allocation fails once: by the arena's quota, then by the allocator itself. The
 * outcome is a clean error or, where nothing was missing, the same plan.
 */
#include "policy/file.h"
#include "tap.h"

#include <errno.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_calloc(size_t count, size_t size);
void *malloc(size_t size);
void *realloc(void *old, size_t size);
void *calloc(size_t count, size_t size);

static size_t countdown; /* the allocation that fails; 0: none */

static int fails(void)
{
	return countdown && --countdown == 0;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *realloc(void *old, size_t size)
{
	return fails() ? NULL : __libc_realloc(old, size);
}

void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : __libc_calloc(count, size);
}

static const char yaml[] =
	"version: 1\ntier: ManualOnly\nworkspace: {path: sub, at: host, mode: rw, hide: [a, b]}\n"
	"mounts: [{host: data, at: /x}, {host: /srv, at: /y, mode: rw}]\nmount_roots: [/srv]\n"
	"network: {mode: allow, allow: [a.org]}\nlimits: {command: 10m, cpus: 1.5}\n"
	"env: {pass: [A, B], set: {C: d}}\nstrict_when: [{path: \"**/s/**\"}, {command: \"*x*\"}]\n"
	"gates: [echo]\n";

static const struct policy_facts facts = { "/p", "/p", "/home/u", "/r", "/p", true, true };

static int everything(void)
{
	const char *const limits[] = { "command=5m", NULL }, *const env[] = { "A=1", NULL };
	const char *const argv[] = { "make", "x", NULL }, *const mounts[] = { "/srv/z:/z", NULL };
	const struct policy_request request = { .limits = limits,
						.env = env,
						.argv = argv,
						.mounts = mounts,
						.workspace = "/p/sub/b2" };
	_cleanup_buf_ struct buf text = { .max = 1 << 16 }, edited = { .max = 1 << 16 };
	struct policy *policy = NULL;
	struct csn_error err;
	struct plan plan = { 0 };
	int code = policy_parse("p.yaml", yaml, sizeof yaml - 1, &policy, &err);

	if (code == 0)
		code = policy_decide(policy, &request, &facts, &plan, &err);
	if (code == 0)
		code = policy_explain(policy, &plan, &text);
	if (code == 0)
		code = policy_render(&plan, &text);
	if (code == 0)
		code = policy_set(&(struct policy_file){ "p.yaml", yaml, sizeof yaml - 1 },
				  "limits.memory", "8MiB", &edited, &err);
	plan_done(&plan);
	policy_free(policy);
	return code;
}

static void test_allocator(void)
{
	size_t n = 0;
	int code = -1;

	CHECK(everything() == 0);
	while (code != 0 && ++n < 100000) {
		bool was_hit;

		countdown = n;
		code = everything();
		was_hit = countdown == 0;
		countdown = 0;
		if (!was_hit)
			break;
		/* A note may show "(not shown)" for want of memory; all else must fail. */
		CHECK(code == 0 || code == -ENOMEM || code == -E2BIG);
		code = -1;
	}
	printf("# %zu allocations\n", n);
	CHECK(n > 50 && n < 100000);
}

static void test_quota(void)
{
	int code = -1;

	for (size_t quota = 0; code != 0; quota++) {
		struct policy *policy = NULL;
		struct csn_error err = { 0 };
		struct policy_source source = { NULL, "p.yaml", &err };

		CHECK(quota < 1 << 20);
		code = policy_parse_within(&source, yaml, sizeof yaml - 1, quota, &policy);
		CHECK(code == 0 || (code == -ENOMEM && !policy && err.text[0]));
		policy_free(policy);
	}
}

#ifdef __SANITIZE_ADDRESS__
/* The sanitizer has an allocator of its own, which cannot be asked to fail like this. */
static void test_nothing(void)
{
	(void)test_allocator;
	(void)test_quota;
	SKIP("allocator: the sanitizer's own");
}

static const struct tap_test tests[] = { { "any allocation may fail", test_nothing } };
#else
static const struct tap_test tests[] = {
	{ "any allocation may fail", test_allocator },
	{ "any quota ends in an error or a policy", test_quota },
};
#endif

TAP_MAIN(tests)
