/*
 * How a job is run: flags and manifest make a configuration, which is recorded; each launch decides
 * anew what the policy that is in force now says to it. A job lends two things, whatever the policy
 * would lend beyond: its folder and its data set.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/job.h"
#include "cli/walls.h"
#include "jobs/data.h"
#include "jobs/execution.h"
#include "monitor/agent_file.h"

enum { WORKER_WORDS = 1024 };

extern char **environ;

/* ---- the configuration ---------------------------------------------------------------------- */

static int read_manifest(const char *path, struct execution *execution, struct csn_error *err)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_cleanup_buf_ struct buf bytes;
	uint8_t *room;
	ssize_t n;

	buf_init(&bytes, EXECUTION_BYTES);
	room = buf_reserve(&bytes, EXECUTION_BYTES);
	n = fd < 0 ? -errno : room ? fd_read_all(fd, room, EXECUTION_BYTES) : -ENOMEM;
	if (n < 0)
		return csn_fail(err, (int)n, "job", "--manifest %.200s: %s", path,
				strerror((int)-n));
	return execution_read(path, room, (size_t)n, execution, err);
}

static int take_flags(const struct cli_job_options *job, struct execution *execution,
		      struct csn_error *err)
{
	const char *const flags[][2] = { { "mode", job->mode },
					 { "runtime", job->runtime },
					 { "image", job->image },
					 { "network", job->network } };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(flags) && r == 0; i++)
		if (flags[i][1])
			r = execution_set(execution, flags[i][0], flags[i][1], err);
	if (job->use_bypass)
		execution->use_bypass = 1;
	return r;
}

/* A text is parted at blanks; there is no quoting: who needs it gives words. */
static json_t *worker_words(const struct cli *cli)
{
	const char *at = cli->options.job.worker;
	json_t *list = json_array();

	for (int i = 0; !at && i < cli->arg_count; i++)
		json_array_append_new(list, json_string(cli->args[i]));
	while (at && *(at += strspn(at, " \t")) && json_array_size(list) < WORKER_WORDS) {
		size_t size = strcspn(at, " \t");

		json_array_append_new(list, json_stringn(at, size));
		at += size;
	}
	return list;
}

static json_t *texts(const struct cli_list *list)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->count; i++)
		json_array_append_new(array, json_string(list->items[i]));
	return array;
}

/* Their values are never written down. */
static json_t *names_of(const struct cli_list *list)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->count; i++)
		json_array_append_new(array,
				      json_stringn(list->items[i], strcspn(list->items[i], "=")));
	return array;
}

static int check_worker(const struct cli *cli, const json_t *worker, struct csn_error *err)
{
	if (cli->options.job.worker && cli->arg_count > 0)
		return csn_fail(err, -EINVAL, "usage",
				"give the worker once: by --worker or by the words at the end");
	if (json_array_size(worker) == 0)
		return csn_fail(err, -EINVAL, "usage",
				"a worker is missing: --worker 'python3 worker.py'");
	return 0;
}

/* Absolute, since the next launch may stand elsewhere. */
static json_t *absolute(const char *path)
{
	char *real = path ? realpath(path, NULL) : NULL;
	json_t *text = real ? json_string(real) : NULL;

	free(real);
	return text;
}

/* As they were typed, but for a relative path: the next launch may stand elsewhere. What they mean
 * is policy's to say. */
json_t *job_forwards(const struct cli_list *list)
{
	json_t *array = json_array();
	char cwd[PATH_MAX], path[PATH_MAX];

	for (size_t i = 0; i < list->count; i++) {
		const char *text = list->items[i];
		struct plan_forward forward;

		if (plan_forward_read(text, &forward) == 0 && forward.host[0] &&
		    forward.host[0] != '/' && getcwd(cwd, sizeof cwd) &&
		    path_join(cwd, forward.host, path, sizeof path) == 0)
			json_array_append_new(array,
					      json_sprintf("unix:%s%s", path, strrchr(text, ':')));
		else
			json_array_append_new(array, json_string(text));
	}
	return array;
}

int job_config(struct cli *cli, json_t **ret_config, struct csn_error *err)
{
	const struct cli_options *options = &cli->options;
	struct execution execution = EXECUTION_NONE;
	json_t *worker = worker_words(cli);
	char data[PATH_MAX];
	int r = check_worker(cli, worker, err);

	if (r == 0 && !options->job.data)
		r = csn_fail(err, -EINVAL, "usage", "a data set is missing: --data PATH");
	if (r == 0 && options->job.manifest)
		r = read_manifest(options->job.manifest, &execution, err);
	if (r == 0)
		r = take_flags(&options->job, &execution, err);
	if (r == 0 && !realpath(options->job.data, data))
		r = csn_fail(err, -errno, "data", "--data %.200s: %s", options->job.data,
			     strerror(errno));
	if (r == 0) {
		*ret_config = json_pack(
			"{s:O, s:s, s:o, s:s*, s:s*, s:o*, s:o, s:o, s:o}", "worker", worker,
			"data", data, "execution", execution_json(&execution), "backend",
			options->backend, "tier", options->tier, "policy",
			absolute(options->policy), "limits", texts(&options->limits), "env",
			names_of(&options->env), "forwards", job_forwards(&options->forwards));
		r = *ret_config ? 0 : csn_fail(err, -EINVAL, "job", "a text is not UTF-8");
	}
	json_decref(worker);
	execution_done(&execution);
	return r;
}

/* ---- the wall ------------------------------------------------------------------------------- */

static bool is_usable(const char *name, char *cause, size_t size)
{
	const struct backend *backend = backend_find(name);
	struct backend_report report = { 0 };

	if (!backend) {
		snprintf(cause, size, "%s is not in this build", name);
		return false;
	}
	backend->probe(&report);
	snprintf(cause, size, "%s: %.120s", name, report.cause);
	return report.is_usable;
}

/* Docker first; a runtime that was named is the only one. */
static int choose_engine(const struct execution *execution, const char **ret_backend,
			 struct csn_error *err)
{
	static const char *const engines[] = { "docker", "podman" };
	char causes[ARRAY_SIZE(engines)][160] = { "", "" };

	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		if (execution->runtime[0] && !str_is(execution->runtime, engines[i]))
			continue;
		if (is_usable(engines[i], causes[i], sizeof causes[i])) {
			*ret_backend = engines[i];
			return 0;
		}
	}
	return csn_fail(
		err, -ENOTSUP, "job",
		"execution mode container needs an engine: %s%s%s; `--backend process` is a "
		"wall that needs none",
		causes[0], causes[0][0] && causes[1][0] ? "; " : "", causes[1]);
}

static const char *text_at(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* By --backend, else by the execution's mode, which is container unless somebody says otherwise. */
static int choose_wall(struct cli_options *options, const json_t *config,
		       const struct execution *execution, struct csn_error *err)
{
	bool is_host = str_is(execution->mode, "host");

	options->tier = text_at(config, "tier");
	options->backend = text_at(config, "backend");
	if (is_host && options->backend && !str_is(options->backend, "local"))
		return csn_fail(err, -EINVAL, "job",
				"execution mode host is no wall: leave out --backend %s",
				options->backend);
	if (is_host) {
		options->tier = "local";
		return 0;
	}
	options->network = str_is(execution->network, "default") ? "engine" : "none";
	return options->backend ? 0 : choose_engine(execution, &options->backend, err);
}

/* ---- the plan ------------------------------------------------------------------------------- */

static int add_list(struct cli_list *list, const json_t *texts)
{
	const json_t *text;
	size_t i;
	int r = 0;

	json_array_foreach(texts, i, text) {
		if (r == 0)
			r = cli_list_add(list, json_string_value(text));
	}
	return r;
}

/* NAME=VALUE of this launch; of those that an earlier one named, what the caller's environment has
 * now. */
static int add_env(struct cli_options *options, const json_t *names)
{
	size_t given = options->env.count, i;
	const json_t *name;

	json_array_foreach(names, i, name) {
		const char *text = json_string_value(name);
		size_t n = strlen(text);
		bool is_given = !getenv(text);

		for (size_t k = 0; k < given; k++)
			is_given |= strncmp(options->env.items[k], text, n) == 0 &&
				    (!options->env.items[k][n] || options->env.items[k][n] == '=');
		if (!is_given && cli_list_add(&options->env, text) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_grants(struct cli *cli, const json_t *config, bool has_view, struct csn_error *err)
{
	const char *named = text_at(config, "data");
	char *mount = NULL, data[PATH_MAX];
	int r;

	if (!named)
		return csn_fail(err, -EBADMSG, "job", "the job's record names no data set");
	r = data_check(named, data, err); /* it may be another by now */
	if (r < 0)
		return r;
	r = asprintf(&mount, "%s:%s:ro", data, has_view ? JOB_DATA_AT : data) < 0 ? -ENOMEM : 0;
	if (r == 0)
		r = cli_list_add(&cli->options.mounts, mount); /* kept as long as the options */
	if (r == 0)
		r = add_env(&cli->options, json_object_get(config, "env"));
	cli->options.forwards.count = 0; /* the record has those that were typed */
	if (r == 0)
		r = add_list(&cli->options.forwards, json_object_get(config, "forwards"));
	if (r == 0 && cli->options.limits.count == 0)
		r = add_list(&cli->options.limits, json_object_get(config, "limits"));
	return r < 0 ? csn_fail(err, r, "job", "out of memory") : 0;
}

/* An image that a policy file names is the one. */
static int set_image(struct plan *plan, const struct execution *execution, struct csn_error *err)
{
	if (!execution->image[0])
		return 0;
	if (plan->image && !str_is(plan->image, execution->image) && !plan->env_any)
		return csn_fail(err, -EPERM, "job",
				"--container-image %.100s: the policy file says %.100s",
				execution->image, plan->image);
	plan->image = arena_text(&plan->arena, execution->image);
	return plan->image ? 0 : csn_fail(err, -ENOMEM, "job", "out of memory");
}

/* Is it the one whose place the job typed so? A place inside belongs to one forward alone. */
static bool is_at(const char *own, const char *typed)
{
	const char *at = typed ? strrchr(typed, ':') : NULL;
	char path[PATH_MAX];

	if (!at)
		return false;
	at++;
	if (*at == '/' && path_normalize(at, path, sizeof path) == 0)
		at = path;
	return str_is(strrchr(own, ':') + 1, at);
}

/* Those that the job asked for. */
static void keep_forwards(struct plan *plan, const json_t *config)
{
	size_t kept = 0, i;
	const json_t *text;

	for (const char **own = plan->forwards; *own; own++) {
		bool is_asked = false;

		json_array_foreach(json_object_get(config, "forwards"), i, text)
			is_asked |= is_at(*own, json_string_value(text));
		if (is_asked)
			plan->forwards[kept++] = *own;
	}
	plan->forwards[kept] = NULL;
}

/* Exactly two grants and its forwards, whatever a policy file lends to others. */
static int narrow(struct plan *plan, const char *folder, bool has_view, const json_t *config,
		  struct csn_error *err)
{
	static const char *ours[] = { "logs", "state.json", "manifest.json", "result.json", NULL };
	static const char *nothing[] = { NULL };
	const char *data_at = has_view ? JOB_DATA_AT : NULL;
	char *host = arena_text(&plan->arena, folder);

	if (!host)
		return csn_fail(err, -ENOMEM, "job", "out of memory");
	for (size_t i = 0; i < plan->mount_count; i++)
		if (str_is(plan->mounts[i].at, data_at ? data_at : plan->mounts[i].host))
			plan->mounts[0] = plan->mounts[i];
	plan->mount_count = plan->mount_count > 0;
	plan->mount_roots = nothing;
	plan->workspace = (struct plan_workspace){ .host = host,
						   .at = has_view ? JOB_RUN_AT : host,
						   .access = ACCESS_RW,
						   .hide = nothing,
						   .protect = ours };
	plan->toolchains_auto = false;
	keep_forwards(plan, config);
	plan->limits.command_ms = plan->limits.budget_ms = PLAN_UNLIMITED;
	plan_require(plan);
	return 0;
}

/* An engine started by root runs its commands as an id that nobody has, and maps no ids of mounts.
 */
static bool is_shut_out(const struct backend *backend)
{
	return geteuid() == 0 &&
	       (str_is(backend->name, "docker") || str_is(backend->name, "podman"));
}

/* Which wall it will be is asked before anything is made. A worker may ask nobody only where what
 * it does stays behind a wall with a view of its own. */
static int choose_mode(struct job_decision *decision, const struct execution *execution,
		       struct csn_error *err)
{
	const struct backend *backend;
	struct backend_report report;
	int r;

	if (decision->plan.needs_approval)
		return csn_fail(
			err, -EPERM, "job",
			"the policy asks for a person's yes before a start, and a job cannot "
			"ask for one: start it under a policy without `approval: required`");
	r = backend_choose(&decision->plan, &backend, &report, err);
	if (r < 0)
		return r;
	if (is_shut_out(backend))
		return csn_fail(err, -ENOTSUP, "job",
				"started by root, %s runs a worker as an id that cannot write the "
				"job's folder: start it as an ordinary user, or take `--backend "
				"process` or `--backend oci`",
				backend->name);
	decision->order.permission_mode = backend->has_view && execution->use_bypass == 1
						  ? "bypassPermissions"
						  : "acceptEdits";
	return 0;
}

static const char **argv_of(struct arena *arena, const struct execution *execution,
			    const json_t *worker)
{
	size_t count = json_array_size(execution->inner_runner) + json_array_size(worker), n = 0, i;
	const char **argv = arena_array(arena, count + 1, sizeof *argv);
	const json_t *word;

	if (!argv)
		return NULL;
	json_array_foreach(execution->inner_runner, i, word)
		argv[n++] = arena_text(arena, json_string_value(word));
	json_array_foreach(worker, i, word)
		argv[n++] = arena_text(arena, json_string_value(word));
	return argv;
}

/* A key in it was not written down; without it the worker would start and fail. */
static int check_redacted(const json_t *worker, struct csn_error *err)
{
	const json_t *word;
	size_t i;

	json_array_foreach(worker, i, word) {
		if (strstr(json_string_value(word), "[REDACTED:"))
			return csn_fail(err, -EINVAL, "job",
					"the worker's arguments hold a secret, which was not "
					"recorded: give the command again, `caisson job resume ID "
					"-- COMMAND`; better, pass it by --env");
	}
	return 0;
}

static int grace_of(const struct cli *cli, uint64_t *ret_ms, struct csn_error *err)
{
	const char *text = cli->options.job.grace;

	*ret_ms = JOB_GRACE_MS;
	if (text && str_parse_duration(text, ret_ms) < 0)
		return csn_fail(err, -EINVAL, "usage", "--grace %s: expected a time like 30s",
				text);
	return 0;
}

static int fill_order(struct cli *cli, struct job_decision *decision, json_t *config,
		      const struct execution *execution, struct csn_error *err)
{
	struct job_order *order = &decision->order;
	const json_t *worker = json_object_get(config, "worker");

	order->plan = &decision->plan;
	order->argv = argv_of(&decision->plan.arena, execution, worker);
	order->caller_env = (const char *const *)environ;
	order->config = config;
	order->run_root = decision->policy.project.run_root;
	order->place = decision->policy.project.place;
	order->tools =
		agent_file_folder("caisson-report", decision->tools) ? decision->tools : NULL;
	if (!order->argv || !order->argv[0])
		return csn_fail(err, -ENOMEM, "job", "out of memory");
	return grace_of(cli, &order->grace_ms, err);
}

static int decide(struct cli *cli, const char *id, json_t *config, struct job_decision *decision,
		  struct csn_error *err)
{
	struct execution execution;
	struct cli_options *options = &cli->options;
	char folder[PATH_MAX + RUN_ID_SIZE];
	bool has_view;
	int r;

	execution_from(json_object_get(config, "execution"), &execution);
	has_view = !str_is(execution.mode, "host");
	options->job.is_job = true;
	options->policy = text_at(config, "policy");
	r = check_redacted(json_object_get(config, "worker"), err);
	if (r == 0)
		r = choose_wall(options, config, &execution, err);
	if (r == 0)
		r = add_grants(cli, config, has_view, err);
	if (r == 0)
		r = walls_check_built(options, err);
	if (r == 0)
		r = cli_load_policy(options, &decision->policy, err);
	decision->has_policy = r == 0;
	if (r == 0)
		r = cli_decide(options, &decision->policy, NULL, &decision->plan, err);
	decision->has_plan = r == 0;
	if (r == 0)
		r = set_image(&decision->plan, &execution, err);
	snprintf(folder, sizeof folder, "%s/%s", decision->policy.project.run_root, id);
	if (r == 0)
		r = narrow(&decision->plan, folder, has_view, config, err);
	if (r == 0)
		r = choose_mode(decision, &execution, err);
	if (r == 0)
		r = fill_order(cli, decision, config, &execution, err);
	execution_done(&execution);
	return r;
}

int job_decide(struct cli *cli, const char *id, json_t *config, struct job_decision *ret_decision,
	       struct csn_error *err)
{
	/* In place: the policy's facts point into it. */
	memset(ret_decision, 0, sizeof *ret_decision);
	return decide(cli, id, config, ret_decision, err);
}

void job_decision_done(struct job_decision *decision)
{
	if (decision->has_plan)
		plan_done(&decision->plan);
	if (decision->has_policy)
		cli_policy_done(&decision->policy);
}

/* ---- ceilings ------------------------------------------------------------------------------- */

int job_take_limits(const struct cli *cli, struct book_limits *limits, struct csn_error *err)
{
	static const char *const names[] = { "cost-usd", "time-minutes", "tokens-total",
					     "iterations" };
	int count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *const texts[] = { cli->options.job.max[i], cli->options.job.add[i] };

		for (int k = 0; k < 2; k++) {
			char name[32];

			if (!texts[k])
				continue;
			snprintf(name, sizeof name, "%s%s", k ? "add-" : "max-", names[i]);
			if (book_set_limit(limits, name, texts[k], err) < 0)
				return -EINVAL;
			count++;
		}
	}
	return count;
}
