/*
 * Privileges: gone in every set and for every id, as root, as an ordinary user and as the root
 * of a user namespace; and the attempts to get them back do find what was left.
 */
#include "os/privs.h"

#include "own_space.h"

#include <linux/capability.h>
#include <sys/syscall.h>

enum { PRIVATE = 1879048192 };

static void expect_ids(uid_t uid, gid_t gid)
{
	uid_t r, e, s;
	gid_t rg, eg, sg;

	CHECK(getresuid(&r, &e, &s) == 0 && r == uid && e == uid && s == uid);
	CHECK(getresgid(&rg, &eg, &sg) == 0 && rg == gid && eg == gid && sg == gid);
}

/* One line of /proc/self/status as a number. */
static unsigned long long capabilities(const char *name)
{
	const char *line = strstr(get_text("/proc/self/status"), name);
	unsigned long long value = ~0ULL;

	CHECK(line && sscanf(line + strlen(name), " %llx", &value) == 1);
	return value;
}

static void expect_no_caps(bool with_bounds)
{
	CHECK(capabilities("CapPrm:") == 0 && capabilities("CapEff:") == 0);
	CHECK(capabilities("CapInh:") == 0 && capabilities("CapAmb:") == 0);
	CHECK(!with_bounds || capabilities("CapBnd:") == 0);
}

static void expect_no_way_back(void)
{
	const char *attempt = "none";

	CHECK(privs_cannot_regain(&attempt) == 0);
	CHECK_STR(attempt, "none");
	CHECK(setuid(0) < 0 && seteuid(0) < 0 && setgid(0) < 0);
	CHECK(setgroups(0, NULL) < 0 && chroot("/") < 0);
	CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0) < 0);
}

static void needs_root(void)
{
	if (geteuid() != 0)
		SKIP("root: only it has something to give up");
}

static void root_drops_all(void)
{
	static const gid_t groups[] = { 0, 4, 27 };

	needs_root();
	CHECK(setgroups(3, groups) == 0);
	CHECK(privs_drop_bounding() == 0 && capabilities("CapBnd:") == 0);
	CHECK(privs_set_ids(PRIVATE, PRIVATE) == 0);
	expect_ids(PRIVATE, PRIVATE);
	CHECK(getgroups(0, NULL) == 0);
	CHECK(privs_drop_caps() == 0);
	expect_no_caps(true);
	CHECK(privs_no_new() == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	expect_no_way_back();
}

/* Capabilities before ids: uid 0 alone is nothing. */
static void root_drops_caps(void)
{
	needs_root();
	CHECK(privs_drop_bounding() == 0 && privs_drop_caps() == 0);
	expect_no_caps(true);
	CHECK(privs_drop_bounding() == -EPERM); /* too late: that must be seen */
	CHECK(privs_set_ids(PRIVATE, PRIVATE) == -EPERM);
	CHECK(unshare(CLONE_NEWNS) < 0 && errno == EPERM);
}

static void user_has_none(void)
{
	uid_t uid;

	be_ordinary();
	uid = geteuid();
	CHECK(privs_set_ids(0, 0) == -EPERM && privs_set_ids(uid, 0) == -EPERM);
	CHECK(privs_set_ids(uid, getegid()) == 0);
	CHECK(privs_drop_bounding() == 0); /* not his to drop, and without a meaning */
	CHECK(privs_drop_caps() == 0 && privs_no_new() == 0);
	expect_no_caps(false);
	expect_no_way_back();
}

/* The root of a user namespace has every capability there until it drops them. */
static void namespace_root(void)
{
	const char *attempt = NULL;

	own_users(CLONE_NEWNS);
	CHECK(capabilities("CapEff:") != 0);
	CHECK(privs_cannot_regain(&attempt) == -EPERM && attempt);
	CHECK(privs_drop_bounding() == 0 && privs_drop_caps() == 0 && privs_no_new() == 0);
	expect_no_caps(true);
	CHECK(mount("none", "/tmp", "tmpfs", 0, NULL) < 0 && errno == EPERM);
	CHECK(unshare(CLONE_NEWNS) < 0 && sethostname("x", 1) < 0);
}

/* ---- the attempts must find what is left ---------------------------------------------------- */

static void expect_found(const char *name)
{
	const char *attempt = "none";

	CHECK(privs_cannot_regain(&attempt) == -EPERM);
	CHECK_STR(attempt, name);
}

static void finds_uid(void)
{
	needs_root();
	CHECK(setresuid(PRIVATE, PRIVATE, 0) == 0); /* the saved id was forgotten */
	expect_found("setresuid(0)");
}

static void finds_gid(void)
{
	needs_root();
	CHECK(setresgid(PRIVATE, PRIVATE, 0) == 0);
	CHECK(setresuid(PRIVATE, PRIVATE, PRIVATE) == 0);
	expect_found("setresgid(0)");
}

static void finds_caps(void)
{
	needs_root();
	CHECK(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
	CHECK(privs_set_ids(PRIVATE, PRIVATE) == 0);
	CHECK(capabilities("CapEff:") == 0 && capabilities("CapPrm:") != 0);
	expect_found("capset(CAP_SYS_ADMIN)");
}

/* ---- no new privileges ---------------------------------------------------------------------- */

/* Runs a copy of id(1) that belongs to root and is setuid; its effective uid. */
static unsigned euid_of_setuid_program(bool is_locked)
{
	int pipe_fds[2];
	char text[32] = "";
	unsigned uid = 1;
	pid_t pid;

	CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		be_ordinary();
		if (is_locked && privs_no_new() < 0)
			_exit(1);
		dup2(pipe_fds[1], 1);
		execl("/mnt/id", "id", "-u", NULL);
		_exit(1);
	}
	close(pipe_fds[1]);
	CHECK(read(pipe_fds[0], text, sizeof text - 1) > 0 && sscanf(text, "%u", &uid) == 1);
	CHECK(waitpid(pid, NULL, 0) == pid);
	return uid;
}

static void setuid_programs(void)
{
	int from, to;
	char data[65536];
	ssize_t n;

	needs_root();
	own_mounts();
	from = open("/usr/bin/id", O_RDONLY | O_CLOEXEC);
	to = open("/mnt/id", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	CHECK(from >= 0 && to >= 0);
	while ((n = read(from, data, sizeof data)) > 0)
		CHECK(write(to, data, (size_t)n) == n);
	CHECK(fchmod(to, 04755) == 0);
	close(to);
	CHECK(euid_of_setuid_program(false) == 0);
	CHECK(euid_of_setuid_program(true) == ORDINARY);
}

static void namespace_root_user(void)
{
	be_ordinary();
	namespace_root();
}

static const struct tap_test tests[] = {
	{ "root gives up ids, groups and capabilities", root_drops_all },
	{ "root without capabilities is powerless", root_drops_caps },
	{ "an ordinary user has nothing to regain", user_has_none },
	{ "the root of a user namespace gives up its own", namespace_root },
	{ "the root of a user namespace gives up its own (ordinary user)", namespace_root_user },
	{ "a saved uid 0 is found", finds_uid },
	{ "a saved gid 0 is found", finds_gid },
	{ "kept capabilities are found", finds_caps },
	{ "a setuid program gives nothing back", setuid_programs },
};

TAP_MAIN(tests)
