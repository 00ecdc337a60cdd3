/*
 * caisson read, write, edit, glob, grep: files of a sandbox that stays
 *
 * Contents pass as they are. Names and lines come from inside, so they are escaped unless a
 * program reads them (-0, or stdout is no terminal: then as they are, like find and grep).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "serve/answer.h"
#include "cli/call.h"
#include "cli/out.h"

static int read_file(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_read_request request = { .path = cli->args[1],
				     .on_output = cli->options.json ? NULL : call_output };
	csn_bytes *bytes = NULL;
	int r = call_number("offset", cli->options.offset, &request.offset, err);

	if (r == 0)
		r = call_number("length", cli->options.length, &request.length, err);
	if (r == 0)
		r = csn_read(sandbox, &request, &bytes, err);
	if (r == 0 && cli->options.json)
		out_json(json_pack("{s:o}", "content", answer_bytes(bytes->data, bytes->size)));
	csn_free(bytes);
	return r < 0 ? r : CLI_OK;
}

/* Octal, at most 7777; NULL: unchanged. */
static int take_mode(const char *text, uint16_t *ret_mode)
{
	unsigned mode = 0;

	for (const char *at = text; at && *at; at++) {
		if (*at < '0' || *at > '7' || at - text >= 4)
			return -EINVAL;
		mode = mode * 8 + (unsigned)(*at - '0');
	}
	*ret_mode = (uint16_t)mode;
	return text && !*text ? -EINVAL : 0;
}

static int write_file(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_write_request request = { .path = cli->args[1], .on_input = call_input };

	if (take_mode(cli->options.mode, &request.mode) < 0)
		return call_misuse(err, "--mode takes permissions in octal, as 644");
	if (csn_write(sandbox, &request, err) < 0)
		return -1;
	if (cli->options.json)
		out_json(json_object()); /* of a file written there is no more to say */
	return CLI_OK;
}

static int edit_file(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_edit_request request = { .path = cli->args[1],
				     .old_text = cli->options.old_text,
				     .new_text = cli->options.new_text };
	csn_edit_result *result = NULL;
	bool is_written;

	if (!request.old_text || !request.new_text)
		return call_misuse(err, "edit takes --old TEXT and --new TEXT");
	if (csn_edit(sandbox, &request, &result, err) < 0)
		return -1;
	is_written = result->occurrences == 1;
	if (cli->options.json)
		out_json(answer_edit(result));
	else
		printf("%" PRIu64 "\n", result->occurrences);
	csn_free(result);
	return is_written ? CLI_OK : CLI_FAILED;
}

static void print_name(const struct cli *cli, const char *text)
{
	if (cli->options.ends_in_nul)
		fwrite(text, 1, strlen(text) + 1, stdout);
	else if (isatty(STDOUT_FILENO))
		out_text(stdout, text), putchar('\n');
	else
		puts(text);
}

static int take_limit(const struct cli *cli, const char *flag, uint32_t *ret_limit, csn_error *err)
{
	uint64_t limit = 0;

	if (call_number(flag, cli->options.most, &limit, err) < 0)
		return -1;
	*ret_limit = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
	return 0;
}

static int glob_files(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_glob_request request = { .pattern = cli->args[1], .cwd = cli->options.cwd };
	csn_glob_result *result = NULL;

	if (take_limit(cli, "limit", &request.limit, err) < 0 ||
	    csn_glob(sandbox, &request, &result, err) < 0)
		return -1;
	if (cli->options.json)
		out_json(answer_glob(result));
	for (size_t i = 0; i < result->count && !cli->options.json; i++)
		print_name(cli, result->paths[i]);
	if (result->truncated && !cli->options.json)
		fprintf(stderr, "caisson: there are more; --limit N shows them\n");
	csn_free(result);
	return CLI_OK;
}

static void print_match(const csn_match *match)
{
	if (isatty(STDOUT_FILENO)) {
		out_text(stdout, match->path);
		printf("%c%" PRIu64 "%c", match->is_context ? '-' : ':', match->line_number,
		       match->is_context ? '-' : ':');
		out_text(stdout, match->line.data);
	} else {
		printf("%s%c%" PRIu64 "%c", match->path, match->is_context ? '-' : ':',
		       match->line_number, match->is_context ? '-' : ':');
		fwrite(match->line.data, 1, match->line.size, stdout);
	}
	putchar('\n');
}

static void print_matches(const csn_grep_result *result)
{
	for (size_t i = 0; i < result->count; i++)
		print_match(&result->matches[i]);
	for (size_t i = 0; i < result->binary_count; i++) {
		fprintf(stderr, "caisson: ");
		out_text(stderr, result->binary[i]);
		fprintf(stderr, " matches and is no text\n");
	}
	if (result->truncated)
		fprintf(stderr, "caisson: there are more; --limit N shows them\n");
}

static int grep_files(const struct cli *cli, csn_sandbox *sandbox, csn_error *err)
{
	csn_grep_request request = { .pattern = cli->args[1],
				     .path = cli->args[2],
				     .glob = cli->options.glob,
				     .ignore_case = cli->options.ignore_case };
	csn_grep_result *result = NULL;
	uint64_t context = 0;
	bool found;

	if (take_limit(cli, "limit", &request.limit, err) < 0 ||
	    call_number("context", cli->options.context, &context, err) < 0)
		return -1;
	request.context = context > 100 ? 100 : (uint32_t)context;
	if (csn_grep(sandbox, &request, &result, err) < 0)
		return -1;
	if (cli->options.json)
		out_json(answer_grep(result));
	else
		print_matches(result);
	found = result->count || result->binary_count;
	csn_free(result);
	return found ? CLI_OK : CLI_FAILED;
}

int cli_read(struct cli *cli)
{
	return call_verb(cli, read_file);
}

int cli_write(struct cli *cli)
{
	return call_verb(cli, write_file);
}

int cli_edit(struct cli *cli)
{
	return call_verb(cli, edit_file);
}

int cli_glob(struct cli *cli)
{
	return call_verb(cli, glob_files);
}

int cli_grep(struct cli *cli)
{
	return call_verb(cli, grep_files);
}
