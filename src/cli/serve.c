/*
 * caisson serve: the policy is decided here, then caisson-serve takes our place
 *
 * HTTP needs threads and a library that this program must not have (docs/decisions/http.md). What
 * the flags and the policy file come to is written as a policy file in memory, which no sandbox of
 * the server may exceed; the flags go along as words, since each sandbox is decided from them anew.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "cli/project.h"
#include "cli/walls.h"
#include "policy/policy.h"

enum { WORDS = 512, NUMBER = 24 };

/* Installed, and in the build folder. */
static const char *const places[] = { "../libexec/caisson", "../serve" };

struct words {
	char *at[WORDS + 1];
	size_t count;
};

static void add(struct words *words, const char *flag, const char *value)
{
	if (!value || words->count + 2 > WORDS)
		return;
	words->at[words->count++] = (char *)(uintptr_t)flag;
	words->at[words->count++] = (char *)(uintptr_t)value;
}

static void add_list(struct words *words, const char *flag, const struct cli_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		add(words, flag, list->items[i]);
}

static void add_flags(struct words *words, const struct cli_options *options)
{
	add(words, "--policy", options->policy);
	add(words, "--tier", options->tier);
	add(words, "--backend", options->backend);
	add(words, "--workspace", options->workspace);
	add(words, "--mode", options->workspace_mode);
	add(words, "--at", options->workspace_at);
	add(words, "--network", options->network);
	add(words, "--run-dir", options->run_dir);
	add(words, "--token-file", options->token_file);
	add_list(words, "--allow", &options->allow);
	add_list(words, "--mount", &options->mounts);
	add_list(words, "--limit", &options->limits);
	add_list(words, "--env", &options->env);
	add_list(words, "--tag", &options->tags);
	add_list(words, "--host-name", &options->host_names);
	if (options->no_record && words->count < WORDS)
		words->at[words->count++] = (char *)(uintptr_t) "--no-record";
}

/* ---- the bound ------------------------------------------------------------------------------ */

static int write_bound(const struct plan *plan, struct csn_error *err)
{
	_cleanup_fd_ int fd = memfd_create("caisson-serve-policy", MFD_ALLOW_SEALING);
	_cleanup_buf_ struct buf text;
	int r;

	buf_init(&text, POLICY_MAX_BYTES);
	r = fd < 0 ? -errno : policy_render(plan, &text);
	if (r >= 0)
		r = fd_write_all(fd, buf_at(&text), buf_size(&text));
	if (r < 0)
		return csn_fail(err, r, "serve", "cannot write the policy in force: %s",
				strerror(-r));
	return fd_take(&fd);
}

/* What is refused here would be refused for every sandbox. A descriptor, or -errno. */
static int decide(struct cli *cli, char *ret_run_root, struct csn_error *err)
{
	struct backend_report report = { 0 };
	const struct backend *wall;
	struct cli_policy policy;
	struct plan plan;
	int r = walls_check_built(&cli->options, err);

	if (r == 0)
		r = cli_load_policy(&cli->options, &policy, err);
	if (r < 0)
		return r;
	cli->options.stays = true;
	snprintf(ret_run_root, PATH_MAX, "%s", policy.project.run_root);
	r = cli_decide(&cli->options, &policy, NULL, &plan, err);
	if (r >= 0) {
		r = backend_choose(&plan, &wall, &report, err);
		r = r < 0 ? r : write_bound(&plan, err);
		plan_done(&plan);
	}
	cli_policy_done(&policy);
	return r;
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* A default, or what was typed: plain, or with a unit. */
struct number {
	const char *flag, *typed;
	uint64_t otherwise, most;
	bool is_size;
	char text[NUMBER];
};

static int add_numbers(struct words *words, struct number *numbers, size_t count,
		       struct csn_error *err)
{
	for (size_t i = 0; i < count; i++) {
		struct number *number = &numbers[i];
		uint64_t value = number->otherwise;
		int r = 0;

		if (number->typed)
			r = number->is_size ? str_parse_size(number->typed, &value)
					    : str_parse_u64(number->typed, number->most, &value);
		if (r < 0 || value == 0 || value > number->most)
			return csn_fail(err, -EINVAL, "usage", "%s takes %s, at most %llu",
					number->flag,
					number->is_size ? "a size, as 8MiB" : "a number",
					(unsigned long long)number->most);
		snprintf(number->text, sizeof number->text, "%llu", (unsigned long long)value);
		add(words, number->flag, number->text);
	}
	return 0;
}

/* ---- the other program ------------------------------------------------------------------------
 */

static bool find_program(char *ret_self, char *ret_program)
{
	char folder[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", ret_self, PATH_MAX - 1);

	if (n <= 0)
		return false;
	ret_self[n] = 0;
	snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(ret_self, '/') - ret_self), ret_self);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		n = snprintf(ret_program, PATH_MAX, "%s/%s/caisson-serve", folder, places[i]);
		if (n < PATH_MAX && program_is(ret_program))
			return true;
	}
	return false;
}

int cli_serve(struct cli *cli)
{
	const struct cli_options *options = &cli->options;
	struct number numbers[] = {
		{ "--max-sandboxes", options->max_sandboxes, 16, 4096, false, "" },
		{ "--max-calls", options->max_calls, 64, 4096, false, "" },
		{ "--max-body", options->max_body, 8 << 20, 64 << 20, true, "" },
		{ "--max-rate", options->max_rate, 5000, 1000000, false, "" },
	};
	char self[PATH_MAX], program[PATH_MAX], run_root[PATH_MAX], fd_text[NUMBER];
	struct words words = { .at = { program }, .count = 1 };
	struct csn_error err = { 0 };
	int fd;

	add(&words, "--listen", options->listen ? options->listen : "127.0.0.1:4647");
	add_flags(&words, options);
	if (add_numbers(&words, numbers, ARRAY_SIZE(numbers), &err) < 0)
		return cli_misuse(cli, &err);
	if (!find_program(self, program)) {
		csn_fail(&err, -ENOENT, "serve",
			 "caisson-serve is missing: it is built where libmicrohttpd is there "
			 "(package libmicrohttpd-dev), and lies in libexec/caisson");
		return cli_fail(cli, &err);
	}
	fd = decide(cli, run_root, &err);
	if (fd < 0)
		return cli_fail(cli, &err);
	snprintf(fd_text, sizeof fd_text, "%d", fd);
	add(&words, "--within", fd_text);
	add(&words, "--run-root", run_root);
	add(&words, "--program", self);
	if (words.count + 2 > WORDS)
		csn_fail(&err, -E2BIG, "serve", "there are too many flags");
	else
		execv(program, words.at);
	if (!err.code)
		csn_fail(&err, -errno, "serve", "cannot start %.200s: %m", program);
	return cli_fail(cli, &err);
}
