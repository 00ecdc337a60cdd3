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
#include <string.h>
#include <sys/mman.h>

#include "backend/backend.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/handover.h"
#include "cli/project.h"
#include "cli/walls.h"
#include "cli/words.h"
#include "policy/policy.h"

enum { NUMBER = 24 };

static void add_flags(struct words *words, const struct cli_options *options)
{
	words_add_value(words, "--listen", options->listen ? options->listen : "127.0.0.1:4647");
	words_add_value(words, "--workspace", options->workspace);
	words_add_value(words, "--mode", options->workspace_mode);
	words_add_value(words, "--token-file", options->token_file);
	words_add_values(words, "--host-name", &options->host_names);
	words_add_options(words, options);
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
		words_add_value(words, number->flag, number->text);
	}
	return 0;
}

/* ---- the other program ---------------------------------------------------------------------- */

int cli_serve(struct cli *cli)
{
	const struct cli_options *options = &cli->options;
	struct number numbers[] = {
		{ "--max-sandboxes", options->max_sandboxes, 16, 4096, false, "" },
		{ "--max-calls", options->max_calls, 64, 4096, false, "" },
		{ "--max-body", options->max_body, 8 << 20, 64 << 20, true, "" },
		{ "--max-rate", options->max_rate, 5000, 1000000, false, "" },
	};
	char run_root[PATH_MAX], fd_text[NUMBER];
	struct words words = { 0 };
	struct csn_error err = { 0 };
	struct handover to;
	int fd;

	words_add(&words, "caisson-serve");
	add_flags(&words, options);
	if (add_numbers(&words, numbers, ARRAY_SIZE(numbers), &err) < 0)
		return cli_misuse(cli, &err);
	if (handover_find("caisson-serve", "libmicrohttpd is there (package libmicrohttpd-dev)",
			  &to, &err) < 0)
		return cli_fail(cli, &err);
	fd = decide(cli, run_root, &err);
	if (fd < 0)
		return cli_fail(cli, &err);
	snprintf(fd_text, sizeof fd_text, "%d", fd);
	words_add_value(&words, "--within", fd_text);
	words_add_value(&words, "--run-root", run_root);
	words_add_value(&words, "--program", to.self);
	handover_to(&to, &words, &err);
	return cli_fail(cli, &err);
}
