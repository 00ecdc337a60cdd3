/*
 * Flags as words; see words.h. What does not fit is counted and refused at the end: a list that
 * was cut might lack a limit.
 */
#include "cli/words.h"

#include <errno.h>

void words_add(struct words *words, const char *word)
{
	if (words->count < WORDS_MAX)
		words->at[words->count] = word;
	words->count++;
}

void words_add_value(struct words *words, const char *flag, const char *value)
{
	if (!value)
		return;
	words_add(words, flag);
	words_add(words, value);
}

void words_add_values(struct words *words, const char *flag, const struct cli_list *values)
{
	for (size_t i = 0; i < values->count; i++)
		words_add_value(words, flag, values->items[i]);
}

void words_add_options(struct words *words, const struct cli_options *options)
{
	words_add_value(words, "--policy", options->policy);
	words_add_value(words, "--tier", options->tier);
	words_add_value(words, "--backend", options->backend);
	words_add_value(words, "--at", options->workspace_at);
	words_add_value(words, "--network", options->network);
	words_add_values(words, "--allow", &options->allow);
	words_add_values(words, "--mount", &options->mounts);
	words_add_values(words, "--limit", &options->limits);
	words_add_values(words, "--env", &options->env);
	words_add_values(words, "--tag", &options->tags);
	words_add_value(words, "--run-dir", options->run_dir);
	if (options->no_record)
		words_add(words, "--no-record");
}

int words_end(struct words *words, const char *stage, struct csn_error *err)
{
	if (words->count > WORDS_MAX)
		return csn_fail(err, -E2BIG, stage,
				"there are too many flags: %zu words, at most %d; a policy file "
				"holds more",
				words->count, WORDS_MAX);
	words->at[words->count] = NULL;
	return 0;
}
