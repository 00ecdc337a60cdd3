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

#include "base/buf.h"
#include "base/errno_name.h"
#include "base/fd.h"
#include "base/place.h"
#include "base/pool.h"
#include "base/str.h"
#include "cli/approve.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "cli/project.h"
#include "cli/up.h"
#include "cli/walls.h"
#include "cli/words.h"
#include "monitor/stay.h"
#include "policy/keys.h"
#include "wire/emit.h"

enum { BYE_MAX = 4096 };

extern char **environ;

static void tell(void *data, const struct csn_error *err)
{
	struct up *up = data;

	up->error = *err;
	if (!err->code && up->lock >= 0)
		place_mark_up(up->lock);
	if (up->answer)
		up->answer(up, err);
	if (up->told >= 0 && write(up->told, err, sizeof *err) < 0)
		return; /* nobody waits any more */
	up->told = fd_close(up->told);
}

/* Nothing of the caller's terminal, shell or pipes is kept. */
int up_leave_caller(void)
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
void up_raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit); /* to what it may be: not refused */
}

void up_setup(struct up *up, const struct up_wish *wish, struct stay_setup *ret_setup)
{
	const struct cli_policy *policy = wish->policy;

	*ret_setup = (struct stay_setup){
		.run = { .plan = wish->plan,
			 .cwd = wish->plan->workspace.host ? wish->plan->workspace.at : "/tmp",
			 .host_cwd = policy->project.cwd,
			 .caller_env = (const char *const *)environ,
			 .stdin_fd = -1,
			 .stdout_fd = -1,
			 .stderr_fd = -1,
			 .tty_fd = -1,
			 .run_root = wish->options->no_record ? NULL : policy->project.run_root,
			 .hidden_root = policy->project.run_root,
			 .hidden_place = policy->project.place,
			 .home = policy->facts.home,
			 .sandbox = up->name,
			 .tags = wish->options->tags.items,
			 .layer_from = up->layer_from,
			 .approval = up->approval,
			 .wall_fd = up->wall },
		.listen_fd = up->listener,
		.owner_fd = up->owner,
		.port = up->port,
		.tell = tell,
		.data = up,
	};
}

/* Somebody asked for it, or it came by itself. */
static void note_end(struct up *up, const struct run_outcome *outcome)
{
	const char *reason = "lost";

	json_unpack(outcome->result, "{s:{s:s}}", "termination", "reason", &reason);
	up->end = outcome->error;
	if (!up->end.code && !str_is(reason, "cancelled"))
		csn_fail(&up->end, -EPIPE, "monitor", "the sandbox ended by itself: %s", reason);
}

static int stay(struct up *up, const struct plan *plan, const struct cli_policy *policy,
		const struct cli_options *options)
{
	struct run_outcome outcome = { 0 };
	struct stay_setup setup;
	int r;

	up_setup(up, &(struct up_wish){ plan, policy, options }, &setup);
	up_raise_files();
	r = stay_execute(&setup, &outcome);
	note_end(up, &outcome);
	run_outcome_done(&outcome);
	return r;
}

static _Noreturn void serve(struct up *up, const struct plan *plan, const struct cli_policy *policy,
			    const struct cli_options *options)
{
	int r = up_leave_caller();

	/* Once more, as who we are now: the kernel tells clients the process that listened last. */
	if (r >= 0 && listen(up->listener, SOMAXCONN) < 0)
		r = -errno;
	if (r >= 0)
		r = stay(up, plan, policy, options);
	place_leave(up->place, up->name);
	_exit(r < 0 ? 1 : 0);
}

/* Until the monitor is ready, or says why it cannot be. */
int up_await(int fd, struct csn_error *ret_err)
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
		r = up_await(pipe_fds[0], err);
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

static const char **list_of(const struct cli_list *list)
{
	static const char *nothing[] = { NULL };

	return list->count ? list->items : nothing;
}

static int check_words(const struct cli_list *list, const char *what, enum key_id id,
		       struct csn_error *err)
{
	for (size_t i = 0; i < list->count; i++)
		if (!policy_keys[id].is_valid(list->items[i]))
			return csn_fail(err, -EINVAL, "wall",
					"csn_wall.%s names \"%.40s\"; it may name %s", what,
					list->items[i], policy_keys[id].expected);
	return 0;
}

/* Whoever opens the sandbox is its wall, and declares it. A file or variable that names another
 * one was not written for this. */
static int lend_wall(const struct cli_options *options, struct plan *plan, struct csn_error *err)
{
	int r = check_words(&options->enforces, "enforces", KEY_COMMAND_ENFORCES, err);

	if (r == 0)
		r = check_words(&options->observes, "observes", KEY_COMMAND_OBSERVES, err);
	if (r == 0 && !str_is(plan->backend, "any"))
		r = csn_fail(err, -EPERM, "backend",
			     "the program brings a wall of its own, and the policy file, a flag or "
			     "CAISSON_BACKEND names another: %s. Leave out one of the two",
			     plan->backend);
	if (r < 0)
		return r;
	plan->backend = "host";
	plan->command_enforces = list_of(&options->enforces);
	plan->command_observes = list_of(&options->observes);
	return 0;
}

/* Asked for by who starts it: the monitor, once on its own, has nobody to ask. */
static int start_approved(struct up *up, const struct up_wish *wish, start_fn start_it,
			  struct csn_error *err)
{
	_cleanup_approval_ struct approval approval = { 0 };
	struct stay_setup setup;
	int r;

	up_setup(up, wish, &setup);
	r = approve_start(wish->options, wish->policy, &setup.run, &approval, err);
	up->approval = setup.run.approval;
	if (r >= 0)
		r = start_it(up, wish->plan, wish->policy, wish->options, err);
	up->approval = NULL;
	return r;
}

static int open_up(struct cli *cli, struct up *up, start_fn start_it, struct csn_error *err)
{
	struct cli_policy policy;
	struct plan plan;
	int r = walls_check_built(&cli->options, err);

	if (r == 0)
		r = cli_load_policy(&cli->options, &policy, err);
	if (r < 0)
		return r;
	cli->options.stays = true;
	r = cli_decide(&cli->options, &policy, NULL, &plan, err);
	if (r >= 0) {
		if (cli->options.within)
			r = cli_keep_within(&cli->options, &policy, &plan, err);
		if (r >= 0)
			r = up->wall ? lend_wall(&cli->options, &plan, err) : 0;
		if (r >= 0)
			r = start_approved(up, &(struct up_wish){ &plan, &policy, &cli->options },
					   start_it, err);
		plan_done(&plan);
	}
	cli_policy_done(&policy);
	return r;
}

/* What `up` takes beside these is about us. */
static void add_flags(struct words *words, const struct cli_options *options, char *workspace,
		      size_t size)
{
	const char *mode = options->workspace_mode;

	snprintf(workspace, size, "%s%s%s", options->workspace ? options->workspace : "",
		 mode ? ":" : "", mode ? mode : "");
	words_add_value(words, "--workspace", options->workspace ? workspace : NULL);
	if (mode && !options->workspace)
		words_add(words, str_is(mode, "cow") ? "--cow" : "--rw");
	words_add_options(words, options);
}

/* 1: the pool's is up; 0: it had none, and a line says so; -errno: ours would not be either. */
static int ask_pool(const struct cli *cli, const char *name, struct csn_error *err)
{
	struct words words = { 0 };
	char workspace[PATH_MAX + 8];
	int fd = -1, r = 0;

	add_flags(&words, &cli->options, workspace, sizeof workspace);
	words_add(&words, name);
	if (words_end(&words, "pool", err) == 0)
		r = pool_ask(cli->options.pool, POOL_UP, words.at, &fd, err);
	fd_close(fd);
	if (r == 0 && err->code == ENOENT)
		csn_fail(err, -ENOENT, "pool", "there is no pool named %.64s", cli->options.pool);
	if (r == 0 && !cli->options.quiet) {
		fputs("caisson: not from the pool: ", stderr);
		out_text(stderr, err->text);
		fputc('\n', stderr);
	}
	if (r == 0)
		*err = (struct csn_error){ 0 };
	return r;
}

int up_named(struct cli *cli, const char *name, const char *layer_from, struct csn_error *err)
{
	struct up up = UP_NONE;
	int r;

	up.name = name;
	up.layer_from = layer_from;
	r = open_up(cli, &up, start, err);
	fd_close(up.lock);
	fd_close(up.listener);
	fd_close(up.place);
	return r;
}

int cli_up(struct cli *cli)
{
	char made[PLACE_NAME_MAX];
	const char *name = cli->arg_count ? cli->args[0] : make_name(made, sizeof made);
	struct csn_error err = { 0 };
	int r = cli->options.pool ? ask_pool(cli, name, &err) : 0;

	if (r == 0)
		r = up_named(cli, name, NULL, &err);
	if (r < 0)
		return cli_fail(cli, &err);
	if (cli->options.json)
		return out_json(json_pack("{s:s}", "name", name));
	puts(name);
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

int up_become(struct cli *cli, struct up *up, struct csn_error *err)
{
	return open_up(cli, up, become, err);
}

/* A socket that was passed to us. 0 and its number, or a negative errno. */
static int take_socket(const char *text, int *ret_fd)
{
	uint64_t fd = 0;
	struct stat st;

	if (!text || str_parse_u64(text, INT_MAX, &fd) < 0 || fstat((int)fd, &st) < 0 ||
	    !S_ISSOCK(st.st_mode) || fd_set_nonblock((int)fd, 1) < 0 ||
	    fd_set_cloexec((int)fd, 1) < 0)
		return -EINVAL;
	*ret_fd = (int)fd;
	return 0;
}

/* The {bye, …} of a sandbox that did not stand (monitor/stay_client.c), of one that was not tried.
 */
static int write_bye(struct buf *out, const struct csn_error *err)
{
	struct emit emit = emit_begin(out);

	emit_tuple(&emit, 2);
	emit_atom(&emit, "bye");
	emit_map(&emit, 4);
	emit_atom(&emit, "reason");
	emit_text(&emit, "start_failed");
	emit_atom(&emit, "code");
	emit_text(&emit, error_name(err));
	emit_atom(&emit, "stage");
	emit_text(&emit, err->stage);
	emit_atom(&emit, "text");
	emit_text(&emit, err->text);
	return emit_end(&emit);
}

void up_refuse(const struct cli_options *options, const struct csn_error *err)
{
	_cleanup_buf_ struct buf out;
	int fd;

	buf_init(&out, BYE_MAX);
	/* Nothing was said on it, so that it has room. Who does not read has our stderr. */
	if (take_socket(options->fd, &fd) < 0 || write_bye(&out, err) < 0 ||
	    send(fd, buf_at(&out), buf_size(&out), MSG_NOSIGNAL) < 0)
		return;
}

int cli_monitor(struct cli *cli)
{
	const struct cli_options *options = &cli->options;
	struct up up = UP_NONE;
	struct csn_error err = { 0 };

	if (take_socket(options->fd, &up.owner) < 0 ||
	    (options->wall_fd && (take_socket(options->wall_fd, &up.wall) < 0 ||
				  up.wall == STDIN_FILENO || up.wall == up.owner))) {
		csn_fail(&err, -EINVAL, "usage",
			 "--fd names a connected stream socket, and --wall-fd another; libcaisson "
			 "passes them");
		return cli_misuse(cli, &err);
	}
	if (up_become(cli, &up, &err) < 0) {
		if (!up.error.code) /* else its monitor has said it */
			up_refuse(options, &err);
		return cli_fail(cli, &err);
	}
	return CLI_OK;
}
