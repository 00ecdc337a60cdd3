/*
 * Between fork and exec of a command. The wall is up already; what is added here is the
 * command's own: a Landlock domain that cuts signals towards the agent, the control groups
 * that carry the limits, and the full syscall filter whose listener belongs to this call.
 *
 * The listener reaches the monitor like this: the child announces its number on a socket that
 * names the sender (SCM_CREDENTIALS, translated by the kernel), the monitor takes it by
 * pidfd_getfd() and answers with the call's Ref. Sending it would not do: sendmsg() is notified
 * itself.
 */
#include "agent/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/spare.h"
#include "agent/spare_message.h"
#include "os/agent_fds.h"
#include "os/filter.h"
#include "os/landlock.h"
#include "os/profile.h"
#include "os/sys.h"

enum { SCRIPT_ARGS = 1024 }; /* of a script without "#!", on the stack: nothing is allocated here */

/* By the raw call, since libc keeps some numbers to itself; a kernel's sigaction of zeros is
 * SIG_DFL.
 */
void child_default_signals(void)
{
	static const unsigned long none[4];

	for (int number = 1; number < NSIG; number++)
		syscall(SYS_rt_sigaction, number, none, NULL, sizeof *none);
}

static int own_session(struct child *child)
{
	sigset_t none;

	child_default_signals();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || setsid() < 0)
		return -errno;
	if (getppid() != child->parent) /* it died before the line above: one pid namespace */
		return -ECHILD;
	return 0;
}

static int connect_fds(struct child *child)
{
	if (child->tty_fd >= 0 && ioctl(child->tty_fd, TIOCSCTTY, 0) < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		if (dup2(child->fds[i], i) < 0)
			return -errno;
	return 0;
}

/* Its streams until now were /dev/null: a listener or a pipe must not take their places. */
static int take_command(struct child *child)
{
	int r;

	if (child->command_fd <= 0)
		return 0;
	r = spare_receive(child);
	return r < 0 ? r : connect_fds(child);
}

static int enter_groups(struct child *child)
{
	for (int i = 0; child->enter_fd >= 0 && i < AGENT_FD_ENTER_COUNT; i++)
		if (write(child->enter_fd + i, "0", 1) != 1)
			return -errno;
	return 0;
}

static int set_limits(struct child *child)
{
	struct rlimit limit;

	if (child->open_files == 0)
		return 0;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	if (child->open_files < limit.rlim_max)
		limit.rlim_max = child->open_files;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

static int go_to_cwd(struct child *child)
{
	umask(022);
	/* Our own folder is "/", whatever the workspace is. */
	if (child->cwd[0] != '/' && child->workspace && chdir(child->workspace) < 0)
		return -errno;
	return chdir(child->cwd) < 0 ? -errno : 0;
}

static int cut_scope(struct child *child)
{
	if (strcmp(child->profile, "none") == 0) /* the local wall is none */
		return 0;
	return landlock_scope(child->landlock_abi);
}

static int load_filter(struct child *child)
{
	const struct sock_fprog *program = profile_program(child->profile);

	child->listener = -1;
	if (strcmp(child->profile, "none") == 0)
		return 0;
	if (!program)
		return -ENOENT;
	if (child->listeners_fd < 0)
		return filter_load(program);
	child->listener = filter_load_listener(program);
	return child->listener < 0 ? child->listener : 0;
}

/* Where the monitor owns no user namespace around us, it may look at us only while we are
 * dumpable; exec makes the program dumpable anyway, and until then there is no secret here. */
static int allow_monitor(struct child *child)
{
	if (child->listener >= 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

/* Until the monitor holds the listener nothing is executed. An answer to somebody else, who died
 * before it came, is dropped. */
static int announce(struct child *child)
{
	struct agent_listener listener = { .number = child->listener, .ref = child->ref };
	int64_t answered;

	if (child->listener < 0)
		return 0;
	if (write(child->listeners_fd, &listener, sizeof listener) != sizeof listener)
		return -EPIPE;
	do {
		if (read(child->listeners_fd, &answered, sizeof answered) != sizeof answered)
			return -EPIPE;
	} while (answered != child->ref);
	return 0;
}

/* Nobody is asked or told on the listeners' socket any more, whose place it takes. */
static int place_report(struct child *child)
{
	if (child->report_fd <= 0)
		return 0;
	return dup2(child->report_fd, CHILD_FD_REPORT) < 0 ? -errno : 0;
}

/* What comes after the filter must be a call that every profile lets through unseen: a watched one
 * would wait for a monitor that does not have the listener yet. */
/* clang-format off */
const struct child_step child_steps[] = {
	{ "session",  own_session,   "signals to the tree and the terminal are its own" },
	{ "streams",  connect_fds,   "the program's 0, 1 and 2, and its terminal" },
	{ "scope",    cut_scope,     "no signal and no descriptor of the agent's is in reach" },
	{ "filter",   load_filter,   "its listener still needs a descriptor" },
	{ "command",  take_command,  "what it runs, where it was forked before anybody knew" },
	{ "groups",   enter_groups,  "limits hold before the first byte of the program" },
	{ "cwd",      go_to_cwd,     "resolved inside the wall" },
	{ "dumpable", allow_monitor, "not before: other commands may have its rights, and no more now" },
	{ "listener", announce,      "the monitor fetches it; nothing is executed before" },
	{ "report",   place_report,  "its place was that of the listeners' socket" },
	{ "limits",   set_limits,    "last: of descriptors; only execve follows" },
	{ 0 },
};
/* clang-format on */

/* Text, as far as its beginning tells: another machine's program is not for the shell. */
static bool is_text(const char *path)
{
	char head[128];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head);

	if (fd >= 0)
		close(fd);
	return n > 0 && !memchr(head, 0, (size_t)n);
}

/* A script without "#!" is the shell's, as execvp() has it. */
static int execute(struct child *child, const char *path)
{
	const char *argv[SCRIPT_ARGS] = { "/bin/sh", path };
	size_t n = 2;

	execve(path, child->argv, child->env);
	if (errno != ENOEXEC)
		return -errno;
	if (!is_text(path))
		return -ENOEXEC;
	for (size_t i = 1; child->argv[i]; i++) {
		if (n == SCRIPT_ARGS - 1)
			return -E2BIG;
		argv[n++] = child->argv[i];
	}
	execve(argv[0], (char *const *)argv, child->env);
	return -ENOEXEC;
}

static int search(struct child *child)
{
	const char *name = child->argv[0], *dir = child->path;
	int result = -ENOENT;
	char path[4096];

	if (child->image_fd > 0) {
		syscall(SYS_execveat, child->image_fd, "", child->argv, child->env, AT_EMPTY_PATH);
		return -errno;
	}
	if (strchr(name, '/'))
		return execute(child, name);
	while (*dir) {
		size_t n = strcspn(dir, ":");

		if (n > 0 && (size_t)snprintf(path, sizeof path, "%.*s/%s", (int)n, dir, name) <
				     sizeof path) {
			int r = execute(child, path);

			if (r != -ENOENT && r != -ENOTDIR)
				result = r;
			if (r != -ENOENT && r != -ENOTDIR && r != -EACCES)
				break;
		}
		dir += n + (dir[n] == ':');
	}
	return result;
}

/*
 * One that was forked ahead, and failed before it heard what it is to run: its command is told to
 * it all the same, and gets the reason. To end without a word would be the command's own end.
 */
static void await_command(struct child *child, const struct child_step *failed)
{
	for (const struct child_step *step = failed; step->name; step++)
		if (step->run == take_command && step != failed && child->command_fd > 0)
			spare_receive(child);
}

_Noreturn void child_run(struct child *child)
{
	struct child_failure failure = { 0 };
	const struct child_step *step = child_steps;
	struct spare_room room; /* untouched, so it costs nothing, where nothing comes */
	int r = 0;

	child->room = &room;
	for (; step->name; step++) {
		r = step->run(child);
		if (r < 0)
			break;
	}
	if (r >= 0)
		r = search(child);
	await_command(child, step);
	failure.error = -r;
	snprintf(failure.stage, sizeof failure.stage, "%s", step->name ? step->name : "exec");
	if (write(child->failure_fd, &failure, sizeof failure) < 0)
		_exit(126);
	_exit(127);
}
