/*
 * caisson down: ends sandboxes that stay
 *
 * The stream's end is the monitor's, which comes when all else is gone.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/place.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "monitor/stay_ask.h"

enum { DOWN_MS = 20000 };

static int end_one(int place, const char *name, struct csn_error *err)
{
	_cleanup_fd_ int fd = place_connect(place, name, err);

	return fd < 0 ? fd : stay_ask_end(fd, DOWN_MS, err);
}

/* As cli_fail() says it; of several, one object at the end has them all. */
static void say(const struct cli *cli, const char *name, const struct csn_error *err,
		json_t *failed)
{
	if (!cli->options.json) {
		cli_fail(cli, err);
		return;
	}
	fputs("caisson: ", stderr);
	out_text(stderr, err->text);
	fputc('\n', stderr);
	json_object_set_new(failed, name, json_string(err->text));
}

/* One that cannot be ended keeps none of the others alive. */
int cli_down(struct cli *cli)
{
	struct csn_error err = { 0 };
	_cleanup_fd_ int place = place_open(&err);
	json_t *ended, *failed;
	int status;

	if (place < 0)
		return cli_fail(cli, &err);
	ended = json_array();
	failed = json_object();
	signal(SIGPIPE, SIG_IGN); /* it may go while we ask */
	for (int i = 0; i < cli->arg_count; i++)
		if (end_one(place, cli->args[i], &err) < 0)
			say(cli, cli->args[i], &err, failed);
		else
			json_array_append_new(ended, json_string(cli->args[i]));
	if (cli->options.json)
		out_json(json_pack("{s:O, s:O}", "ended", ended, "failed", failed));
	status = (int)json_array_size(ended) == cli->arg_count ? CLI_OK : CLI_FAILED;
	json_decref(ended);
	json_decref(failed);
	return status;
}
