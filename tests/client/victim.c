/* For tests/faults/test_stay_kill.py: makes calls of many kinds until the sandbox is lost, and says
 * line by line what it is told. Ends by itself, so that a test that breaks leaves nothing.
 *   victim CAISSON SEED MS        opens one; closes it after so many milliseconds, 0: keeps it
 *   victim attach:NAME SEED MS    joins one */
#include "caisson.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LIFE_MS = 20000 };

static csn_error err;

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int run(csn_sandbox *sandbox, const char *command, const char *tag)
{
	csn_exec_request request = { .command = command, .detach = tag != NULL, .tag = tag };
	csn_exec_result *result;
	int r = csn_exec(sandbox, &request, &result, &err);

	if (r == 0)
		csn_free(result);
	return r;
}

static int read_one(csn_sandbox *sandbox)
{
	csn_read_request request = { .path = "/etc/passwd" };
	csn_bytes *bytes;
	int r = csn_read(sandbox, &request, &bytes, &err);

	if (r == 0)
		csn_free(bytes);
	return r;
}

static int write_one(csn_sandbox *sandbox)
{
	static char much[300000];
	csn_write_request request = { .path = "/tmp/much", .bytes = much, .size = sizeof much };

	return csn_write(sandbox, &request, &err);
}

static int glob_some(csn_sandbox *sandbox)
{
	csn_glob_request request = { .pattern = "bin/*", .cwd = "/usr" };
	csn_glob_result *result;
	int r = csn_glob(sandbox, &request, &result, &err);

	if (r == 0)
		csn_free(result);
	return r;
}

static int call(csn_sandbox *sandbox, unsigned kind)
{
	static unsigned count;
	char tag[16];

	switch (kind) {
	case 0:
		return run(sandbox, ":", NULL);
	case 1:
		return run(sandbox, "sleep 0.03 & echo out; echo err >&2; wait", NULL);
	case 2:
		return run(sandbox, "setsid sleep 71 & head -c 200000 /dev/zero", NULL);
	case 3:
		snprintf(tag, sizeof tag, "t%u", ++count);
		return run(sandbox, "sleep 0.2", tag);
	case 4:
		return read_one(sandbox);
	case 5:
		return write_one(sandbox);
	default:
		return glob_some(sandbox);
	}
}

/* False when it is lost. What is said of one call, as that its command was killed, is not its end.
 */
static bool go_on(csn_sandbox *sandbox, unsigned *seed)
{
	if (call(sandbox, (unsigned)rand_r(seed) % 7) == 0 || err.code == CSN_COMMAND_LOST ||
	    err.code == CSN_EAGAIN)
		return true;
	printf("%s: %s: %s\n", csn_code_name(err.code), err.stage, err.text);
	return false;
}

int main(int argc, char **argv)
{
	csn_options options = { .program = argc > 3 ? argv[1] : NULL };
	unsigned seed = argc > 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	long life_ms = argc > 3 ? strtol(argv[3], NULL, 10) : 0, start_ms;
	csn_sandbox *sandbox;

	if (argc != 4)
		return 2;
	setvbuf(stdout, NULL, _IONBF, 0);
	if (strncmp(argv[1], "attach:", 7) == 0)
		sandbox = csn_attach(argv[1] + 7, &err);
	else
		sandbox = csn_open(&options, &err);
	if (!sandbox) {
		printf("%s: %s: %s\n", csn_code_name(err.code), err.stage, err.text);
		return 0;
	}
	puts("open");
	start_ms = now_ms();
	while (now_ms() - start_ms < (life_ms ? life_ms : LIFE_MS))
		if (!go_on(sandbox, &seed))
			break;
	puts("closing");
	csn_close(sandbox);
	puts("closed");
	return 0;
}
