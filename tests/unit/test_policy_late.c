/* What may be lent to a sandbox that runs: a table over one plan with something of everything. */
#include "policy_help.h"

static const char *const no_names[] = { NULL };

static void lend(struct plan *plan, const struct policy_facts *facts)
{
	static const char *roots[] = { "/srv", "/home", "/etc", "/run", "/w", NULL };
	static const char *hide[] = { ".env", "vault", "conf/*.key", NULL };
	static const char *protect[] = { ".git/hooks", "rules", NULL };
	static struct plan_mount mounts[] = { { "/srv/one", "/data", ACCESS_RO } };

	CHECK(plan_init(plan, TIER_BALANCED) == 0);
	plan->mount_roots = roots;
	plan->mounts = mounts;
	plan->mount_count = 1;
	plan->workspace =
		(struct plan_workspace){ "/w/ws", "/workspace", ACCESS_RW, hide, protect };
	plan->policy_path = "/w/ws/sub/caisson.yaml";
	CHECK(facts->home && facts->run_root);
}

static void test_table(void)
{
	static const struct {
		const char *host, *at;
		enum plan_access access;
		int code;
		const char *text;
	} rows[] = {
		{ "/srv/a", "/mnt/a", ACCESS_RO, 0, "" },
		{ "/srv", "/mnt/a", ACCESS_RO, 0, "" },
		{ "/srv/a", "/mnt/rw/a", ACCESS_RW, 0, "" },
		{ "/srv/a", "/mnt/rw/a", ACCESS_RO, 0, "" },
		{ "/srv/a", "/mnt/a", ACCESS_RW, -EPERM, "only beneath /mnt/rw" },
		{ "/srv/a", "/mnt/rwx", ACCESS_RW, -EPERM, "only beneath /mnt/rw" },
		{ "/srv/a", "/mnt/rw", ACCESS_RO, -EBUSY, "cover" },
		{ "/srv/a", "/mnt", ACCESS_RO, -EBUSY, "cover" },
		{ "/srv/a", "/data", ACCESS_RO, -EBUSY, "another mount" },
		{ "/srv/a", "/data/b", ACCESS_RO, 0, "" },
		{ "/srv/a", "/workspace", ACCESS_RO, -EBUSY, "the workspace" },
		{ "/srv/a", "/workspace/x", ACCESS_RO, 0, "" },
		{ "/srv/a", "/tmp", ACCESS_RO, -EBUSY, "scratch" },
		{ "/srv/a", "/", ACCESS_RO, -EINVAL, "no place" },
		{ "/srv/a", "/proc/x", ACCESS_RO, -EINVAL, "no place" },
		{ "/srv/a", "/usr/x", ACCESS_RO, -EINVAL, "no place" },
		{ "/srv/a", "/run/caisson", ACCESS_RO, -EINVAL, "no place" },
		{ "/srv/a", "host", ACCESS_RO, -EINVAL, "no place" },
		{ "/srvx", "/mnt/a", ACCESS_RO, -EPERM, "mount_roots: [/srvx]" },
		{ "/", "/mnt/a", ACCESS_RO, -EPERM, "mount_roots" },
		{ "/home/u", "/mnt/a", ACCESS_RO, -EPERM, "home" },
		{ "/home", "/mnt/a", ACCESS_RO, -EPERM, "home" },
		{ "/home/u/.local/state/caisson/runs/x", "/mnt/a", ACCESS_RO, -EPERM, "run root" },
		{ "/home/u/.local", "/mnt/a", ACCESS_RO, -EPERM, "run root" },
		{ "/run/docker.sock", "/mnt/a", ACCESS_RO, -EPERM, "services" },
		{ "/etc", "/mnt/a", ACCESS_RO, 0, "" },
		{ "/etc", "/mnt/rw/a", ACCESS_RW, -EPERM, "mount it ro" },
		/* the workspace by another way */
		{ "/w", "/mnt/a", ACCESS_RO, -EPERM, "contains the workspace" },
		{ "/w/ws", "/mnt/a", ACCESS_RO, -EPERM, "contains the workspace" },
		{ "/w/ws/.env", "/mnt/a", ACCESS_RO, -EPERM, "hidden" },
		{ "/w/ws/a/.env", "/mnt/a", ACCESS_RO, -EPERM, "hidden" },
		{ "/w/ws/vault/x", "/mnt/a", ACCESS_RO, -EPERM, "hidden" },
		{ "/w/ws/a", "/mnt/a", ACCESS_RO, 0, "" },
		{ "/w/ws/a", "/mnt/rw/a", ACCESS_RW, 0, "" },
		{ "/w/ws/.git", "/mnt/a", ACCESS_RO, 0, "" },
		{ "/w/ws/.git", "/mnt/rw/a", ACCESS_RW, -EPERM, "protect" },
		{ "/w/ws/.git/hooks/x", "/mnt/rw/a", ACCESS_RW, -EPERM, "protect" },
		{ "/w/ws/rules", "/mnt/rw/a", ACCESS_RW, -EPERM, "protect" },
		{ "/w/ws/sub", "/mnt/rw/a", ACCESS_RW, -EPERM, "protect" },
		{ "/w/ws/sub/caisson.yaml", "/mnt/rw/a", ACCESS_RW, -EPERM, "protect" },
		{ "/w/ws/sub", "/mnt/a", ACCESS_RO, 0, "" },
		/* over guarded names */
		{ "/srv/a", "/workspace/.git/hooks", ACCESS_RO, -EPERM, "hides or protects" },
		{ "/srv/a", "/workspace/.git", ACCESS_RO, -EPERM, "hides or protects" },
		{ "/srv/a", "/workspace/.git/hooks/x", ACCESS_RO, -EPERM, "hides or protects" },
		{ "/srv/a", "/workspace/.git/objects", ACCESS_RO, 0, "" },
		{ "/srv/a", "/workspace/.env", ACCESS_RO, -EPERM, "hides or protects" },
		{ "/srv/a", "/workspace/vault/x", ACCESS_RO, -EPERM, "hides or protects" },
		{ "/srv/a", "/workspace/sub", ACCESS_RO, -EPERM, "hides or protects" },
		{ "/srv/a", "/mnt/a", ACCESS_COW, -EINVAL, "ro or rw" },
	};
	const struct policy_facts facts = { .home = "/home/u",
					    .run_root = "/home/u/.local/state/caisson/runs" };
	struct plan plan;
	int wrong = 0;

	lend(&plan, &facts);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct plan_mount mount = { rows[i].host, rows[i].at, rows[i].access };
		struct csn_error err = { 0 };
		int code = policy_may_lend(&plan, &facts, &mount, &err);

		if (code == rows[i].code && strstr(err.text, rows[i].text))
			continue;
		printf("# %s:%s: %d %s\n", rows[i].host, rows[i].at, code, err.text);
		wrong++;
	}
	CHECK(wrong == 0);
	plan.mounts = NULL;
	plan_done(&plan);
}

/* Where something of the plan lies over /mnt/rw, nothing is lent writable. */
static void test_no_place(void)
{
	static struct plan_mount over[] = { { "/srv/one", "/mnt", ACCESS_RW } };
	const struct plan_mount mount = { "/srv/a", "/mnt/rw/a", ACCESS_RW };
	const struct policy_facts facts = { .home = "/home/u", .run_root = "/var/runs" };
	struct csn_error err = { 0 };
	struct plan plan;

	lend(&plan, &facts);
	CHECK(plan_lends_late(&plan));
	plan.mounts = over;
	CHECK(!plan_lends_late(&plan));
	CHECK(policy_may_lend(&plan, &facts, &mount, &err) == -EPERM);
	plan.mount_count = 0;
	plan.scratch_at = "/mnt/rw";
	CHECK(!plan_lends_late(&plan));
	plan.scratch_at = "/tmp";
	plan.workspace.at = "/mnt";
	CHECK(!plan_lends_late(&plan));
	plan.workspace.host = NULL;
	CHECK(plan_lends_late(&plan));
	plan.mount_roots = (const char **)no_names;
	CHECK(!plan_lends_late(&plan));
	plan_done(&plan);
}

static void test_split(void)
{
	struct plan_mount mount;
	char plain[] = "a:b:/c d:rw", none[] = "a:b", empty[] = ":/x", last[] = "/a:/b:/c:ro";

	CHECK(policy_split_mount(plain, &mount) == 0);
	CHECK_STR(mount.host, "a:b");
	CHECK_STR(mount.at, "/c d");
	CHECK(mount.access == ACCESS_RW);
	CHECK(policy_split_mount(last, &mount) == 0);
	CHECK_STR(mount.host, "/a:/b");
	CHECK_STR(mount.at, "/c");
	CHECK(mount.access == ACCESS_RO);
	CHECK(policy_split_mount(none, &mount) == -EINVAL);
	CHECK(policy_split_mount(empty, &mount) == -EINVAL);
}

static const struct tap_test tests[] = {
	{ "what is lent, and where", test_table },
	{ "no place for it", test_no_place },
	{ "HOST:AT in parts", test_split },
};

TAP_MAIN(tests)
