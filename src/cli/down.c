/*
 * caisson down: ends sandboxes that stay
 *
 * The stream's end is the monitor's, which comes when all else is gone.
 */
#include <signal.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/place.h"
#include "cli/cli.h"
#include "monitor/stay_ask.h"

enum { DOWN_MS = 20000 };

static int end_one(int place, const char *name, struct csn_error *err)
{
	_cleanup_fd_ int fd = place_connect(place, name, err);

	return fd < 0 ? fd : stay_ask_end(fd, DOWN_MS, err);
}

/* One that cannot be ended keeps none of the others alive. */
int cli_down(struct cli *cli)
{
	struct csn_error err = { 0 };
	_cleanup_fd_ int place = place_open(&err);
	int status = CLI_OK;

	if (place < 0)
		return cli_fail(cli, &err);
	signal(SIGPIPE, SIG_IGN); /* it may go while we ask */
	for (int i = 0; i < cli->arg_count; i++)
		if (end_one(place, cli->args[i], &err) < 0)
			status = cli_fail(cli, &err);
	return status;
}
