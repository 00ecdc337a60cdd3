/* Notifications on files and denied calls: what is a fact, what is noise, what ends the run. */
#include "notify_inside.h"

static void host_file(const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", workspace, name);
	put_file(path, "x");
	chmod(path, 0666);
}

static void expect_paths(const char *const *paths, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (i >= list.count || !str_is(list.facts[i].detail.path, paths[i])) {
			show();
			printf("# fact %zu is not %s\n", i, paths[i]);
			CHECK(!"facts");
		}
	}
	if (list.count != count)
		show();
	CHECK(list.count == count);
}

static void program_quiet(void)
{
	char deep[4000];

	note(open_("/tmp/made", O_WRONLY | O_CREAT));
	note(open_("/rw/made", O_WRONLY | O_CREAT));
	note(open_("/workspace/missing", O_WRONLY));
	note(open_("/workspace/file", O_WRONLY | O_CREAT | O_EXCL));
	note(open_("/workspace/file", O_RDONLY));
	note(open_("/dev/null", O_RDWR));
	note(open_("/dev/stdout", O_WRONLY));
	note(open_("/proc/self/comm", O_WRONLY | O_CREAT | O_TRUNC)); /* a shell's ">" */
	note(open_("/proc/1/task/1/comm", O_RDWR));
	note(mkdir("/workspace", 0777));
	note(mkdir("/tmp/d", 0777));
	note(chdir("/tmp/d"));
	note(open_("../up", O_WRONLY | O_CREAT));
	note(open_("here", O_WRONLY | O_CREAT));
	note(unlink("/workspace/missing"));
	note(rename("/workspace/missing", "/workspace/other"));
	note(chmod("/workspace/missing", 0600));
	note(rename("/tmp/made", "/tmp/renamed"));
	note(open_((const char *)8, O_WRONLY));
	for (size_t i = 0; i < sizeof deep; i++)
		deep[i] = "/a"[i % 2];
	deep[sizeof deep - 1] = 0;
	memcpy(deep, "/tmp", 4);
	note(open_(deep, O_WRONLY | O_CREAT));
}

static void files_quiet(bool as_user)
{
	static const int results[] = { 0,     0,     ENOENT, EEXIST, 0,      0,     0,
				       0,     0,     EEXIST, 0,      0,      0,     0,
				       EROFS, EROFS, ENOENT, 0,      EFAULT, ENOENT };

	start(as_user);
	host_file("file");
	CHECK(run_box(program_quiet) == 0);
	/* /dev/stdout is the test's own: what it is depends on who runs it. */
	shared->results[6] = 0;
	expect_results(results, ARRAY_SIZE(results));
	expect_paths(NULL, 0);
	CHECK(stats.handled >= ARRAY_SIZE(results) - 2);
	finish();
}

static void program_denied(void)
{
	int fd;

	note(open_("/workspace/new", O_WRONLY | O_CREAT));
	note(open_("/workspace/file", O_RDWR));
	note(mkdir("/home/x/y", 0777));
	note(unlink("/workspace/file"));
	note(rename("/tmp", "/workspace/moved"));
	symlink("/workspace/through", "/tmp/dangling");
	note(open_("/tmp/dangling", O_WRONLY | O_CREAT));
	note(chdir("/tmp"));
	note(open_("../workspace/relative", O_WRONLY | O_CREAT));
	fd = open_("/workspace", O_PATH);
	note(openat(fd, "beneath", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	note(chmod("/workspace/file", 0600));
	note(open_("/proc/sys/kernel/core_pattern", O_WRONLY));
	close(fd);
	fd = open_("/workspace/file", O_RDONLY);
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	note(open_(path, O_RDWR));
	note(open_("/proc/self/root/workspace/magic", O_WRONLY | O_CREAT));
	note(open_("/workspace", O_TMPFILE | O_RDWR));
	note(truncate("/etc/hosts", 0));
	symlink("../workspace", "/tmp/ws");
	note(open_("ws/linked", O_WRONLY | O_CREAT));
}

static void files_denied(bool as_user)
{
	static const int results[] = { EROFS, EROFS, EROFS,  EROFS, EBUSY, EROFS, 0,     EROFS,
				       EROFS, EROFS, EACCES, EROFS, EROFS, EROFS, EROFS, EROFS };
	static const char *const paths[] = {
		"/workspace/new",
		"/workspace/file",
		"/home/x/y",
		"/workspace/file",
		"/tmp",
		"/workspace/through",
		"/workspace/relative",
		"/workspace/beneath",
		"/workspace/file",
		"/proc/sys/kernel/core_pattern",
		"/workspace/magic",
		"/workspace",
		"/etc/hosts",
		"/workspace/linked",
	};

	start(as_user);
	host_file("file");
	CHECK(run_box(program_denied) == 0);
	/* mkdir below a missing folder: the kernel says ENOENT, the attempt is one all the same. */
	CHECK(shared->results[2] == ENOENT || shared->results[2] == EROFS);
	shared->results[2] = EROFS;
	CHECK(shared->results[4] == EBUSY || shared->results[4] == EXDEV);
	shared->results[4] = EBUSY;
	expect_results(results, ARRAY_SIZE(results));
	expect_paths(paths, ARRAY_SIZE(paths));
	for (size_t i = 0; i < list.count; i++)
		CHECK(!list.facts[i].is_certain && list.facts[i].event == FACT_FILESYSTEM_WRITE);
	CHECK_STR(list.facts[0].rule, "workspace.mode: ro");
	CHECK_STR(list.facts[0].detail.syscall, "openat");
	CHECK_STR(list.facts[4].detail.to, "/workspace/moved");
	CHECK(list.facts[1].count == 2); /* by /proc/self/fd it is the same file again */
	CHECK(list.facts[0].comm[0] && list.facts[0].pid > 0);
	finish();
}

static void program_reads(void)
{
	note(open_("/root/.ssh/id_rsa", O_RDONLY));
	note(open_("/etc/missing", O_RDONLY));
	note(open_("/workspace/.env", O_RDONLY));
	note(open_("/sys/fs/cgroup", O_RDONLY));
	note(open_("/workspace/file", O_RDONLY));
}

static void reads(bool as_user)
{
	static const char *hide[] = { ".env", NULL };
	static const char *const paths[] = { "/root/.ssh/id_rsa", "/workspace/.env" };

	start(as_user);
	host_file(".env");
	host_file("file");
	plan.workspace.hide = hide;
	profile = "command-reads";
	CHECK(run_box(program_reads) == 0);
	expect_paths(paths, ARRAY_SIZE(paths));
	CHECK(list.facts[0].event == FACT_FILESYSTEM_READ);
	finish();
}

/* ---- denied calls, ends, floods ----------------------------------------------------------- */

static void program_ptrace(void)
{
	errno = 0;
	note(syscall(SYS_ptrace, PTRACE_ATTACH, 0x1234, (uint64_t)1 << 40, 7));
	note(syscall(SYS_mknod, "/tmp/fifo", S_IFIFO | 0600, 0));
	note(syscall(SYS_mknod, "/tmp/whiteout", S_IFCHR, 0));
}

static void denied(bool as_user)
{
	static const int results[] = { EPERM, 0, EPERM };

	start(as_user);
	CHECK(run_box(program_ptrace) == 0);
	expect_results(results, 3);
	CHECK(list.count == 2 && list.facts[0].event == FACT_SYSCALL && list.facts[0].is_certain);
	CHECK_STR(list.facts[0].detail.syscall, "ptrace");
	CHECK(list.facts[0].detail.args[0] == PTRACE_ATTACH &&
	      list.facts[0].detail.args[2] == (uint64_t)1 << 40);
	CHECK(strstr(list.facts[0].rule, "reads other processes"));
	finish();
}

static void program_kill(void)
{
	open_("/tmp/__pycache__", O_WRONLY | O_CREAT);
	open_("/workspace/__pycache__", O_WRONLY | O_CREAT);
	note(0);
	open_("/workspace/new", O_WRONLY | O_CREAT);
	note(0);
}

static void kills(bool as_user)
{
	start(as_user);
	plan.on_violation = REACT_KILL;
	CHECK(run_box(program_kill) == -1);
	CHECK(last_state == NOTIFY_END && list.wants_end);
	CHECK(shared->count == 1); /* the call that did it never came back */
	finish();
}

static void program_flood(void)
{
	int64_t begin = (int64_t)clock_now_ms();

	for (int i = 0; i < 3000; i++)
		syscall(SYS_ptrace, 0, 0, 0, 0);
	shared->elapsed_ms = (int64_t)clock_now_ms() - begin;
}

static void floods(bool as_user)
{
	start(as_user);
	CHECK(run_box(program_flood) == 0);
	if (list.count != 1 || list.facts[0].count != 3000)
		show();
	CHECK(list.count == 1 && list.facts[0].count == 3000);
	if (shared->elapsed_ms < 700 || stats.delayed == 0)
		printf("# %lld ms, %llu delays\n", (long long)shared->elapsed_ms,
		       (unsigned long long)stats.delayed);
	CHECK(shared->elapsed_ms >= 700 && stats.delayed > 0);
	finish();
}

BOTH(files_quiet)
BOTH(files_denied)
BOTH(reads)
BOTH(denied)
BOTH(kills)

static void floods_plain(void)
{
	floods(false);
}

static const struct tap_test tests[] = {
	ROWS(files_quiet, "what changes nothing or is permitted is no fact"),
	ROWS(files_denied, "writes outside the plan are facts with resolved paths"),
	ROWS(reads, "watched reads outside the view are facts"),
	ROWS(denied, "a denied call gets the profile's errno and is certain"),
	ROWS(kills, "on_violation: kill ends the run, noise does not"),
	{ "a flood is answered late", floods_plain },
};

TAP_MAIN(tests)
