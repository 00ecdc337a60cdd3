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
#include "cli/handover.h"
#include "cli/project.h"
#include "cli/walls.h"
#include "cli/words.h"

enum { NUMBER_TEXT = 16, ABOUT_BYTES = 256 << 10 };

/* What its words say and no flag of ours did. */
struct texts {
	char workspace[PATH_MAX + 8], inside[PATH_MAX], run_root[PATH_MAX];
	char about[NUMBER_TEXT];
};

/* ---- what is known before a sandbox is ------------------------------------------------------ */

/* The policy in effect, for the model: a file without a name, which caisson-mcp reads. */
static void add_about(struct words *words, struct texts *texts, const struct plan *plan)
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
	snprintf(texts->about, sizeof texts->about, "%d", fd);
	words_add_value(words, "--about-fd", texts->about);
}

/* Has somebody said when a silent sandbox ends? Else it does with its client. */
static bool names_idle(const struct cli_options *options, const struct policy *policy)
{
	for (size_t i = 0; i < options->limits.count; i++)
		if (str_starts(options->limits.items[i], "idle="))
			return true;
	return policy_says(policy, "limits.idle");
}

static void add_plan(struct words *words, struct texts *texts, const struct cli *cli,
		     const struct policy *policy, const struct plan *plan)
{
	const struct plan_workspace *workspace = &plan->workspace;

	if (workspace->host) {
		snprintf(texts->workspace, sizeof texts->workspace, "%s:%s", workspace->host,
			 cli->options.workspace_mode);
		snprintf(texts->inside, sizeof texts->inside, "%s", workspace->at);
		words_add_value(words, "--workspace", texts->workspace);
		words_add_value(words, "--inside", texts->inside);
	}
	if (!names_idle(&cli->options, policy))
		words_add(words, "--keep-alive");
	add_about(words, texts, plan);
}

/* Fills in what policy and project say. A refusal is no end: the monitor will say the same. */
static void add_decided(struct words *words, struct texts *texts, const struct cli *cli)
{
	struct cli_policy policy;
	struct csn_error err = { 0 };
	struct plan plan;

	if (cli_load_policy(&cli->options, &policy, &err) < 0) {
		fprintf(stderr, "caisson: %s\n", err.text);
		return;
	}
	if (!cli->options.no_record) {
		snprintf(texts->run_root, sizeof texts->run_root, "%s", policy.project.run_root);
		words_add_value(words, "--run-root", texts->run_root);
	}
	if (cli_decide(&cli->options, &policy, NULL, &plan, &err) >= 0) {
		add_plan(words, texts, cli, policy.policy, &plan);
		plan_done(&plan);
	} else {
		fprintf(stderr, "caisson: %s\n", err.text);
		snprintf(texts->workspace, sizeof texts->workspace, "%s:%s",
			 cli->options.workspace ? cli->options.workspace : policy.project.folder,
			 cli->options.workspace_mode);
		words_add_value(words, "--workspace", texts->workspace);
	}
	cli_policy_done(&policy);
}

/* ---- the program ---------------------------------------------------------------------------- */

int cli_mcp(struct cli *cli)
{
	struct words words = { 0 };
	struct texts texts;
	struct handover to;
	struct cli_options *options = &cli->options;
	bool is_read_only = options->tools && str_is(options->tools, "read-only");
	struct csn_error err = { 0 };
	int r;

	if (!options->workspace_mode)
		options->workspace_mode = is_read_only ? "ro" : "cow";
	options->stays = true;
	r = walls_check_built(options, &err);
	if (r == 0)
		r = handover_find("caisson-mcp", NULL, &to, &err);
	if (r < 0)
		return cli_fail(cli, &err);
	words_add(&words, to.name);
	words_add_value(&words, "--program", to.self);
	if (options->allow_commit)
		words_add(&words, "--allow-commit");
	if (is_read_only)
		words_add(&words, "--read-only");
	words_add_options(&words, options);
	add_decided(&words, &texts, cli);
	r = handover_to(&to, &words, &err);
	return r < 0 ? cli_fail(cli, &err) : CLI_OK;
}
