/* A command's lockdown: the order of its table, what a failed step says, and what is executed. */
#include "agent/child.h"

#include <sys/socket.h>

#include "agent/spare_message.h"
#include "base/str.h"
#include "own_space.h"

static int find(const char *name)
{
	for (int i = 0; child_steps[i].name; i++)
		if (str_is(child_steps[i].name, name))
			return i;
	return -1;
}

static void order(void)
{
	static const struct {
		const char *first, *then;
	} pairs[] = {
		{ "session", "filter" }, { "scope", "filter" },      { "streams", "filter" },
		{ "filter", "command" }, { "command", "groups" },    { "command", "cwd" },
		{ "groups", "cwd" },     { "filter", "dumpable" },   { "command", "dumpable" },
		{ "cwd", "listener" },   { "dumpable", "listener" },
	};
	int count = 0;

	while (child_steps[count].name)
		count++;
	/* Only the limit of descriptors, which its listener needs one of, and execve follow. */
	CHECK_STR(child_steps[count - 3].name, "listener");
	CHECK_STR(child_steps[count - 2].name, "report"); /* in the place of the socket for that */
	CHECK_STR(child_steps[count - 1].name, "limits");
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		CHECK(find(pairs[i].first) >= 0 && find(pairs[i].then) >= 0);
		CHECK(find(pairs[i].first) < find(pairs[i].then));
	}
	for (int i = 0; i < count; i++) {
		CHECK(find(child_steps[i].name) == i && child_steps[i].run);
		CHECK(child_steps[i].why && strlen(child_steps[i].why) >= 10);
		CHECK(strlen(child_steps[i].name) < sizeof((struct child_failure *)0)->stage);
	}
}

static char output[4096];
static struct child_failure failure;
static bool is_orphan;

/* Runs a child to its end; its output and what it said if nothing was executed. */
static int run(const char *const *argv, const char *path, const char *cwd, const char *profile)
{
	static char *const env[] = { (char *)"A=1", NULL };
	int out[2], failed[2], status;
	size_t size = 0;
	ssize_t n;
	pid_t pid;

	CHECK(pipe2(out, O_CLOEXEC) == 0 && pipe2(failed, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		struct child child = { .argv = (char *const *)argv,
				       .env = env,
				       .path = path,
				       .cwd = cwd,
				       .fds = { open("/dev/null", O_RDONLY | O_CLOEXEC), out[1],
						out[1] },
				       .tty_fd = -1,
				       .failure_fd = failed[1],
				       .listeners_fd = -1,
				       .enter_fd = -1,
				       .parent = is_orphan ? 1 : getppid(),
				       .profile = profile };

		alarm(20);
		child_run(&child);
	}
	close(out[1]);
	close(failed[1]);
	while ((n = read(out[0], output + size, sizeof output - 1 - size)) > 0)
		size += (size_t)n;
	output[size] = 0;
	failure = (struct child_failure){ 0 };
	n = read(failed[0], &failure, sizeof failure);
	CHECK(n == 0 || n == sizeof failure);
	close(out[0]);
	close(failed[0]);
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
#define RUN(path, ...) run((const char *const[]){ __VA_ARGS__, NULL }, path, "/", "none")

static void executes(void)
{
	CHECK(RUN("/usr/bin:/bin", "sh", "-c", "echo $A $HOME; pwd; umask; exit 7") == 7);
	CHECK_STR(output, "1\n/\n0022\n");
	CHECK(failure.error == 0);
	CHECK(RUN("", "/bin/sh", "-c", "kill -9 $$") == 128 + 9);
}

static void streams_and_session(void)
{
	CHECK(RUN("/bin", "sh", "-c",
		  "ps -o pid=,sid= $$ | { read p s; test $p = $s && echo own; }") == 0);
	CHECK_STR(output, "own\n");
}

static void not_found(void)
{
	own_mounts();
	CHECK(mkdir("bin", 0755) == 0 && mkdir("first", 0755) == 0);
	put_text("bin/plain", "x");
	put_text("first/both", "x");
	put_text("bin/both", "#!/bin/sh\necho second\n");
	put_text("bin/script", "echo \"$0 $1\"\n");
	put_text("bin/broken", "#!/no/such/interpreter\n");
	CHECK(chmod("bin/both", 0755) == 0 && chmod("bin/script", 0755) == 0);
	CHECK(chmod("bin/broken", 0755) == 0);
	CHECK(RUN("/mnt/first:/mnt/bin", "missing") == 127 && failure.error == ENOENT);
	CHECK_STR(failure.stage, "exec");
	CHECK(RUN("/mnt/first:/mnt/bin", "plain") == 127 && failure.error == EACCES);
	CHECK(RUN("/mnt/bin", "/mnt/bin/plain") == 127 && failure.error == EACCES);
	CHECK(RUN("", "sh") == 127 && failure.error == ENOENT);
	CHECK(RUN("/mnt/bin", "broken") == 127 && failure.error == ENOENT);
	/* one that may not be executed does not hide one that may */
	CHECK(RUN("/mnt/first:/mnt/bin", "both") == 0);
	CHECK_STR(output, "second\n");
	/* without a first line it is the shell's */
	CHECK(RUN("/mnt/bin", "script", "a b") == 0);
	CHECK_STR(output, "/mnt/bin/script a b\n");
}

static void failed_steps(void)
{
	static const char *const argv[] = { "/bin/true", NULL };

	CHECK(run(argv, "/bin", "/no/such/folder", "none") == 127);
	CHECK(failure.error == ENOENT);
	CHECK_STR(failure.stage, "cwd");
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(run(argv, "/bin", "/", "no-such-profile") == 127); /* nothing runs unfiltered */
	CHECK(failure.error == ENOENT);
	CHECK_STR(failure.stage, "filter");
}

/* What the agent tells one that was forked ahead: /bin/true, and where to say what failed. */
static void tell(int fd, int failed_fd)
{
	static const char texts[] = "\0/\0/bin\0/bin/true"; /* no workspace, cwd, PATH; argv */
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct spare_head head = { .args = 1 };
	struct iovec parts[] = { { &head, sizeof head },
				 { (void *)(uintptr_t)texts, sizeof texts } };
	struct msghdr header = { .msg_iov = parts,
				 .msg_iovlen = 2,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof control };
	int fds[4] = { failed_fd, failed_fd, failed_fd, failed_fd };
	struct cmsghdr *rights = CMSG_FIRSTHDR(&header);

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof fds);
	memcpy(CMSG_DATA(rights), fds, sizeof fds);
	CHECK(sendmsg(fd, &header, MSG_NOSIGNAL) == (ssize_t)(sizeof head + sizeof texts));
}

/* It fails before anybody knows what it is for: the command that is then given to it is told. */
static void failed_ahead(void)
{
	int pair[2], failed[2], status;
	pid_t pid;

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(pipe2(failed, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		struct child child = { .fds = { null, null, null },
				       .tty_fd = -1,
				       .failure_fd = -1,
				       .listeners_fd = -1,
				       .enter_fd = -1,
				       .command_fd = pair[1],
				       .parent = getppid(),
				       .profile = "no-such-profile" };

		alarm(20);
		close(pair[0]);
		close(failed[0]);
		close(failed[1]);
		child_run(&child);
	}
	close(pair[1]);
	tell(pair[0], failed[1]);
	close(pair[0]);
	close(failed[1]);
	CHECK(read(failed[0], &failure, sizeof failure) == sizeof failure);
	CHECK(failure.error == ENOENT);
	CHECK_STR(failure.stage, "filter");
	close(failed[0]);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 127);
}

static void no_names(void)
{
	own_mounts();
	CHECK(mkdir("here", 0755) == 0);
	put_text("here/tool", "#!/bin/sh\necho from here\n");
	CHECK(chmod("here/tool", 0755) == 0);
	/* an empty part of PATH is not the current folder: it may be hostile */
	CHECK(run((const char *const[]){ "tool", NULL }, "::/bin:", "/mnt/here", "none") == 127);
	CHECK(failure.error == ENOENT);
	CHECK(run((const char *const[]){ "./tool", NULL }, "/bin", "/mnt/here", "none") == 0);
	CHECK_STR(output, "from here\n");
	CHECK(RUN("/bin", "") == 127 && failure.error != 0);
}

/* A thousand arguments go to the shell; more are refused, not cut off. */
static void many_arguments(void)
{
	static const char *argv[1100] = { "/mnt/count" };

	own_mounts();
	put_text("count", "echo $#\n");
	CHECK(chmod("count", 0755) == 0);
	for (int i = 1; i <= 1000; i++)
		argv[i] = "x";
	CHECK(run(argv, "", "/", "none") == 0);
	CHECK_STR(output, "1000\n");
	for (int i = 1001; i < 1099; i++)
		argv[i] = "x";
	CHECK(run(argv, "", "/", "none") == 127 && failure.error == E2BIG);
}

/* The agent died before the command asked to die with it: nothing begins. */
static void orphan(void)
{
	static const char *const argv[] = { "/bin/true", NULL };

	is_orphan = true;
	CHECK(run(argv, "", "/", "none") == 127 && failure.error == ECHILD);
	CHECK_STR(failure.stage, "session");
}

static const struct tap_test tests[] = {
	{ "steps have their order and reasons", order },
	{ "a program gets its environment, streams and folder", executes },
	{ "a session of its own", streams_and_session },
	{ "what cannot be executed is said", not_found },
	{ "a failed step is named and nothing runs", failed_steps },
	{ "so is one of a command that was forked ahead", failed_ahead },
	{ "the current folder is not searched", no_names },
	{ "a script's arguments are all or none", many_arguments },
	{ "a command does not outlive its agent", orphan },
};

TAP_MAIN(tests)
