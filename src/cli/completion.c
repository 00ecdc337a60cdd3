/*
 * What can be offered for a value, the same for every shell
 *
 * Tiers, walls and keys are read from the tables that decide about them, so that a new one is
 * completed without a line here.
 */
#include "cli/completion.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "base/str.h"
#include "policy/keys.h"

enum { GROUP_SIZE = 32, SEEN_SIZE = 2048 };

/* ---- words in the text of a value ----------------------------------------------------- */

/* Is it "auto" of "auto|always|never", and not "PATH" or "[FILE]"? */
static bool is_literal(const char *word, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!islower((unsigned char)word[i]))
			return false;
	return length > 0;
}

/* Prints the literal alternatives of "PATH|host"; how many there are. */
static int print_literals(const char *text, FILE *file)
{
	int count = 0;
	size_t part;

	if (!text || !strchr(text, '|'))
		return 0;
	for (const char *at = text; *at; at += part + (at[part] == '|')) {
		part = strcspn(at, "|");
		if (!is_literal(at, part))
			continue;
		count++;
		if (file)
			fprintf(file, "%.*s ", (int)part, at);
	}
	return count;
}

/* ---- words of the tables -------------------------------------------------------------- */

static void print_tiers(const char *before)
{
	for (unsigned tier = 0; tier < TIER_COUNT; tier++)
		printf("%s%s ", before, plan_tier_name((enum plan_tier)tier));
}

static void print_backends(void)
{
	fputs("any ", stdout);
	for (const struct backend *const *b = backends; *b; b++)
		printf("%s ", (*b)->name);
}

static void print_limits(void)
{
	static const char section[] = "limits.";

	for (const struct key *key = policy_keys; key < policy_keys + KEY_COUNT; key++)
		if (str_starts(key->path, section))
			printf("%s= ", key->path + sizeof section - 1);
	fputs("scratch= ", stdout);
}

/* Lists and maps are edited in the file; `policy set` has no way to say one. */
static bool is_settable(const struct key *key)
{
	return key->kind != KIND_VERSION && key->kind < KIND_LIST;
}

static void print_settings(void)
{
	for (const struct key *key = policy_keys; key < policy_keys + KEY_COUNT; key++)
		if (is_settable(key))
			printf("%s= ", key->path);
}

static void print_pairs(const struct key *key)
{
	char before[64];

	snprintf(before, sizeof before, "%s=", key->path);
	if (key->kind == KIND_TIER)
		print_tiers(before);
	else if (key->kind == KIND_BOOL)
		printf("%sfalse %strue ", before, before);
	for (const char *const *word = key->choices; word && *word; word++)
		printf("%s%s ", before, *word);
}

void offer_print_pairs(enum cli_offer offer)
{
	if (offer != OFFER_SETTING)
		return;
	for (const struct key *key = policy_keys; key < policy_keys + KEY_COUNT; key++)
		if (is_settable(key))
			print_pairs(key);
}

void offer_print(enum cli_offer offer, const char *text)
{
	switch (offer) {
	case OFFER_WORDS:
		print_literals(text, stdout);
		break;
	case OFFER_TIER:
		print_tiers("");
		break;
	case OFFER_BACKEND:
		print_backends();
		break;
	case OFFER_LIMIT:
		print_limits();
		break;
	case OFFER_SETTING:
		print_settings();
		break;
	default:
		break;
	}
}

const char *offer_name(enum cli_offer offer, const char *text)
{
	static const char *const names[OFFER_COUNT] = {
		[OFFER_WORDS] = "words",     [OFFER_FILE] = "file",
		[OFFER_FOLDER] = "folder",   [OFFER_WORKSPACE] = "workspace",
		[OFFER_MOUNT] = "mount",     [OFFER_TIER] = "words",
		[OFFER_BACKEND] = "words",   [OFFER_LIMIT] = "keys",
		[OFFER_SETTING] = "keys",    [OFFER_VARIABLE] = "variable",
		[OFFER_RUN] = "run",         [OFFER_COMMAND] = "command",
		[OFFER_PROGRAM] = "program",
	};

	return offer == OFFER_WORDS && !print_literals(text, NULL) ? "none" : names[offer];
}

const char *offer_of_flag(const struct cli_flag *flag)
{
	return cli_flag_has_value(flag) ? offer_name(flag->offer, flag->arg) : "";
}

const char *offer_of_word(const struct cli_command *command, int later)
{
	if (command->max_args >= 0 && later >= command->max_args)
		return "none";
	return offer_name(command->offers[later], command->usage);
}

/* ---- words that start commands -------------------------------------------------------- */

void completion_print_commands(const char *group)
{
	size_t length = group ? strlen(group) : 0, part;
	const char *last = "";

	for (const struct cli_command *c = cli_commands; c->name; c++) {
		if (group && (strncmp(c->name, group, length) != 0 || c->name[length] != ' '))
			continue;
		part = strcspn(c->name, " ");
		if (group)
			printf("%s ", c->name + length + 1);
		else if (strncmp(last, c->name, part + 1) != 0)
			printf("%.*s ", (int)part, c->name);
		last = c->name;
	}
}

void completion_each_group(void (*each)(const char *group))
{
	char group[GROUP_SIZE], last[GROUP_SIZE] = "";

	for (const struct cli_command *c = cli_commands; c->name; c++) {
		if (!strchr(c->name, ' '))
			continue;
		snprintf(group, sizeof group, "%.*s", (int)strcspn(c->name, " "), c->name);
		if (!str_is(group, last))
			each(group);
		snprintf(last, sizeof last, "%s", group);
	}
}

void completion_each_valued(void (*each)(const struct cli_flag *flag))
{
	char seen[SEEN_SIZE] = " ", name[64];
	const struct cli_flag *flag;

	for (const struct cli_command *c = cli_commands; c->name; c++)
		for (size_t i = 0; (flag = cli_flag_at(c, i)); i++) {
			snprintf(name, sizeof name, " %s ", flag->name);
			if (!cli_flag_has_value(flag) || strstr(seen, name))
				continue;
			snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s", name + 1);
			each(flag);
		}
}

int cli_completion(struct cli *cli)
{
	static const struct {
		const char *shell;
		void (*print)(void);
	} shells[] = {
		{ "bash", completion_bash },
		{ "zsh", completion_zsh },
		{ "fish", completion_fish },
	};
	struct csn_error err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (str_is(shells[i].shell, cli->args[0])) {
			shells[i].print();
			return CLI_OK;
		}
	csn_fail(&err, -EINVAL, "usage",
		 "there is no completion for \"%s\"; there is for bash, zsh and fish",
		 cli->args[0]);
	return cli_misuse(cli, &err);
}
