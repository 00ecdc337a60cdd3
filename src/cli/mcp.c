/*
 * caisson mcp: from flags and policy to the words of caisson-mcp, which takes our place
 *
 * The server is a program of its own, because it has threads. Nothing is started here: a sandbox
 * that cannot be had is said to the client by its first call, where somebody reads it, and here on
 * stderr.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/project.h"
#include "cli/walls.h"
#include "monitor/agent_file.h"

enum { WORDS_MAX = 1024, NUMBER_TEXT = 16, ABOUT_BYTES = 256 << 10 };

struct words {
	const char *at[WORDS_MAX + 2];
	size_t count;
	char program[PATH_MAX + 16], self[PATH_MAX];
	char workspace[PATH_MAX + 8], inside[PATH_MAX], run_root[PATH_MAX];
	char about[NUMBER_TEXT];
};

static void add(struct words *words, const char *word)
{
	if (words->count < WORDS_MAX)
		words->at[words->count] = word;
	words->count++;
}

static void add_value(struct words *words, const char *flag, const char *value)
{
	if (!value)
		return;
	add(words, flag);
	add(words, value);
}

static void add_values(struct words *words, const char *flag, const struct cli_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		add_value(words, flag, list->items[i]);
}

static void add_options(struct words *words, const struct cli_options *options)
{
	add_value(words, "--policy", options->policy);
	add_value(words, "--tier", options->tier);
	add_value(words, "--backend", options->backend);
	add_value(words, "--at", options->workspace_at);
	add_value(words, "--network", options->network);
	add_values(words, "--allow", &options->allow);
	add_values(words, "--mount", &options->mounts);
	add_values(words, "--limit", &options->limits);
	add_values(words, "--env", &options->env);
	add_values(words, "--tag", &options->tags);
	add_value(words, "--run-dir", options->run_dir);
	if (options->no_record)
		add(words, "--no-record");
}

/* ---- what is known before a sandbox is ------------------------------------------------------ */

/* The policy in effect, for the model: a file without a name, which caisson-mcp reads. */
static void add_about(struct words *words, const struct plan *plan)
{
	_cleanup_buf_ struct buf yaml = { 0 };
	int fd;

	buf_init(&yaml, ABOUT_BYTES);
	if (policy_render(plan, &yaml) < 0)
		return;
	fd = memfd_create("caisson-policy", 0); /* kept when we are replaced */
	if (fd < 0 || fd_write_all(fd, buf_at(&yaml), buf_size(&yaml)) < 0 ||
	    lseek(fd, 0, SEEK_SET) < 0) {
		fd_close(fd);
		return;
	}
	snprintf(words->about, sizeof words->about, "%d", fd);
	add_value(words, "--about-fd", words->about);
}

/* Has somebody said when a silent sandbox ends? Else it does with its client. */
static bool names_idle(const struct cli_options *options, const struct policy *policy)
{
	for (size_t i = 0; i < options->limits.count; i++)
		if (str_starts(options->limits.items[i], "idle="))
			return true;
	return policy_says(policy, "limits.idle");
}

static void add_plan(struct words *words, const struct cli *cli, const struct policy *policy,
		     const struct plan *plan)
{
	const struct plan_workspace *workspace = &plan->workspace;

	if (workspace->host) {
		snprintf(words->workspace, sizeof words->workspace, "%s:%s", workspace->host,
			 cli->options.workspace_mode);
		snprintf(words->inside, sizeof words->inside, "%s", workspace->at);
		add_value(words, "--workspace", words->workspace);
		add_value(words, "--inside", words->inside);
	}
	if (!names_idle(&cli->options, policy))
		add(words, "--keep-alive");
	add_about(words, plan);
}

/* Fills in what policy and project say. A refusal is no end: the monitor will say the same. */
static void add_decided(struct words *words, const struct cli *cli)
{
	struct cli_policy policy;
	struct csn_error err = { 0 };
	struct plan plan;

	if (cli_load_policy(&cli->options, &policy, &err) < 0) {
		fprintf(stderr, "caisson: %s\n", err.text);
		return;
	}
	if (!cli->options.no_record) {
		snprintf(words->run_root, sizeof words->run_root, "%s", policy.project.run_root);
		add_value(words, "--run-root", words->run_root);
	}
	if (cli_decide(&cli->options, &policy, NULL, &plan, &err) >= 0) {
		add_plan(words, cli, policy.policy, &plan);
		plan_done(&plan);
	} else {
		fprintf(stderr, "caisson: %s\n", err.text);
		snprintf(words->workspace, sizeof words->workspace, "%s:%s",
			 cli->options.workspace ? cli->options.workspace : policy.project.folder,
			 cli->options.workspace_mode);
		add_value(words, "--workspace", words->workspace);
	}
	cli_policy_done(&policy);
}

/* ---- the program ---------------------------------------------------------------------------- */

static int find_programs(struct words *words, struct csn_error *err)
{
	ssize_t n = readlink("/proc/self/exe", words->self, sizeof words->self - 1);
	char folder[PATH_MAX];

	if (n <= 0)
		return csn_fail(err, -ENOENT, "mcp", "/proc is not there");
	words->self[n] = 0;
	if (!agent_file_folder("caisson-mcp", folder))
		return csn_fail(err, -ENOENT, "mcp",
				"caisson-mcp is missing: it lies in libexec/caisson after make "
				"install, or in the build folder");
	snprintf(words->program, sizeof words->program, "%s/caisson-mcp", folder);
	return 0;
}

static int replace_us(struct words *words, struct csn_error *err)
{
	if (words->count > WORDS_MAX)
		return csn_fail(err, -E2BIG, "mcp", "there are too many flags: %zu words",
				words->count);
	words->at[words->count] = NULL;
	execv(words->program, (char *const *)(uintptr_t)words->at);
	return csn_fail(err, -errno, "mcp", "cannot start %s: %m", words->program);
}

int cli_mcp(struct cli *cli)
{
	static struct words words;
	struct cli_options *options = &cli->options;
	bool is_read_only = options->tools && str_is(options->tools, "read-only");
	struct csn_error err = { 0 };
	int r;

	if (!options->workspace_mode)
		options->workspace_mode = is_read_only ? "ro" : "cow";
	options->stays = true;
	r = walls_check_built(options, &err);
	if (r == 0)
		r = find_programs(&words, &err);
	if (r < 0)
		return cli_fail(cli, &err);
	add(&words, "caisson-mcp");
	add_value(&words, "--program", words.self);
	if (options->allow_commit)
		add(&words, "--allow-commit");
	if (is_read_only)
		add(&words, "--read-only");
	add_options(&words, options);
	add_decided(&words, cli);
	r = replace_us(&words, &err);
	return r < 0 ? cli_fail(cli, &err) : CLI_OK;
}
