/*
 * caisson up: a sandbox that stays, with a monitor process of its own
 *
 *   up ── fork ──▶ monitor: own session, no descriptors of ours; serves NAME's socket
 *    ◀── pipe: ready, or why not ──┘
 *
 * The monitor ends by `down`, by a signal, by silence, or when its wall does; not with us.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/place.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/project.h"
#include "cli/walls.h"
#include "monitor/stay.h"

extern char **environ;

struct up {
	const char *name;
	int place;
	int lock;
	int listener;
	int owner;              /* a stream whose end is the sandbox's, -1 */
	int told;               /* where the parent waits for a struct csn_error, -1 */
	struct csn_error error; /* why there is no sandbox, code 0: there is one */
};

static void tell(void *data, const struct csn_error *err)
{
	struct up *up = data;

	up->error = *err;
	if (!err->code && up->lock >= 0)
		place_mark_up(up->lock);
	if (up->told >= 0 && write(up->told, err, sizeof *err) < 0)
		return; /* nobody waits any more */
	up->told = fd_close(up->told);
}

/* Nothing of the caller's terminal, shell or pipes is kept. */
static int leave_caller(void)
{
	_cleanup_fd_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || setsid() < 0)
		return -errno;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	return 0;
}

/* Each command may hold 64 connects with two descriptors of ours: eight of them fill the usual
 * 1024, and no listener could be taken any more. A command's own bound is the plan's. */
static void raise_open_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit); /* to what it may be: not refused */
}

static int stay(struct up *up, const struct plan *plan, const struct cli_policy *policy,
		const struct cli_options *options)
{
	struct stay_setup setup = {
		.run = { .plan = plan,
			 .cwd = plan->workspace.host ? plan->workspace.at : "/tmp",
			 .host_cwd = policy->project.cwd,
			 .caller_env = (const char *const *)environ,
			 .stdin_fd = -1,
			 .stdout_fd = -1,
			 .stderr_fd = -1,
			 .tty_fd = -1,
			 .run_root = options->no_record ? NULL : policy->project.run_root,
			 .hidden_root = policy->project.run_root,
			 .home = policy->facts.home,
			 .tags = options->tags.items },
		.listen_fd = up->listener,
		.owner_fd = up->owner,
		.tell = tell,
		.data = up,
	};
	struct run_outcome outcome = { 0 };
	int r;

	raise_open_files();
	r = stay_execute(&setup, &outcome);
	run_outcome_done(&outcome);
	return r;
}

static _Noreturn void serve(struct up *up, const struct plan *plan, const struct cli_policy *policy,
			    const struct cli_options *options)
{
	int r = leave_caller();

	/* Once more, as who we are now: the kernel tells clients the process that listened last. */
	if (r >= 0 && listen(up->listener, SOMAXCONN) < 0)
		r = -errno;
	if (r >= 0)
		r = stay(up, plan, policy, options);
	place_leave(up->place, up->name);
	_exit(r < 0 ? 1 : 0);
}

/* Until the monitor is ready, or says why it cannot be. */
static int await(int fd, struct csn_error *ret_err)
{
	ssize_t n;

	do
		n = read(fd, ret_err, sizeof *ret_err);
	while (n < 0 && errno == EINTR);
	if (n != sizeof *ret_err)
		return csn_fail(ret_err, -EPIPE, "start", "the monitor ended without a word");
	ret_err->stage[sizeof ret_err->stage - 1] = ret_err->text[sizeof ret_err->text - 1] = 0;
	return ret_err->code ? -EIO : 0;
}

static int start(struct up *up, const struct plan *plan, const struct cli_policy *policy,
		 const struct cli_options *options, struct csn_error *err)
{
	int pipe_fds[2];
	pid_t pid;
	int r;

	up->place = place_open(err);
	if (up->place < 0)
		return up->place;
	r = place_listen(up->place, up->name, &up->lock, &up->listener, err);
	if (r < 0)
		return r;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return csn_fail(err, -errno, "start", "cannot make a pipe: %m");
	up->told = pipe_fds[1];
	pid = fork();
	if (pid == 0) {
		close(pipe_fds[0]);
		serve(up, plan, policy, options);
	}
	r = pid < 0 ? csn_fail(err, -errno, "start", "cannot start the monitor: %m") : 0;
	fd_close(pipe_fds[1]);
	if (r >= 0)
		r = await(pipe_fds[0], err);
	fd_close(pipe_fds[0]);
	return r;
}

/* A name for who gave none. */
static const char *make_name(char *ret_name, size_t size)
{
	uint32_t number = 0;

	if (getrandom(&number, sizeof number, 0) != sizeof number)
		number = (uint32_t)getpid();
	snprintf(ret_name, size, "box-%06x", number & 0xffffff);
	return ret_name;
}

/* Starts it in a process of its own, or becomes it. */
typedef int (*start_fn)(struct up *up, const struct plan *plan, const struct cli_policy *policy,
			const struct cli_options *options, struct csn_error *err);

static int open_up(struct cli *cli, struct up *up, start_fn start_it, struct csn_error *err)
{
	struct cli_policy policy;
	struct plan plan;
	int r = walls_check_built(&cli->options, err);

	if (r == 0)
		r = cli_load_policy(&cli->options, &policy, err);
	if (r < 0)
		return r;
	r = cli_decide(&cli->options, &policy, NULL, &plan, err);
	if (r >= 0) {
		r = start_it(up, &plan, &policy, &cli->options, err);
		plan_done(&plan);
	}
	cli_policy_done(&policy);
	return r;
}

int cli_up(struct cli *cli)
{
	struct up up = { .place = -1, .lock = -1, .listener = -1, .owner = -1, .told = -1 };
	char made[PLACE_NAME_MAX];
	struct csn_error err = { 0 };
	int r;

	up.name = cli->arg_count ? cli->args[0] : make_name(made, sizeof made);
	r = open_up(cli, &up, start, &err);
	fd_close(up.lock);
	fd_close(up.listener);
	fd_close(up.place);
	if (r < 0)
		return cli_fail(cli, &err);
	puts(up.name);
	return CLI_OK;
}

/* This process is the monitor; its owner reads why there is no sandbox on our stderr. */
static int become(struct up *up, const struct plan *plan, const struct cli_policy *policy,
		  const struct cli_options *options, struct csn_error *err)
{
	int r = stay(up, plan, policy, options);

	if (r >= 0 && up->error.code) {
		*err = up->error;
		return -up->error.code;
	}
	return r < 0 ? csn_fail(err, r, "monitor", "out of memory") : 0;
}

int cli_monitor(struct cli *cli)
{
	struct up up = { .place = -1, .lock = -1, .listener = -1, .told = -1 };
	struct csn_error err = { 0 };
	uint64_t fd = 0;
	struct stat st;

	if (!cli->options.fd || str_parse_u64(cli->options.fd, INT_MAX, &fd) < 0 ||
	    fstat((int)fd, &st) < 0 || !S_ISSOCK(st.st_mode)) {
		csn_fail(&err, -EINVAL, "usage",
			 "--fd names a connected stream socket; libcaisson passes one");
		return cli_misuse(cli, &err);
	}
	up.owner = (int)fd;
	if (fd_set_nonblock(up.owner, 1) < 0 || fd_set_cloexec(up.owner, 1) < 0 ||
	    open_up(cli, &up, become, &err) < 0)
		return cli_fail(cli, &err);
	return CLI_OK;
}
