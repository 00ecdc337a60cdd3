/* For tests/cli/test_client.py: joins a sandbox that stays and says, line by line, what it got.
 *   attach NAME PATH      writes PATH, edits it, reads it in a command, is denied, asks too much */
#include "caisson.h"

#include <stdio.h>
#include <string.h>

static csn_sandbox *sandbox;
static csn_error err;

static int say_violation(void *data, const csn_violation *violation)
{
	(void)data;
	printf("heard %s %s\n", violation->event, violation->path ? violation->path : "-");
	return 0;
}

static void run(const char *command, uint32_t timeout_ms)
{
	csn_exec_request request = { .command = command,
				     .call.timeout_ms = timeout_ms,
				     .on_violation = say_violation };
	csn_exec_result *result;

	if (csn_exec(sandbox, &request, &result, &err) < 0) {
		printf("error %s %s\n", csn_code_name(err.code), err.text);
		return;
	}
	printf("%s %d %s %s\n", result->reason_name, result->exit_code,
	       result->clock ? result->clock : "-", result->output.data);
	for (size_t i = 0; i < result->violation_count; i++)
		printf("violation %s %s\n", result->violations[i].event,
		       result->violations[i].path ? result->violations[i].path : "-");
	csn_free(result);
}

int main(int argc, char **argv)
{
	csn_write_request write_it = { .path = argv[2], .bytes = "one two", .size = 7 };
	csn_edit_request edit = { .path = argv[2], .old_text = "two", .new_text = "2" };
	csn_edit_result *edited;

	setvbuf(stdout, NULL, _IONBF, 0);
	sandbox = argc == 3 ? csn_attach(argv[1], &err) : NULL;
	if (!sandbox) {
		printf("error %s %s\n", csn_code_name(err.code), err.text);
		return 2;
	}
	printf("enforces %d\n", csn_enforces(sandbox, "syscalls"));
	if (csn_write(sandbox, &write_it, &err) < 0 || csn_edit(sandbox, &edit, &edited, &err) < 0)
		printf("error %s %s\n", csn_code_name(err.code), err.text);
	else
		csn_free(edited);
	run("cat a; exit 3", 0);
	run("echo no > /etc/passwd", 0);
	run("sleep 20", 300);
	if (strchr(argv[1], '/') == NULL)
		run("yes | head -c 3000000 | wc -c", 0);
	csn_close(sandbox);
	return 0;
}
