/* What a monitor says to libcaisson. The first byte picks the call; the others follow `ready`. A
 * result is read to its end: all it points to must be there. */
#include "caisson.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char ready[] = "\0\0\0\x4a\x83h\2w\5readyt\0\0\0\3w\7versiona\1w\10enforcesjw\5verbs"
			    "l\0\0\0\4w\4execw\4readw\4grepw\4diffj";

static void use(csn_sandbox *sandbox, unsigned which)
{
	csn_exec_result *run = NULL;
	csn_grep_result *found = NULL;
	csn_diff_result *diff = NULL;
	csn_bytes *bytes = NULL;
	size_t sum = 0;

	if (which == 0 && csn_exec(sandbox, &(csn_exec_request){ .command = "x" }, &run, NULL) == 0)
		for (size_t i = 0; i < run->violation_count; i++)
			sum += strlen(run->violations[i].event) + strlen(run->violations[i].say);
	if (which == 1 &&
	    csn_grep(sandbox, &(csn_grep_request){ .pattern = "x" }, &found, NULL) == 0)
		for (size_t i = 0; i < found->count; i++)
			sum += strlen(found->matches[i].path) + found->matches[i].line.size;
	if (which == 2 && csn_diff(sandbox, &(csn_changes_request){ 0 }, &diff, NULL) == 0)
		sum += strlen(diff->text.data) + diff->count;
	if (which == 3 && csn_read(sandbox, &(csn_read_request){ .path = "x" }, &bytes, NULL) == 0)
		sum += (size_t)bytes->data[bytes->size];
	if (sum == SIZE_MAX)
		abort();
	csn_free(run);
	csn_free(found);
	csn_free(diff);
	csn_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	csn_sandbox *sandbox;
	int pair[2];

	if (size == 0 || size > 65536 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return 0;
	if (write(pair[1], ready, sizeof ready - 1) < 0)
		abort();
	sandbox = csn_adopt(pair[0], NULL);
	if (!sandbox || write(pair[1], data + 1, size - 1) < 0)
		abort();
	shutdown(pair[1], SHUT_WR);
	use(sandbox, data[0] % 4);
	csn_close(sandbox);
	close(pair[1]);
	return 0;
}
