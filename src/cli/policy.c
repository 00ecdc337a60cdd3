/*
 * caisson policy: write, change, check, show, explain and trust the policy file
 *
 * Each command reads the file once and works on those bytes: what was shown is what gets
 * trusted, whatever happens to the file meanwhile.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/path.h"
#include "base/str.h"
#include "cli/cli.h"
#include "monitor/differ.h"
#include "cli/nearest.h"
#include "cli/out.h"
#include "cli/project.h"
#include "cli/trust.h"
#include "policy/keys.h"
#include "policy/slip.h"

enum { TEXT_MAX = 4 << 20 };

/* A policy file that a command works on. */
struct target {
	char path[PATH_MAX];
	bool is_found; /* by search, so owner and mode count */
	struct buf bytes;
	char sha256[65];
};

/* Name, else --policy, else the one that a search finds. */
static int target_find(const struct cli *cli, const char *name, struct target *ret_target,
		       struct csn_error *err)
{
	struct project project;
	int r;

	name = name ? name : cli->options.policy;
	r = project_find("/", &project, err);
	if (r < 0)
		return r;
	ret_target->is_found = !name;
	if (!name)
		r = policy_file_find(&project, ret_target->path, PATH_MAX);
	else
		r = path_join(project.cwd, name, ret_target->path, PATH_MAX);
	if (r < 0)
		return csn_fail(err, r, "policy", "%s is no usable path",
				name ? name : project.cwd);
	if (!ret_target->path[0])
		return csn_fail(err, -ENOENT, "policy",
				"there is no " POLICY_FILE_NAME
				" here or above; `caisson policy init` "
				"writes one");
	return 0;
}

static int target_read(struct target *target, struct csn_error *err)
{
	buf_init(&target->bytes, POLICY_MAX_BYTES);
	return policy_file_read(target->path, target->is_found, &target->bytes, target->sha256,
				err);
}

static int target_parse(struct target *target, struct csn_error *err)
{
	struct policy *policy;
	int r;

	r = policy_parse(target->path, buf_at(&target->bytes), buf_size(&target->bytes), &policy,
			 err);
	if (r == 0)
		policy_free(policy);
	return r;
}

/* Writes and, if the caller had accepted the file before, accepts his own change too. */
static int target_write(struct target *target, const char *text, bool is_new, bool is_trusted,
			struct csn_error *err)
{
	struct buf bytes;
	int r;

	r = policy_file_write(target->path, is_new, text, strlen(text), err);
	if (r < 0 || !is_trusted)
		return r;
	buf_init(&bytes, POLICY_MAX_BYTES);
	r = policy_file_read(target->path, false, &bytes, target->sha256, err);
	if (r == 0 && (buf_size(&bytes) != strlen(text) ||
		       memcmp(buf_at(&bytes), text, buf_size(&bytes)) != 0))
		r = csn_fail(err, -EBUSY, "policy", "%s was changed by somebody else meanwhile",
			     target->path);
	if (r == 0)
		r = trust_add(target->path, target->sha256, text, err);
	buf_done(&bytes);
	return r;
}

/* `more` is for people only. */
static int say_more(const struct cli *cli, const struct target *target, const char *what,
		    const char *more)
{
	if (cli->options.json)
		return out_json(json_pack("{s:s, s:s, s:s}", "path", target->path, "sha256",
					  target->sha256, "status", what));
	if (cli->options.quiet)
		return CLI_OK;
	out_text(stdout, target->path);
	printf(": %s%s\n", what, more);
	return CLI_OK;
}

static int say_file(const struct cli *cli, const struct target *target, const char *what)
{
	return say_more(cli, target, what, "");
}

/* A file that was found and is not trusted does not do all that it says. */
static int say_written(const struct cli *cli, const struct target *target, const char *what,
		       bool is_trusted)
{
	const char *more = is_trusted         ? " and trusted"
			   : target->is_found ? "; it may only tighten until you run `caisson "
						"policy trust`"
					      : "";

	return say_more(cli, target, what, more);
}

int cli_policy_init(struct cli *cli)
{
	struct target target = { 0 };
	struct csn_error err = { 0 };
	const char *name = cli->arg_count ? cli->args[0] : POLICY_FILE_NAME;
	int r;

	r = target_find(cli, name, &target, &err);
	if (r == 0)
		r = target_write(&target, policy_template(), !cli->options.force, true, &err);
	return r < 0 ? cli_fail(cli, &err)
		     : say_more(cli, &target, "written",
				" and trusted; from now on flags only narrow it, except as its "
				"mount_roots and overrides say");
}

/* Text as a JSON array of its lines. */
static json_t *lines_of(const char *text)
{
	json_t *lines = json_array();
	size_t length;

	for (; text && *text; text += length + (text[length] == '\n')) {
		length = strcspn(text, "\n");
		json_array_append_new(lines, json_stringn(text, length));
	}
	return lines;
}

static int print_escaped(const struct buf *text)
{
	struct buf safe;
	int r;

	buf_init(&safe, TEXT_MAX);
	r = escape_add(&safe, text->data + text->start, buf_size(text), true);
	if (r == 0)
		fwrite(buf_at(&safe), 1, buf_size(&safe), stdout);
	buf_done(&safe);
	return r;
}

/* What the file says and no run does, one line each. */
static int target_remarks(const struct target *target, struct buf *ret_text, struct csn_error *err)
{
	struct policy *policy;
	int r = policy_parse(target->path, buf_at(&target->bytes), buf_size(&target->bytes),
			     &policy, err);

	if (r < 0)
		return r;
	r = policy_remarks(policy, ret_text);
	policy_free(policy);
	return r < 0 ? csn_fail(err, r, "policy", "out of memory") : 0;
}

static int say_checked(const struct cli *cli, const struct target *target, struct buf *remarks)
{
	if (cli->options.json)
		return out_json(json_pack("{s:s, s:s, s:s, s:o}", "path", target->path, "sha256",
					  target->sha256, "status", "good", "remarks",
					  lines_of(buf_text(remarks))));
	if (!cli->options.quiet)
		print_escaped(remarks);
	return say_file(cli, target, "good");
}

int cli_policy_check(struct cli *cli)
{
	_cleanup_buf_ struct buf remarks;
	struct target target = { 0 };
	struct csn_error err = { 0 };
	int r, status;

	buf_init(&remarks, TEXT_MAX);

	r = target_find(cli, cli->arg_count ? cli->args[0] : NULL, &target, &err);
	if (r == 0)
		r = target_read(&target, &err);
	if (r == 0)
		r = target_remarks(&target, &remarks, &err);
	status = r < 0 ? cli_fail(cli, &err) : say_checked(cli, &target, &remarks);
	buf_done(&target.bytes);
	return status;
}

/* "limits.memory" for "limts.memory", "memory" and "mem"; NULL: nothing is near. */
static const char *nearest_key(const char *typed)
{
	const char *names[2 * KEY_COUNT], *tail, *near;

	for (size_t id = 0; id < KEY_COUNT; id++) {
		tail = strchr(policy_keys[id].path, '.');
		names[id] = policy_keys[id].path;
		names[KEY_COUNT + id] = tail ? tail + 1 : policy_keys[id].path;
	}
	tail = slip_limit(typed);
	near = tail ? tail : cli_nearest(typed, names, ARRAY_SIZE(names));
	for (size_t id = 0; near && id < KEY_COUNT; id++)
		if (str_is(names[id], near) || str_is(names[KEY_COUNT + id], near))
			return names[id];
	return NULL;
}

static int check_key(const char *key, struct csn_error *err)
{
	const char *near;

	if (key_find(key) != KEY_COUNT)
		return 0;
	near = nearest_key(key);
	return csn_fail(err, -EINVAL, "policy", "no key %s%s%s%s", key,
			near ? "; did you mean " : ", expected one such as limits.command; ",
			near ? near : "caisson policy show --effective lists them",
			near ? "?" : "");
}

/* Applies all KEY=VALUE words, one after the other, to the bytes in memory. */
static int set_all(const struct cli *cli, struct target *target, struct csn_error *err)
{
	struct policy_file file = { .name = target->path };
	char key[64];
	struct buf next;
	const char *word;
	size_t length;
	int r = 0;

	for (int i = 0; r == 0 && i < cli->arg_count; i++) {
		word = cli->args[i];
		length = strcspn(word, "=");
		if (!word[length] || length == 0 || length >= sizeof key)
			return csn_fail(err, -EINVAL, "usage",
					"\"%s\" is not KEY=VALUE, as in limits.command=10m", word);
		snprintf(key, sizeof key, "%.*s", (int)length, word);
		r = check_key(key, err);
		if (r < 0)
			return r;
		buf_init(&next, POLICY_MAX_BYTES);
		file.bytes = buf_at(&target->bytes);
		file.size = buf_size(&target->bytes);
		r = policy_set(&file, key, word + length + 1, &next, err);
		buf_done(r < 0 ? &next : &target->bytes);
		if (r == 0)
			target->bytes = next;
	}
	return r;
}

/* Was this key among those that were set? */
static bool is_set_now(const struct cli *cli, const char *remark)
{
	for (int i = 0; i < cli->arg_count; i++) {
		int n = (int)strcspn(cli->args[i], "=");
		char key[80];

		snprintf(key, sizeof key, ": %.*s;", n < 70 ? n : 70, cli->args[i]);
		if (strstr(remark, key))
			return true;
	}
	return false;
}

/* A value that is good and that no run carries out: said now, not by the next run's refusal. */
static void warn_of_gaps(const struct cli *cli, struct target *target)
{
	_cleanup_buf_ struct buf remarks;
	struct csn_error err = { 0 };
	char *line, *next;

	buf_init(&remarks, TEXT_MAX);
	if (cli->options.quiet || target_remarks(target, &remarks, &err) < 0)
		return;
	for (line = (char *)buf_text(&remarks); line && *line; line = next) {
		next = strchrnul(line, '\n');
		next += *next ? 1 : 0;
		if (next > line && next[-1] == '\n')
			next[-1] = 0;
		if (!is_set_now(cli, line))
			continue;
		fprintf(stderr, "%scaisson:%s ", out_color(cli, stderr, OUT_YELLOW),
			out_plain(cli, stderr));
		out_text(stderr, line);
		fputc('\n', stderr);
	}
}

int cli_policy_set(struct cli *cli)
{
	struct target target = { 0 };
	struct csn_error err = { 0 };
	bool is_trusted = false;
	const char *text;
	int r;

	r = target_find(cli, NULL, &target, &err);
	if (r == 0)
		r = target_read(&target, &err);
	if (r == 0)
		r = trust_check(target.path, target.sha256, &is_trusted, &err);
	if (r == 0)
		r = set_all(cli, &target, &err);
	text = r == 0 ? buf_text(&target.bytes) : NULL;
	if (r == 0)
		r = text ? target_write(&target, text, false, is_trusted, &err)
			 : csn_fail(&err, -ENOMEM, "policy", "out of memory");
	if (r == 0)
		warn_of_gaps(cli, &target);
	buf_done(&target.bytes);
	return r < 0 ? cli_fail(cli, &err) : say_written(cli, &target, "changed", is_trusted);
}

/* ---- show, explain -------------------------------------------------------------------- */

static int show_text(const struct cli *cli, const struct cli_policy *policy, struct buf *text)
{
	const char *path = policy->path, *sha256 = policy->sha256, *commit = policy->git.commit;

	if (cli->options.json)
		return out_json(json_pack(
			"{s:s?, s:s?, s:b, s:b, s:s?, s:o, s:s?}", "path", *path ? path : NULL,
			"sha256", *sha256 ? sha256 : NULL, "trusted", policy->is_trusted,
			"explicit", policy->is_explicit, "commit", *commit ? commit : NULL,
			"modified",
			policy->git.is_modified < 0 ? json_null()
						    : json_boolean(policy->git.is_modified),
			"text", buf_text(text)));
	if (!*path)
		puts("# no " POLICY_FILE_NAME " here or above: the built-in defaults hold");
	else
		printf("# %s\n# sha256 %s, %s\n", path, sha256,
		       policy->is_trusted
			       ? "trusted"
			       : "not trusted: it may only tighten (`caisson policy trust`)");
	if (*commit)
		printf("# commit %s%s\n", commit,
		       policy->git.is_modified < 0 ? ""
		       : policy->git.is_untracked  ? ", git does not track the file"
		       : policy->git.is_modified   ? ", the file is modified"
						   : ", the file is as in the index");
	return print_escaped(text) < 0 ? CLI_FAILED : CLI_OK;
}

static int file_text(const struct cli_policy *policy, struct buf *ret_text, struct csn_error *err)
{
	char sha256[65];

	if (!policy->path[0])
		return 0;
	return policy_file_read(policy->path, !policy->is_explicit, ret_text, sha256, err);
}

static int effective_text(const struct cli *cli, const struct cli_policy *policy,
			  struct buf *ret_text, struct csn_error *err)
{
	struct plan plan;
	int r;

	r = cli_decide(&cli->options, policy, NULL, &plan, err);
	if (r < 0)
		return r;
	r = policy_render(&plan, ret_text);
	plan_done(&plan);
	return r < 0 ? csn_fail(err, r, "policy", "out of memory") : 0;
}

int cli_policy_show(struct cli *cli)
{
	_cleanup_buf_ struct buf text;
	struct cli_policy policy;
	struct csn_error err = { 0 };
	int r, status;

	buf_init(&text, TEXT_MAX);
	if (cli_load_policy(&cli->options, &policy, &err) < 0)
		return cli_fail(cli, &err);
	r = cli->options.effective ? effective_text(cli, &policy, &text, &err)
				   : file_text(&policy, &text, &err);
	status = r < 0 ? cli_fail(cli, &err) : show_text(cli, &policy, &text);
	cli_policy_done(&policy);
	return status;
}

static json_t *plan_json(const struct cli_policy *policy, const struct plan *plan,
			 struct buf *rules)
{
	return json_pack("{s:s, s:s, s:s?, s:b, s:o}", "tier", plan_tier_name(plan->tier),
			 "backend", plan->backend, "policy", policy->path[0] ? policy->path : NULL,
			 "trusted", policy->is_trusted, "rules", lines_of(buf_text(rules)));
}

static int explain_plan(const struct cli *cli, const struct cli_policy *policy,
			const struct plan *plan)
{
	_cleanup_buf_ struct buf text;

	buf_init(&text, TEXT_MAX);
	if (policy_explain(policy->policy, plan, &text) < 0)
		return CLI_FAILED;
	if (cli->options.json)
		return out_json(plan_json(policy, plan, &text));
	return print_escaped(&text) < 0 ? CLI_FAILED : CLI_OK;
}

static void print_nearest(const json_t *refused, const struct buf *rules)
{
	const json_t *flag;
	size_t i;

	puts("nearest allowed, without");
	json_array_foreach(refused, i, flag) {
		fputs("  ", stdout);
		out_text(stdout, json_string_value(json_object_get(flag, "flag")));
		putchar('\n');
	}
	puts("gives");
	print_escaped(rules);
}

/* Refused: says what is allowed instead, as far as anything is. */
static int explain_refusal(const struct cli *cli, const struct cli_policy *policy,
			   const struct csn_error *err)
{
	struct csn_error deeper = { 0 };
	struct nearest nearest;
	struct buf rules;
	json_t *more;
	int status;

	if (nearest_decide(cli, policy, &nearest, &deeper) < 0)
		return cli_fail(cli, &deeper);
	buf_init(&rules, TEXT_MAX);
	more = policy_explain(policy->policy, &nearest.plan, &rules) < 0
		       ? json_object()
		       : json_pack("{s:O, s:o}", "refused", nearest.refused, "nearest",
				   plan_json(policy, &nearest.plan, &rules));
	status = cli_fail_with(cli, err, more);
	if (!cli->options.json)
		print_nearest(nearest.refused, &rules);
	json_decref(more);
	buf_done(&rules);
	nearest_done(&nearest);
	return status;
}

int cli_policy_explain(struct cli *cli)
{
	struct cli_policy policy;
	struct csn_error err = { 0 };
	struct plan plan;
	int status;

	if (cli_load_policy(&cli->options, &policy, &err) < 0)
		return cli_fail(cli, &err);
	if (cli_decide(&cli->options, &policy, cli->args, &plan, &err) < 0) {
		status = explain_refusal(cli, &policy, &err);
	} else {
		status = explain_plan(cli, &policy, &plan);
		plan_done(&plan);
	}
	cli_policy_done(&policy);
	return status;
}

/* ---- trust ---------------------------------------------------------------------------- */

/* What is new since the last trusted version, or all of it. */
static int show_change(struct target *target, struct csn_error *err)
{
	_cleanup_buf_ struct buf before, diff;
	bool is_known;
	int r;

	buf_init(&before, POLICY_MAX_BYTES);
	buf_init(&diff, TEXT_MAX);
	r = trust_last(target->path, &before, &is_known, err);
	if (r < 0)
		return r;
	out_text(stdout, target->path);
	puts(is_known ? ": changed since it was last trusted:"
		      : ": never trusted, this is all of it:");
	if (is_known)
		r = differ_unified(
			&(struct differ_text){ (const char *)buf_at(&before), buf_size(&before) },
			&(struct differ_text){ (const char *)buf_at(&target->bytes),
					       buf_size(&target->bytes) },
			&diff);
	if (!is_known || r < 0)
		return print_escaped(&target->bytes);
	return print_escaped(&diff);
}

static int ask(const struct cli *cli, struct csn_error *err)
{
	char answer[8];

	if (cli->options.yes)
		return 0;
	if (!isatty(STDIN_FILENO))
		return csn_fail(
			err, -EPERM, "trust",
			"nobody can be asked, standard input is no terminal; --yes answers");
	fputs("Trust it? [y/N] ", stdout);
	fflush(stdout);
	if (read(STDIN_FILENO, answer, sizeof answer) > 0 && (answer[0] == 'y' || answer[0] == 'Y'))
		return 0;
	return csn_fail(err, -EPERM, "trust", "not trusted: nothing changed");
}

static int trust_target(const struct cli *cli, struct target *target, const char **ret_what,
			struct csn_error *err)
{
	bool is_trusted = false;
	int r;

	r = target_parse(target, err);
	if (r == 0)
		r = trust_check(target->path, target->sha256, &is_trusted, err);
	*ret_what = is_trusted ? "already trusted" : "trusted";
	if (r < 0 || is_trusted)
		return r;
	r = cli->options.json ? 0 : show_change(target, err);
	if (r == 0)
		r = ask(cli, err);
	if (r < 0)
		return r;
	return trust_add(target->path, target->sha256, buf_text(&target->bytes), err);
}

int cli_policy_trust(struct cli *cli)
{
	struct target target = { 0 };
	struct csn_error err = { 0 };
	char real[PATH_MAX];
	const char *what = "";
	int r;

	r = target_find(cli, cli->arg_count ? cli->args[0] : NULL, &target, &err);
	/* A search comes to a file by its real path; trust must be noted under that one. */
	if (r == 0 && realpath(target.path, real))
		snprintf(target.path, sizeof target.path, "%s", real);
	target.is_found = true;
	if (r == 0)
		r = target_read(&target, &err);
	if (r == 0)
		r = trust_target(cli, &target, &what, &err);
	buf_done(&target.bytes);
	return r < 0 ? cli_fail(cli, &err) : say_file(cli, &target, what);
}
