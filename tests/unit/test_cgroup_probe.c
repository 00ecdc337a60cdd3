/*
 * What the probe makes of layouts (a tree of plain files), and how a user manager is asked, by a
 * bus that a child plays.
 */
#include "os/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "base/str.h"
#include "os/cgroup_file.h"
#include "os/cgroup_manager.h"
#include "tap.h"

/* ---- a tree of plain files ---- */

static char tree[64];

static void put(const char *name, const char *text)
{
	char path[1024];

	snprintf(path, sizeof path, "%s/%s", tree, name);
	for (char *at = path + strlen(tree) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = 0;
		mkdir(path, 0755);
	}
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void plant(void)
{
	snprintf(tree, sizeof tree, "/tmp/caisson-test-XXXXXX");
	CHECK(mkdtemp(tree));
	CHECK(chmod(tree, 0755) == 0);
}

static void remove_tree(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char child[1024];

		if (str_is(entry->d_name, ".") || str_is(entry->d_name, ".."))
			continue;
		snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
		if (unlink(child) < 0)
			remove_tree(child);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

static bool is_scope; /* the manager has just given us our own group */

/* `mounts`: %1$s is the tree. */
static struct cgroup_probe look(const char *mounts, const char *self)
{
	struct cgroup_probe probe;
	char text[2048], mountinfo[128], cgroup[128];

	snprintf(text, sizeof text, mounts, tree);
	put("mountinfo", text);
	put("self", self);
	snprintf(mountinfo, sizeof mountinfo, "%s/mountinfo", tree);
	snprintf(cgroup, sizeof cgroup, "%s/self", tree);
	cgroup_probe_from(&(struct cgroup_sources){ mountinfo, cgroup, is_scope }, &probe);
	return probe;
}

static const char *under_tree(const char *path)
{
	return str_starts(path, tree) ? path + strlen(tree) : path;
}

static void v2_file(const char *group, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", group, name);
	put(path, text);
}

/* A group that hands nothing down holds processes. */
static void v2_group(const char *name, const char *controllers, const char *subtree)
{
	v2_file(name, "cgroup.type", "domain\n");
	v2_file(name, "cgroup.procs", *subtree ? "" : "17\n");
	v2_file(name, "cgroup.controllers", controllers);
	v2_file(name, "cgroup.subtree_control", subtree);
}

#define V2_MOUNT                                \
	"22 1 0:21 / /proc rw - proc proc rw\n" \
	"31 23 0:28 / %1$s/fs rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"

static void test_probe_v2_slice(void)
{
	plant();
	v2_group("fs/app", "cpu memory pids\n", "memory pids\n");
	v2_group("fs/app/run-1.scope", "memory pids\n", "");
	struct cgroup_probe probe = look(V2_MOUNT, "0::/app/run-1.scope\n");

	remove_tree(tree);
	CHECK(probe.layout == CGROUP_V2);
	CHECK(!probe.needs_leaf);
	CHECK(probe.has[CGROUP_MEMORY] && probe.has[CGROUP_PIDS] && probe.has[CGROUP_CPU]);
	CHECK_STR(under_tree(probe.base[CGROUP_PIDS]), "/fs/app/caisson");
}

static void test_probe_v2_scope(void)
{
	plant();
	v2_group("fs/app", "cpu memory pids\n", "memory pids\n");
	v2_group("fs/app/caisson-1.scope", "memory pids\n", "");
	is_scope = true;
	struct cgroup_probe probe = look(V2_MOUNT, "0::/app/caisson-1.scope\n");

	remove_tree(tree);
	CHECK(probe.needs_leaf);
	CHECK_STR(under_tree(probe.base[CGROUP_MEMORY]), "/fs/app/caisson-1.scope/caisson");
}

static void test_probe_v2_delegated(void)
{
	plant();
	v2_group("fs/run.scope", "memory pids\n", "");
	struct cgroup_probe probe = look(V2_MOUNT, "0::/run.scope\n");

	/* The mount's top is a group without `cgroup.procs`: not ours. */
	remove_tree(tree);
	CHECK(probe.needs_leaf);
	CHECK(probe.has[CGROUP_MEMORY] && !probe.has[CGROUP_CPU]);
	CHECK_STR(under_tree(probe.base[CGROUP_MEMORY]), "/fs/run.scope/caisson");
	CHECK(strstr(probe.reason[CGROUP_CPU], "Delegate=cpu memory pids"));
}

static void test_probe_v2_not_delegated(void)
{
	char path[128];

	plant();
	v2_group("fs/session.scope", "memory pids\n", "");
	snprintf(path, sizeof path, "%s/fs/session.scope/cgroup.procs", tree);
	CHECK(unlink(path) == 0);
	struct cgroup_probe probe = look(V2_MOUNT, "0::/session.scope\n");

	remove_tree(tree);
	CHECK(probe.layout == CGROUP_V2 && !probe.has[CGROUP_MEMORY]);
	CHECK_STR(probe.reason[CGROUP_MEMORY],
		  "no delegation: run under `systemd-run --user --scope -p Delegate=yes`");
}

/* Delegated from above, processes only below: nothing has to move. */
static void test_probe_v2_empty_group(void)
{
	plant();
	v2_group("fs/mine", "memory pids\n", "");
	v2_file("fs/mine", "cgroup.procs", "");
	v2_group("fs/mine/shell", "", "");
	struct cgroup_probe probe = look(V2_MOUNT, "0::/mine/shell\n");

	remove_tree(tree);
	CHECK(!probe.needs_leaf && probe.has[CGROUP_MEMORY]);
	CHECK_STR(under_tree(probe.base[CGROUP_MEMORY]), "/fs/mine/caisson");
}

/* Somebody else has just moved us to the leaf and not yet handed controllers down. */
static void test_probe_v2_in_the_leaf(void)
{
	plant();
	v2_group("fs/mine", "memory pids\n", "");
	v2_group("fs/mine/caisson-main", "memory pids\n", "");
	struct cgroup_probe probe = look(V2_MOUNT, "0::/mine/caisson-main\n");

	remove_tree(tree);
	CHECK(probe.needs_leaf);
	CHECK_STR(under_tree(probe.base[CGROUP_MEMORY]), "/fs/mine/caisson");
}

/* A group that hands nothing down and has nothing: no group of ours, and no process is moved. */
static void test_probe_v2_no_controllers(void)
{
	struct csn_error err;
	struct cgroup cg;

	plant();
	v2_group("fs/mine", "", "");
	struct cgroup_probe probe = look(V2_MOUNT, "0::/mine\n");

	remove_tree(tree);
	CHECK(probe.layout == CGROUP_V2 && !probe.base[0][0] && !probe.has[CGROUP_MEMORY]);
	CHECK(cgroup_create(&probe, "x", &(struct cgroup_limits){ 0 }, &cg, &err) == -ENOTSUP);
	CHECK(strstr(err.text, "not handed down"));
}

/* The slice hands down, but whoever leaves the scope sheds its limit, or its owner. */
static void test_probe_v2_border(void)
{
	static const struct {
		const char *file, *text;
		bool is_border;
	} cases[] = { { "memory.max", "1000\n", true },
		      { "memory.max", "max\n", false },
		      { "memory.high", "4096\n", true },
		      { "cpu.max", "max 100000\n", false },
		      { "cpu.max", "5000 100000\n", true },
		      { NULL, "1", true },
		      { NULL, "0", false } };
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		plant();
		v2_group("fs/app", "memory pids\n", "memory pids\n");
		v2_group("fs/app/run-1.scope", "memory pids\n", "");
		snprintf(path, sizeof path, "%s/fs/app/run-1.scope", tree);
		if (cases[i].file)
			v2_file("fs/app/run-1.scope", cases[i].file, cases[i].text);
		else if (setxattr(path, "user.delegate", cases[i].text, 1, 0) < 0)
			SKIP("a file system with user attributes in /tmp");
		struct cgroup_probe probe = look(V2_MOUNT, "0::/app/run-1.scope\n");

		remove_tree(tree);
		CHECK(probe.needs_leaf == cases[i].is_border);
		CHECK_STR(under_tree(probe.base[CGROUP_PIDS]),
			  cases[i].is_border ? "/fs/app/run-1.scope/caisson" : "/fs/app/caisson");
	}
}

static void test_probe_v2_root(void)
{
	plant();
	put("fs/cgroup.procs", "");
	put("fs/cgroup.subtree_control", "");
	put("fs/cgroup.controllers", "cpuset cpu io memory pids\n");
	struct cgroup_probe probe = look(V2_MOUNT, "0::/\n");

	remove_tree(tree);
	CHECK(!probe.needs_leaf && probe.has[CGROUP_CPU]);
	CHECK_STR(under_tree(probe.base[CGROUP_CPU]), "/fs/caisson");
}

#define V1_MOUNTS                                                             \
	"32 31 0:29 / %1$s/cpu\\040,acct rw - cgroup cgroup rw,cpu,cpuacct\n" \
	"35 31 0:32 /docker/abc %1$s/memory rw - cgroup cgroup rw,memory\n"   \
	"41 31 0:38 / %1$s/unified rw - cgroup2 cgroup2 rw\n"

static void test_probe_hybrid(void)
{
	plant();
	put("cpu ,acct/cgroup.procs", "");
	put("memory/work/cgroup.procs", "");
	struct cgroup_probe probe = look(V1_MOUNTS, "9:name=systemd:/x\n4:memory:/docker/abc/work\n"
						    "3:cpuset:/y\n1:cpu,cpuacct:/\n0::/z\n");

	remove_tree(tree);
	CHECK(probe.layout == CGROUP_V1);
	CHECK_STR(under_tree(probe.base[CGROUP_MEMORY]), "/memory/work/caisson");
	CHECK_STR(under_tree(probe.base[CGROUP_CPU]), "/cpu ,acct/caisson");
	CHECK(!probe.has[CGROUP_PIDS] && strstr(probe.reason[CGROUP_PIDS], "pids is not mounted"));
}

static void test_probe_foreign_part(void)
{
	plant();
	struct cgroup_probe probe = look(V1_MOUNTS, "4:memory:/docker/abcd\n1:cpu:/../up\n");

	remove_tree(tree);
	CHECK(probe.layout == CGROUP_V1);
	CHECK(strstr(probe.reason[CGROUP_MEMORY], "does not show our own group"));
	CHECK(strstr(probe.reason[CGROUP_CPU], "does not show our own group"));
}

static void test_probe_garbage(void)
{
	char text[1900];

	plant();
	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = 0;
	CHECK(look(text, "0:\n::\n:\n\n").layout == CGROUP_NONE);
	CHECK(look("a - \n - - - -\n1 2 3 - cgroup x memory\n1 2 3 4 5 - cgroup\n", "").layout ==
	      CGROUP_NONE);
	struct cgroup_probe probe = look("", "");

	remove_tree(tree);
	CHECK(strstr(probe.reason[CGROUP_MEMORY], "mount -t cgroup2"));
}

static void test_words(void)
{
	CHECK(cgroup_text_has("rw,cpu,cpuacct", "cpu"));
	CHECK(!cgroup_text_has("rw,cpuacct,cpuset", "cpu"));
	CHECK(cgroup_text_has("cpuset memory\n", "memory"));
	CHECK(cgroup_id_is_valid("a-B_9"));
	CHECK(!cgroup_id_is_valid("") && !cgroup_id_is_valid("..") && !cgroup_id_is_valid("a/b"));
	CHECK(!cgroup_id_is_valid(
		"a123456789a123456789a123456789a123456789a123456789a123456789abcd"));
}

/* ---- a user manager's bus, played by a child ---- */

#define OK_LINE "OK 0123456789abcdef\r\n"
#define MESSAGE(kind, body)                                            \
	{                                                              \
		'l', kind, 0, 1, body, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0 \
	}

struct play {
	const char *line; /* to the introduction; NULL: hang up */
	uint8_t kinds[4]; /* messages without fields, up to a 0 */
	uint8_t body;     /* bytes that each claims and brings */
	bool is_cut;      /* the last one brings nothing */
	bool is_silent;   /* at the end it waits instead of hanging up */
	int result;
};

static void act(const struct play *play, int listener)
{
	int fd = accept(listener, NULL, NULL);
	uint8_t waste[1024] = { 0 };

	alarm(10);
	if (!play->line || read(fd, waste, sizeof waste) <= 0 || waste[0] != 0)
		_exit(1);
	if (write(fd, play->line, strlen(play->line)) < 0)
		_exit(1);
	for (size_t i = 0; i < sizeof play->kinds && play->kinds[i]; i++) {
		const uint8_t head[] = MESSAGE(play->kinds[i], play->body);

		if (write(fd, head, sizeof head) < 0 ||
		    (!play->is_cut && write(fd, waste, play->body) < 0))
			_exit(1);
	}
	while (play->is_silent && read(fd, waste, sizeof waste) > 0)
		;
	_exit(0);
}

static int ask(const struct play *play)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int r, listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s/bus", tree);
	CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
	CHECK(listen(listener, 1) == 0);
	pid_t pid = fork();
	if (pid == 0)
		act(play, listener);
	close(listener);
	r = cgroup_manager_scope(address.sun_path, getpid(), clock_now_ms() + 300);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(address.sun_path);
	return r;
}

static void test_manager_accepts(void)
{
	/* Signals come between the answers; bodies longer than the buffer are skipped. */
	static const struct play plays[] = {
		{ OK_LINE, { 2, 2 }, 0, false, true, 0 },
		{ OK_LINE, { 2, 4, 4, 2 }, 200, false, true, 0 },
	};
	uint8_t call[CGROUP_MANAGER_CALL];
	size_t size = cgroup_manager_call("a.scope", 0x01020304, call);

	CHECK(size > 0 && size % 8 == 0);
	CHECK(memmem(call, size, "\4\0\0\0\4\3\2\1", 8)); /* the list of one process */
	plant();
	for (size_t i = 0; i < ARRAY_SIZE(plays); i++)
		CHECK(ask(&plays[i]) == plays[i].result);
	remove_tree(tree);
}

static void test_manager_misbehaves(void)
{
	static const struct play plays[] = {
		{ NULL, { 0 }, 0, false, false, -EPROTO },
		{ "REJECTED EXTERNAL\r\n", { 0 }, 0, false, true, -EPROTO },
		{ "OK without an end", { 0 }, 0, false, true, -ETIMEDOUT },
		{ OK_LINE, { 2, 3 }, 0, false, true, -EPROTO },
		{ OK_LINE, { 2 }, 0, false, true, -ETIMEDOUT },
		{ OK_LINE, { 2 }, 0, false, false, -EPROTO },
		{ OK_LINE, { 4, 2, 2 }, 200, true, true, -ETIMEDOUT },
	};
	char path[CGROUP_MANAGER_PATH];

	plant();
	for (size_t i = 0; i < ARRAY_SIZE(plays); i++) {
		int r = ask(&plays[i]);

		if (r != plays[i].result)
			printf("# play %zu: %d, not %d\n", i, r, plays[i].result);
		CHECK(r == plays[i].result ||
		      (plays[i].result == -EPROTO && (r == -ECONNRESET || r == -EPIPE)));
	}
	remove_tree(tree);
	CHECK(cgroup_manager_scope("/nonexistent", getpid(), 0) == -ENOENT);
	CHECK(setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/proc/version,guid=1", 1) == 0);
	CHECK(cgroup_manager_find(path) == -ENOENT);
}

/* Where the mounts are where they usually are the short way gives the long way's answer. */
static void test_probe_usual(void)
{
	static const struct cgroup_sources self = { "/proc/self/mountinfo", "/proc/self/cgroup",
						    false };
	struct cgroup_probe quick, whole;

	cgroup_probe(&quick);
	cgroup_probe_from(&self, &whole);
	CHECK(quick.layout == whole.layout && quick.needs_leaf == whole.needs_leaf);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		CHECK(quick.has[i] == whole.has[i]);
		CHECK_STR(quick.base[i], whole.base[i]);
		CHECK_STR(quick.reason[i], whole.reason[i]);
	}
}

static const struct tap_test tests[] = {
	{ "the short way and the long one", test_probe_usual },
	{ "words and ids", test_words },
	{ "v2: a slice above hands controllers down", test_probe_v2_slice },
	{ "v2: a scope of the manager's is not left", test_probe_v2_scope },
	{ "v2: a delegated scope needs a leaf", test_probe_v2_delegated },
	{ "v2: no delegation says what to run", test_probe_v2_not_delegated },
	{ "v2: a delegated group without processes", test_probe_v2_empty_group },
	{ "v2: in the leaf of another start", test_probe_v2_in_the_leaf },
	{ "v2: a group without controllers", test_probe_v2_no_controllers },
	{ "v2: limits and delegations are not left", test_probe_v2_border },
	{ "v2: the root of the hierarchy", test_probe_v2_root },
	{ "manager: its bus takes the call", test_manager_accepts },
	{ "manager: a bus that misbehaves", test_manager_misbehaves },
	{ "v1: hybrid, nested, escaped", test_probe_hybrid },
	{ "v1: a mount of somebody else's part", test_probe_foreign_part },
	{ "garbage in /proc", test_probe_garbage },
};
TAP_MAIN(tests)
