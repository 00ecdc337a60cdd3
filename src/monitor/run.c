/*
 * One command behind a wall, from a decided plan to a typed result: the order of things.
 *
 *   prepare   what must be known before a process exists: hidden files, environment, groups
 *   start     the wall builds itself in its own process …
 *   record    … while this one opens the record; nothing is executed before it exists
 *   loop      until the command is over
 *   finish    kill what is left, reap, read counters, write the result, close the chain
 */
#include "monitor/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/place.h"
#include "base/str.h"
#include "monitor/agent_file.h"
#include "monitor/approval.h"
#include "monitor/env.h"
#include "monitor/git_user.h"
#include "monitor/hide.h"
#include "monitor/run_private.h"
#include "monitor/toolchain.h"

enum { ARENA_QUOTA = 16 << 20, KEEP_MAX = 10 << 20, STAY_KEEPERS = 64 };

static void mark(struct run *run, enum run_phase phase)
{
	run->phase_us[phase] = run_elapsed_us(run, clock_now_us());
}

static uint64_t kept_bytes(const struct run *run)
{
	uint64_t cap = run->plan->limits.output_bytes;

	if (!run->setup->run_root || run->setup->owner)
		return 0;
	return cap < KEEP_MAX ? cap : KEEP_MAX;
}

void run_init(struct run *run, const struct run_setup *setup)
{
	*run = (struct run){ .setup = setup,
			     .plan = setup->plan,
			     .wall = WALL_NONE,
			     .signal_fd = -1,
			     .cleaner = CLEANER_NONE,
			     .pending = PENDING_NONE,
			     .scratch_fd = -1,
			     .mounts_fd = -1,
			     .protect = { .workspace_fd = -1 },
			     .kill_at_ms = CLOCK_NEVER,
			     .exit_code = -1,
			     .input_window = RUN_WINDOW };
	run->started_us = clock_now_us();
	run->started_wall_ms = clock_wall_ms();
	arena_init(&run->arena, ARENA_QUOTA);
	violations_init(&run->violations, run->plan, run_log_violation, run);
	record_open_none(&run->record);
	record_open_none(&run->ahead);
	channel_init(&run->channel, -1);
	run->limits = (struct limits){ .plan = run->plan, .oom_fd = -1, .scratch_fd = -1 };
	cgroup_init(&run->limits.group);
	sink_init(&run->out, setup->stdout_fd, kept_bytes(run));
	sink_init(&run->err, setup->stderr_fd, kept_bytes(run));
	run->cwd = setup->cwd;
	run->is_input_open = setup->stdin_fd >= 0;
	record_make_id(run->sandbox_id, sizeof run->sandbox_id);
}

/* Signals become reads; the old handlers matter no more: this process is the monitor now. */
static int take_signals(struct run *run)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };
	struct sigaction old;
	sigset_t set;

	sigemptyset(&set);
	/* What the caller ignores, as nohup(1) does, stays ignored: blocked, it would be read. */
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	run->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->signal_fd < 0 ? csn_fail(&run->error, -errno, "start", "no signalfd: %m") : 0;
}

/* A negative errno: none was made, or it is of no use. */
static int take_ahead(struct run *run)
{
	int r = run->ahead.dir_fd < 0
			? -ENOENT
			: record_begin(&run->ahead, run->setup->run_root, run->sandbox_id, NULL);

	if (r < 0)
		return r;
	run->record = run->ahead;
	record_open_none(&run->ahead);
	return 0;
}

static int open_record(struct run *run)
{
	int r;

	if (!run->setup->run_root)
		return 0;
	r = run->setup->owner ? run_take_owners(run) : take_ahead(run);
	if (r < 0)
		r = record_open_as(&run->record, run->setup->run_root, run->sandbox_id,
				   &run->error);
	run->record.chain.redactor = run->redactor;
	return r;
}

static bool is_inside(const struct run *run, const char *path)
{
	const char *workspace = run->plan->workspace.host;

	return path && workspace && path_is_beneath(path, workspace) && !str_is(path, workspace);
}

static int hide_path(struct run *run, const char *path)
{
	const char **hidden = (const char **)run->hidden;
	size_t count = 0;

	while (hidden[count])
		count++;
	hidden[count] = arena_text(&run->arena, path_tail(path, run->plan->workspace.host));
	return hidden[count] ? 0 : -ENOMEM;
}

/* Records inside the workspace are hidden, from a run that keeps none too: a program that can write
 * it could rewrite them, and what later runs take their roots from. The record is opened before
 * the wall starts then, so that there is something to cover. */
static int hide_run_root(struct run *run)
{
	int r = hide_path(run, run->setup->hidden_root);

	return r < 0 ? r : open_record(run);
}

/* So are the sockets of sandboxes that stay: who connects there with the caller's id is believed to
 * be him. The folder is made, or one made later would not be covered. */
static int hide_place(struct run *run)
{
	_cleanup_fd_ int place = place_open(&run->error);

	return place < 0 ? place : hide_path(run, run->setup->hidden_place);
}

static int hide_own(struct run *run)
{
	int r = 0;

	if (is_inside(run, run->setup->hidden_place))
		r = hide_place(run);
	if (r >= 0 && is_inside(run, run->setup->hidden_root))
		r = hide_run_root(run);
	return r;
}

/* To the caller's own wall nothing is lent, and so nothing is looked for. */
static int find_hidden(struct run *run)
{
	static const char *const nothing[] = { NULL };
	int r;

	run->hidden = nothing;
	if (run->backend->is_callers)
		return 0;
	r = hide_find(run->plan, &run->arena, &run->hidden, &run->error);
	return r < 0 ? r : hide_own(run);
}

static int prepare_view(struct run *run)
{
	struct env_facts facts = { .caller = run->setup->caller_env,
				   .scratch = run->scratch_dir[0] ? run->scratch_dir : NULL,
				   .is_local = run->backend->tier == TIER_LOCAL,
				   .told = run->setup->owner ? run->setup->owner->env : NULL,
				   .has_tty = run->setup->tty_fd >= 0 };
	struct toolchain toolchain = { 0 };
	struct git_user git_user;
	const struct toolchain_request request = { .plan = run->plan,
						   .argv = run->setup->argv,
						   .text = run->setup->text,
						   .caller_env = run->setup->caller_env,
						   .cwd = run->setup->host_cwd };
	int r = find_hidden(run);

	if (r >= 0 && run->plan->toolchains_auto && !run_is_declared(run))
		r = toolchain_find(&request, &run->arena, &toolchain);
	if (r < 0)
		return r;
	if (run->setup->owner)
		toolchain.prefixes = toolchain.paths = run_owner_tools(run);
	run->toolchains = toolchain.prefixes;
	facts.gates_at = run_place_gates(run);
	facts.paths = toolchain.paths;
	facts.tools = toolchain.env;
	if (run->plan->git_identity) {
		git_user_find(run->setup->caller_env, run->plan->workspace.host, &git_user);
		facts.git_name = git_user.name[0] ? git_user.name : NULL;
		facts.git_email = git_user.email[0] ? git_user.email : NULL;
	}
	run->env = env_make(run->plan, &facts, &run->arena, &run->passed);
	return run->env ? 0 : csn_fail(&run->error, -ENOMEM, "start", "out of memory");
}

/* Without a view of its own a wall shows the host's paths, and nothing elsewhere. */
static int show_host(struct run *run)
{
	const struct plan *plan = run->setup->plan;

	run->shown = *plan;
	run->shown.workspace.at = plan->workspace.host;
	for (size_t i = 0; i < plan->mount_count; i++)
		if (!str_is(plan->mounts[i].host, plan->mounts[i].at))
			return csn_fail(&run->error, -ENOTSUP, "mounts",
					"the %s wall cannot show %s at %s: it has no view of its "
					"own; mount it at its own path",
					run->backend->name, plan->mounts[i].host,
					plan->mounts[i].at);
	if (run->backend->tier != TIER_LOCAL) {
		scratch_name(run->scratch_dir, run->sandbox_id);
		run->shown.scratch_at = run->scratch_dir;
	}
	run->plan = &run->shown;
	run->violations.plan = run->plan;
	run->limits.plan = run->plan;
	run->cwd = run->setup->host_cwd;
	return 0;
}

/* What outlives the first process of a wall that does not end with it becomes ours to end. */
static int adopt_orphans(struct run *run)
{
	if (run->backend->is_contained || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
		return 0;
	return csn_fail(&run->error, -errno, "start", "cannot adopt orphans: %m");
}

/* A wall without mounts cannot protect names. The policy file in force is one too many: found by
 * search, a changed one loses its trust; given by --policy, it would be believed. */
static int find_names(struct run *run)
{
	const struct plan *plan = run->plan;

	if (run_is_declared(run))
		return 0; /* it mounts nothing of ours over them */
	if (run->backend->has_view)
		return protect_look(plan, run->backend->freezes_links, &run->arena, &run->protect,
				    &run->error);
	if (run->backend->tier != TIER_LOCAL && plan->workspace.access == ACCESS_RW &&
	    plan->policy_path && plan->workspace.host &&
	    path_is_beneath(plan->policy_path, plan->workspace.host))
		return csn_fail(&run->error, -ENOTSUP, "workspace",
				"the %s wall cannot protect the policy file in force, %s, which "
				"lies in the writable workspace: move it out, or use -w PATH:ro",
				run->backend->name, plan->policy_path);
	return 0;
}

/* The second net, for a run that leaves files on the host if it is lost with its cleaner. */
static int write_pending(struct run *run)
{
	const char *root = run->setup->run_root;
	bool has_scratch = run->scratch_dir[0];
	int r;

	if (!root || (!has_scratch && run->protect.placeholder_count == 0))
		return 0;
	r = pending_open(&run->pending, root, run->sandbox_id, &run->protect, has_scratch);
	if (r != -ENOENT || run->record.dir_fd >= 0)
		return 0;
	r = open_record(run); /* the very first one: it makes the run root */
	if (r >= 0)
		pending_open(&run->pending, root, run->sandbox_id, &run->protect, has_scratch);
	return r;
}

/* Before anything is made that it would have to remove. */
static int start_cleaner(struct run *run, const struct cgroup_probe *probe)
{
	int r;

	run->work = (struct cleaner_work){
		.id = run->sandbox_id,
		.probe = probe,
		.protect = &run->protect,
		.scratch_dir = run->scratch_dir[0] ? run->scratch_dir : NULL,
		.pending = &run->pending,
		.has_program = run->backend->is_program,
		.state_root = run->setup->hidden_root,
		.remove = run->backend->remove,
		.take_down = run->backend->take_down,
	};
	if (!cleaner_is_needed(&run->work))
		return 0;
	r = write_pending(run);
	if (r < 0)
		return r;
	r = cleaner_start(&run->work, &run->cleaner);
	return r < 0 ? csn_fail(&run->error, r, "start", "cannot start the cleaner: %s",
				strerror(-r))
		     : 0;
}

/* A private folder of the host's for scratch, where the wall mounts none. */
static int make_scratch(struct run *run)
{
	uid_t uid = geteuid() == 0 ? backend_private_uid() : geteuid();
	int r;

	if (!run->scratch_dir[0])
		return 0;
	scratch_sweep(NULL);
	r = scratch_make(run->scratch_dir, uid, &run->scratch_fd, &run->error);
	if (r == -EEXIST) /* not ours to remove */
		run->work.scratch_dir = NULL;
	return r;
}

/* All that stands on the host while the run lasts. */
static int make_traces(struct run *run)
{
	const struct cgroup_probe *probe =
		run->backend->holds_limits ? NULL : limits_look(&run->limits, run->plan);
	int r;

	run->limits.own_tasks = run->backend->own_tasks;
	if (run->setup->run_root)
		pending_sweep(run->setup->run_root, NULL);
	r = find_names(run);
	if (r >= 0)
		r = start_cleaner(run, probe);
	if (r >= 0)
		r = make_scratch(run);
	if (r >= 0 && !run->backend->holds_limits)
		r = limits_open(&run->limits, run->sandbox_id, &run->error);
	if (r >= 0)
		r = protect_make(&run->protect, run->plan, &run->arena, &run->error);
	if (r >= 0)
		pending_made(&run->pending, &run->protect);
	return r;
}

/* What the caller lends by value is never written down, and neither is what looks like a key. */
static int know_secrets(struct run *run)
{
	int r = redactor_new(&run->redactor);

	for (const char **item = run->plan->env_set; r >= 0 && item && *item; item++) {
		const char *value = strchr(*item, '=');
		const char *name =
			value ? arena_copy(&run->arena, *item, (size_t)(value - *item)) : NULL;

		if (name)
			r = redactor_add(run->redactor, name, value + 1);
	}
	return r < 0 ? csn_fail(&run->error, r, "start", "out of memory") : 0;
}

/* Whoever forgot to ask is refused here; and so is a yes to another wall than the one there is. */
static int check_approval(struct run *run)
{
	const struct approval *approval = run->setup->approval;
	const char *wall = "";

	if (!run->plan->needs_approval)
		return 0;
	if (!approval || approval->state != APPROVAL_GIVEN)
		return csn_fail(&run->error, -EPERM, "approval",
				"ApprovalRequired: the policy or the tier asks for a person's yes "
				"before this starts, and this way of starting cannot ask for one: "
				"use caisson run or up");
	json_unpack(approval->terms, "{s:s}", "backend", &wall);
	if (!str_is(wall, run->backend->name))
		return csn_fail(&run->error, -EPERM, "approval",
				"ApprovalRequired: the yes was to the wall %s, and here is %s now: "
				"ask again",
				wall, run->backend->name);
	return 0;
}

static int choose(struct run *run)
{
	int r = backend_choose(run->plan, &run->backend, &run->report, &run->error);

	if (r < 0)
		run_note_strict(run, &run->error);
	return r < 0 ? r : check_approval(run);
}

static int prepare(struct run *run)
{
	int r = know_secrets(run); /* a refused run has a result too */

	if (r >= 0)
		r = choose(run);
	if (r >= 0)
		r = take_signals(run);
	if (r >= 0 && !run->backend->has_view)
		r = show_host(run);
	if (r >= 0)
		r = adopt_orphans(run);
	if (r >= 0)
		r = prepare_view(run);
	if (r >= 0)
		r = make_traces(run);
	if (r >= 0)
		r = run_open_gates(run);
	if (r >= 0)
		r = run_open_forwards(run);
	run->limits.is_elsewhere = run_is_apart(run);
	mark(run, PHASE_PREPARED);
	return r;
}

void run_write_state(struct run *run)
{
	json_t *state;

	if (run->is_stated || run->setup->owner || run->record.dir_fd < 0)
		return;
	run->is_stated = true;
	state = json_pack("{s:s, s:s, s:s?, s:s*}", "status", "running", "cwd", run->cwd, "command",
			  run->setup->argv ? run->setup->argv[0] : run->setup->text, "sandbox",
			  run->setup->sandbox);
	run_state_layer(run, state);
	if (record_write_state(&run->record, state, &run->error) < 0)
		run->record.chain.is_incomplete = true;
	json_decref(state);
	if (!run->is_ahead)
		record_prepare(&run->record);
}

/* The upper of a copy-on-write workspace lies in the record: diff and commit find it there. */
static int make_layer(struct run *run)
{
	static const char *const parts[] = { "cow", "cow/upper", "cow/work" };
	const char *from = run->setup->layer_from;

	if (!run->plan->workspace.host || run->plan->workspace.access != ACCESS_COW)
		return 0;
	if (run->record.dir_fd < 0)
		return csn_fail(&run->error, -EINVAL, "workspace",
				"a copy-on-write workspace keeps its changes in the run's record: "
				"leave out --no-record, or use -w PATH:ro");
	if (from && renameat(AT_FDCWD, from, run->record.dir_fd, parts[0]) < 0)
		return csn_fail(&run->error, -errno, "workspace",
				"cannot take over the layer of the sandbox that was forked: %m");
	for (size_t i = from ? 2 : 0; i < ARRAY_SIZE(parts); i++)
		if (mkdirat(run->record.dir_fd, parts[i], i == 1 ? 0755 : 0700) < 0)
			return csn_fail(&run->error, -errno, "workspace",
					"cannot make the layer of the copy-on-write workspace: %m");
	snprintf(run->cow_dir, sizeof run->cow_dir, "%s/%s/cow", run->setup->run_root,
		 run->record.run_id);
	return 0;
}

/* What a wall is started with, but for descriptors. */
static struct backend_start start_of(const struct run *run)
{
	return (struct backend_start){
		.sandbox_id = run->sandbox_id,
		.hidden = run->hidden,
		.frozen = (const char *const *)run->protect.frozen,
		.toolchains = run->toolchains,
		.scratch_dir = run->scratch_dir[0] ? run->scratch_dir : NULL,
		.run_root = run->setup->run_root,
		.state_root = run->setup->hidden_root,
		.cow_dir = run->cow_dir[0] ? run->cow_dir : NULL,
		.data_bytes = limits_data_bytes(&run->limits),
		/* Agent and helper; a keeper each call. */
		.own_processes = run_stays(run) ? 2 + STAY_KEEPERS : 2,
		.has_tty = run->setup->tty_fd >= 0,
		.stays = run_stays(run),
		.wall_fd = run->setup->wall_fd,
	};
}

static int start_wall(struct run *run, bool waits)
{
	struct backend_start how = start_of(run);
	char agent_dir[PATH_MAX];
	_cleanup_fd_ int agent_fd = -1, search_fd = -1;
	int r = 0;

	if (!run->backend->is_callers)
		r = agent_file_open("caisson-agent", &agent_fd, &run->error);
	if (r >= 0 && run_stays(run) && !run->backend->is_callers)
		r = agent_file_open("caisson-search", &search_fd, &run->error);
	if (r < 0)
		return r;
	how.waits = waits;
	how.agent_fd = agent_fd;
	how.search_fd = search_fd;
	if (run->backend->is_program && agent_file_folder("caisson-agent", agent_dir))
		how.agent_dir = agent_dir;
	how.clone_group = limits_clone_fd(&run->limits);
	limits_enter_fds(&run->limits, how.agent_enter, how.cmd_enter);
	r = run->backend->start(run->plan, &how, &run->wall, &run->error);
	if (r >= 0 &&
	    (run->backend->is_contained || run_is_apart(run) || run->backend->is_runtimes))
		cleaner_watch(&run->cleaner, run->wall.pidfd, !run->backend->is_contained);
	run->channel.fd = run->wall.stream;
	mark(run, PHASE_CLONED);
	r = r < 0 ? r : run_check_gates(run);
	return r < 0 ? r : run_check_forwards(run);
}

static void finish(struct run *run)
{
	forwards_stop(run->forwards);
	run_over(run);
	run_write_state(run);
	run_log_end(run);
	run_save_output(run);
}

/* What was approved is looked at once more before the command is let go: with the listener's
 * answer, or, where none comes, when the agent is ready. */
static int send_call(struct run *run)
{
	int r = run_send_init(run);

	run->is_held = run->setup->approval && run->wall.listeners < 0;
	if (r >= 0 && !run->is_held)
		r = run_send_call(run);
	channel_flush(&run->channel);
	return r;
}

/*
 * Nothing is executed before its start is on record. Where the command asks for its listener to be
 * taken, that answer is the last word, and the record is opened while the agent starts; making
 * files can take as long as all the rest. Elsewhere the call itself is the last word.
 */
static int run_started(struct run *run)
{
	bool has_last_word;
	int r = prepare(run), sent = 0;

	if (r >= 0 && run->plan->workspace.access == ACCESS_COW && run->record.dir_fd < 0)
		r = open_record(run);
	if (r >= 0)
		r = make_layer(run);
	if (r >= 0)
		r = start_wall(run, false);
	has_last_word = run->wall.listeners >= 0;
	if (r >= 0 && has_last_word)
		sent = send_call(run);
	if (r >= 0 && run->record.dir_fd < 0)
		r = open_record(run);
	if (r < 0)
		return r;
	run_log_start(run);
	if (has_last_word)
		return sent;
	run_write_state(run);
	return send_call(run);
}

/* What needs no dead wall is given back while it dies. */
static void release(struct run *run)
{
	gates_free(run->gates);
	run->gates = NULL;
	forwards_free(run->forwards);
	run->forwards = NULL;
	channel_done(&run->channel);
	sink_done(&run->out);
	sink_done(&run->err);
	violations_done(&run->violations);
	record_done(&run->record);
	record_drop(&run->ahead);
	redactor_free(run->redactor);
	run->signal_fd = fd_close(run->signal_fd);
}

static void run_done(struct run *run)
{
	cleaner_clean(&run->work, limits_group(&run->limits));
	cleaner_stop(&run->cleaner);
	protect_done(&run->protect);
	pending_done(&run->pending);
	run->scratch_fd = fd_close(run->scratch_fd);
	run->mounts_fd = fd_close(run->mounts_fd);
	limits_close(&run->limits);
	arena_done(&run->arena);
}

int run_begin(struct run *run)
{
	int r = prepare(run);

	if (r >= 0 && run->record.dir_fd < 0)
		r = open_record(run);
	if (r >= 0)
		r = make_layer(run);
	if (r >= 0)
		r = start_wall(run, false);
	if (r < 0)
		return r;
	run_log_start(run);
	run_write_state(run);
	return run_send_init(run);
}

/* ---- prepared ahead -------------------------------------------------------------------------- */

/* Whoever mounts in there before its root is made would mount in a copy of the host's. */
static int await_wall(struct run *run)
{
	uint64_t limit_ms = run->plan->limits.startup_ms;
	struct pollfd stands = { .fd = run->wall.order, .events = POLLIN };
	char byte;
	int r;

	do
		r = poll(&stands, 1, limit_ms < INT_MAX ? (int)limit_ms : -1);
	while (r < 0 && errno == EINTR);
	if (r > 0 && read(run->wall.order, &byte, 1) == 1)
		return 0;
	run_read_failure(run);
	return run->error.code ? -EIO
			       : csn_fail(&run->error, -EIO, "pool",
					  "the wall did not stand in time, or ended");
}

int run_prepare_ahead(struct run *run)
{
	const struct cgroup_probe *probe;
	int r = choose(run);

	if (r >= 0 && !run->backend->bind)
		r = csn_fail(&run->error, -ENOTSUP, "pool",
			     "the %s wall cannot be prepared ahead: only the process wall can",
			     run->backend->name);
	if (r < 0)
		return r;
	probe = limits_look(&run->limits, run->plan);
	run->is_ahead = true;
	run->work = (struct cleaner_work){ .id = run->sandbox_id, .probe = probe };
	r = take_signals(run);
	if (r >= 0 && cleaner_is_needed(&run->work))
		r = cleaner_start(&run->work, &run->cleaner);
	if (r >= 0)
		r = limits_open(&run->limits, run->sandbox_id, &run->error);
	if (r >= 0)
		r = start_wall(run, true);
	if (r >= 0 && run->setup->run_root) /* else, or if that fails, when it is taken */
		record_open_ahead(&run->ahead, run->setup->run_root, NULL);
	return r < 0 ? r : await_wall(run);
}

/* Another cleaner, which knows of files too, before any is made; the first one was for groups. */
static int renew_cleaner(struct run *run)
{
	struct cleaner old = run->cleaner;
	int r;

	run->work.protect = &run->protect;
	if (!run->protect.placeholder_count)
		return 0;
	run->work.pending = &run->pending;
	r = write_pending(run);
	if (r >= 0)
		r = cleaner_start(&run->work, &run->cleaner);
	if (r < 0)
		return csn_fail(&run->error, r, "start", "cannot start the cleaner: %s",
				strerror(-r));
	cleaner_watch(&run->cleaner, run->wall.pidfd, false);
	cleaner_stop(&old);
	return 0;
}

/* From here on it is the run of this setup, which begins now; its groups keep the first name. */
static int adopt_setup(struct run *run, const struct run_setup *setup)
{
	run->setup = setup;
	run->plan = run->violations.plan = run->limits.plan = setup->plan;
	run->cwd = setup->cwd;
	run->started_us = clock_now_us();
	run->started_wall_ms = clock_wall_ms();
	run->work.id = arena_text(&run->arena, run->sandbox_id);
	record_make_id(run->sandbox_id, sizeof run->sandbox_id);
	return run->work.id ? 0 : -ENOMEM;
}

int run_begin_ahead(struct run *run, const struct run_setup *setup)
{
	struct backend_start how;
	int r = adopt_setup(run, setup);

	if (r >= 0)
		r = check_approval(run);
	if (r >= 0)
		r = know_secrets(run);
	if (r >= 0)
		r = prepare_view(run);
	if (r >= 0)
		r = find_names(run);
	if (r >= 0)
		r = renew_cleaner(run);
	if (r >= 0)
		r = protect_make(&run->protect, run->plan, &run->arena, &run->error);
	if (r < 0)
		return r;
	pending_made(&run->pending, &run->protect);
	mark(run, PHASE_PREPARED);
	how = start_of(run);
	r = run->backend->bind(run->plan, &how, &run->wall, &run->error);
	mark(run, PHASE_CLONED);
	if (r >= 0 && run->record.dir_fd < 0)
		r = open_record(run);
	return r < 0 ? r : run_send_init(run);
}

void run_log_up(struct run *run)
{
	if (!run->is_told)
		run_log_start(run);
	run_write_state(run);
	run_log_lockdown(run);
}

void run_discard(struct run *run)
{
	release(run);
	run_destroy(run);
	run_done(run);
}

int run_account(struct run *run, struct run_outcome *ret_outcome)
{
	finish(run);
	*ret_outcome = (struct run_outcome){ .error = run->error };
	ret_outcome->result = run_result(run);
	if (run->setup->owner)
		run_give_back(run);
	if (ret_outcome->result && run->record.dir_fd >= 0)
		ret_outcome->is_recorded =
			record_close(&run->record, ret_outcome->result, NULL) >= 0;
	if (ret_outcome->is_recorded)
		run_retain(run);
	ret_outcome->status = run_status(run);
	snprintf(ret_outcome->run_id, sizeof ret_outcome->run_id, "%s", run->sandbox_id);
	release(run);
	run_destroy(run);
	run_done(run);
	return ret_outcome->result ? 0 : -ENOMEM;
}

int run_execute(const struct run_setup *setup, struct run_outcome *ret_outcome)
{
	struct run run;

	run_init(&run, setup);
	if (run_started(&run) >= 0)
		run_loop(&run);
	else
		run.ending = END_START_FAILED;
	return run_account(&run, ret_outcome);
}

void run_outcome_done(struct run_outcome *outcome)
{
	json_decref(outcome->result);
	outcome->result = NULL;
}
