/*
 * caisson approve: a person's answer to a start that waits for it
 *
 * What was shown is what is answered: the answer is written from what was read once, and only if
 * the request is still there. Who can read the folder can answer: the run root's owner, and root.
 */
#include "cli/approve.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/out.h"

#define TO(field) offsetof(struct cli_options, field)

const struct cli_flag approve_flags[] = {
	{ "list", 0, NULL,
	  "what waits, and each yes that was not used yet: a line each, newest first", CLI_SWITCH,
	  TO(list) },
	{ "all", 0, NULL, "with --list: each no that holds, too", CLI_SWITCH, TO(list_all) },
	{ "deny", 0, NULL, "say no; the same is not asked again for 15 minutes", CLI_SWITCH,
	  TO(deny) },
	{ "yes", 'y', NULL, "say yes without being asked", CLI_SWITCH, TO(yes) },
	{ "for", 0, "TIME", "how long a yes is good, as 5m or 2h; default 15m, at most 24h",
	  CLI_TEXT, TO(good_for) },
	{ NULL },
};

const char approve_text[] =
	"Where the policy says `approval: required`, or the tier is HumanApprove or ManualOnly, a "
	"start without a yes is refused with status 125 and an id. This shows what would be "
	"started and asks. A yes is good for one start of exactly that: command, folders, wall, "
	"limits, network, variables, policy and the contents of files that the command names; then "
	"the same command is given again. `caisson run --wait-approval 10m` waits for it "
	"instead.\n\n"
	"The owner of the run root answers, or root. It keeps no program out that runs as that "
	"owner outside a wall.";

static const char stage[] = "approval";

/* ---- list ------------------------------------------------------------------------------------ */

enum { LISTED_MAX = 4096 };

struct listing {
	bool has_all; /* also what ended with a no */
	size_t count;
	struct approval items[LISTED_MAX];
};

static int take(struct approval *approval, void *data)
{
	struct listing *listing = data;

	if (approval->state == APPROVAL_DENIED && !listing->has_all)
		return 0;
	listing->items[listing->count++] = *approval;
	*approval = (struct approval){ 0 };
	return listing->count == LISTED_MAX;
}

static const char *asked_at(const struct approval *approval)
{
	const char *time = json_string_value(json_object_get(approval->asked, "time"));

	return time ? time : "";
}

static int newest_first(const void *a, const void *b)
{
	return strcmp(asked_at(b), asked_at(a));
}

static int show(const struct cli *cli, const struct listing *listing)
{
	json_t *list = json_array();

	for (size_t i = 0; i < listing->count; i++)
		if (cli->options.json)
			json_array_append_new(list, approve_json(&listing->items[i]));
		else
			approve_print_line(&listing->items[i]);
	if (cli->options.json)
		return out_json(json_pack("{s:o}", "requests", list));
	json_decref(list);
	if (!listing->count && !cli->options.quiet)
		puts("nothing waits for a yes");
	return CLI_OK;
}

static int list(const struct cli *cli, int dir_fd)
{
	struct listing *listing = calloc(1, sizeof *listing);
	int status = CLI_FAILED;

	if (!listing)
		return status;
	/* A program reads the states itself. */
	listing->has_all = cli->options.list_all || cli->options.json;
	if (dir_fd >= 0)
		approvals_each(dir_fd, take, listing);
	qsort(listing->items, listing->count, sizeof *listing->items, newest_first);
	status = show(cli, listing);
	for (size_t i = 0; i < listing->count; i++)
		approval_done(&listing->items[i]);
	free(listing);
	return status;
}

/* ---- answer ---------------------------------------------------------------------------------- */

/* What was typed ahead answered something else. */
static int ask(const struct cli *cli, const char *good, struct csn_error *err)
{
	char answer[8];
	ssize_t n;

	if (cli->options.yes || cli->options.deny)
		return 0;
	if (!isatty(STDIN_FILENO) || cli->options.json)
		return csn_fail(err, -EPERM, stage,
				"nobody can be asked, standard input is no terminal, or --json is "
				"given: --yes says yes, --deny says no");
	tcflush(STDIN_FILENO, TCIFLUSH);
	printf("Start exactly this once, within %s? [y/N] ", good);
	fflush(stdout);
	n = read(STDIN_FILENO, answer, sizeof answer);
	if (n >= 2 && (answer[0] == 'y' || answer[0] == 'Y') && answer[1] == '\n')
		return 0;
	return csn_fail(err, -EPERM, stage,
			"no yes was given: the request still waits, --deny "
			"ends it");
}

static int parse_answer(const struct cli_options *options, struct approval_answer *ret_answer,
			struct csn_error *err)
{
	uint64_t good_ms = APPROVAL_GOOD_MS;

	if (options->yes && options->deny)
		return csn_fail(err, -EINVAL, "usage",
				"--yes and --deny: leave one of the two out");
	if (options->good_for && (str_parse_duration(options->good_for, &good_ms) < 0 ||
				  good_ms == 0 || good_ms > APPROVAL_MAX_MS))
		return csn_fail(err, -EINVAL, "usage",
				"--for takes a time as 5m or 2h, at most 24h");
	*ret_answer = (struct approval_answer){ .is_yes = !options->deny,
						.good_ms = good_ms,
						.how = options->deny  ? "--deny"
						       : options->yes ? "--yes"
								      : "terminal" };
	return 0;
}

static int check_waits(const struct approval *approval, struct csn_error *err)
{
	if (approval->state != APPROVAL_WAITING)
		return csn_fail(err, -EEXIST, stage, "%s is %s already", approval->id,
				approval_state_name(approval->state));
	if (approval->left_ms == 0)
		return csn_fail(err, -ETIMEDOUT, stage,
				"%s has expired: give the command again, and it is asked for again",
				approval->id);
	return 0;
}

static int say(const struct cli *cli, const struct approval *approval, const char *good)
{
	bool is_yes = !cli->options.deny;

	if (cli->options.json)
		return out_json(json_pack("{s:s, s:s, s:s}", "id", approval->id, "state",
					  is_yes ? "approved" : "denied", "digest",
					  approval->digest));
	if (!cli->options.quiet && is_yes)
		printf("approved %s: the same start, once, within %s\n", approval->id, good);
	else if (!cli->options.quiet)
		printf("denied %s\n", approval->id);
	return CLI_OK;
}

static int answer(const struct cli *cli, int dir_fd, struct csn_error *err)
{
	_cleanup_approval_ struct approval approval = { 0 };
	struct approval_answer given;
	char good[32];
	int r = parse_answer(&cli->options, &given, err);

	if (r == 0)
		r = approval_read(dir_fd, cli->args[0], &approval, err);
	if (r == 0)
		r = check_waits(&approval, err);
	if (r < 0)
		return r;
	str_format_duration(given.good_ms, good, sizeof good);
	if (!cli->options.json && !cli->options.quiet)
		approve_print(&approval);
	r = ask(cli, good, err);
	if (r == 0)
		r = approval_answer(dir_fd, &approval, &given, err);
	return r < 0 ? r : say(cli, &approval, good);
}

int cli_approve(struct cli *cli)
{
	_cleanup_fd_ int dir_fd = -1;
	struct csn_error err = { 0 };
	char root[PATH_MAX];
	int r = project_run_root(cli->options.run_dir, root, sizeof root, &err);

	if (!cli->options.list == !cli->arg_count ||
	    (cli->options.list_all && !cli->options.list)) {
		csn_fail(&err, -EINVAL, "usage",
			 "caisson approve takes an id, or --list, which names them");
		return cli_misuse(cli, &err);
	}
	if (r == 0)
		r = approvals_open(root, false, &dir_fd, &err);
	if (cli->options.list && (r == 0 || r == -ENOENT))
		return list(cli, dir_fd);
	if (r == 0)
		r = answer(cli, dir_fd, &err);
	return r < 0 ? cli_fail(cli, &err) : r;
}
