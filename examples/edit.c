/*
 * Edits a file in a copy of the project here, runs a command, shows what changed, and keeps it.
 *
 *   cc examples/edit.c $(pkg-config --cflags --libs caisson) -o edit
 *   ./edit main.c 'old text' 'new text' 'make test'
 */
#include <caisson.h>
#include <stdio.h>

/* 0: edited once, and the command is content; 1: not; negative: `err` says why. */
static int try_it(csn_sandbox *sandbox, char **words, csn_error *err)
{
	csn_edit_request edit = { .path = words[1], .old_text = words[2], .new_text = words[3] };
	csn_exec_request tests = { .command = words[4], .call.timeout_ms = 60000 };
	csn_edit_result *edited = NULL;
	csn_exec_result *run = NULL;
	int status = csn_edit(sandbox, &edit, &edited, err);

	if (status == 0 && edited->occurrences != 1)
		status = 1;
	csn_free(edited);
	if (status == 0)
		status = csn_exec(sandbox, &tests, &run, err);
	if (!run)
		return status;
	fwrite(run->output.data, 1, run->output.size, stdout);
	printf("%s, status %d, %zu violations\n", run->reason_name, run->exit_code,
	       run->violation_count);
	status = run->exit_code == 0 ? 0 : 1;
	csn_free(run);
	return status;
}

int main(int argc, char **argv)
{
	csn_options options = { .workspace = ".:cow" };
	csn_changes_request all = { 0 };
	csn_commit_result *commit = NULL;
	csn_diff_result *diff = NULL;
	csn_error err = { .text = "usage: edit PATH OLD NEW COMMAND" };
	csn_sandbox *sandbox = argc == 5 ? csn_open(&options, &err) : NULL;
	int status = sandbox ? try_it(sandbox, argv, &err) : -1;

	if (status >= 0 && csn_diff(sandbox, &all, &diff, &err) < 0)
		status = -1;
	if (diff)
		fwrite(diff->text.data, 1, diff->text.size, stdout);
	if (status == 0)
		status = csn_commit(sandbox, &all, &commit, &err);
	if (status < 0)
		fprintf(stderr, "edit: %s\n", err.text);
	csn_free(commit);
	csn_free(diff);
	csn_close(sandbox);
	return status < 0 ? 2 : status;
}
