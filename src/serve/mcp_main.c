/*
 * caisson-mcp: the server behind `caisson mcp`, a program of its own
 *
 * The command makes walls and has one thread; this one makes none and has many
 * (docs/decisions/mcp.md). `caisson mcp` has checked all words: what stands here is its language
 * alone, and nobody else's.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "serve/mcp.h"

enum { LIST_MAX = 256, ABOUT_BYTES = 256 << 10 };

struct words {
	struct mcp_config config;
	const char *lists[5][LIST_MAX + 1]; /* allow, mounts, limits, env, tags */
	size_t counts[5];
};

#define TO(field) offsetof(struct mcp_config, field)

static const struct {
	const char *name;
	size_t at;
} texts[] = {
	{ "--program", TO(options.program) },
	{ "--policy", TO(options.policy) },
	{ "--tier", TO(options.tier) },
	{ "--backend", TO(options.backend) },
	{ "--workspace", TO(options.workspace) },
	{ "--at", TO(options.at) },
	{ "--network", TO(options.network) },
	{ "--run-dir", TO(options.run_dir) },
	{ "--inside", TO(at) },
	{ "--run-root", TO(run_root) },
};
static const struct {
	const char *name;
	size_t at;
} switches[] = {
	{ "--allow-commit", TO(may_commit) },
	{ "--read-only", TO(is_read_only) },
	{ "--keep-alive", TO(keeps_alive) },
	{ "--no-record", TO(options.no_record) },
};
static const char *const lists[] = { "--allow", "--mount", "--limit", "--env", "--tag" };

static bool take_switch(struct words *words, const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(switches); i++)
		if (str_is(switches[i].name, word)) {
			*(bool *)((char *)&words->config + switches[i].at) = true;
			return true;
		}
	return false;
}

static bool take_value(struct words *words, const char *word, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (str_is(texts[i].name, word)) {
			*(const char **)((char *)&words->config + texts[i].at) = value;
			return true;
		}
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		if (str_is(lists[i], word) && words->counts[i] < LIST_MAX) {
			words->lists[i][words->counts[i]++] = value;
			return true;
		}
	return false;
}

/* The policy in effect, from a file that has no name. */
static char *read_about(const char *number)
{
	uint64_t fd;
	char *text = NULL;
	ssize_t n;

	if (str_parse_u64(number, 1024, &fd) < 0)
		return NULL;
	text = malloc(ABOUT_BYTES + 1);
	n = text ? fd_read_all((int)fd, text, ABOUT_BYTES) : -1;
	if (n >= 0)
		text[n] = 0;
	close((int)fd);
	if (n >= 0)
		return text;
	free(text);
	return NULL;
}

static bool take_words(struct words *words, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (take_switch(words, argv[i]))
			continue;
		if (i + 1 == argc)
			return false;
		if (str_is(argv[i], "--about-fd"))
			words->config.about = read_about(argv[i + 1]);
		else if (!take_value(words, argv[i], argv[i + 1]))
			return false;
		i++;
	}
	words->config.options.allow = words->lists[0];
	words->config.options.mounts = words->lists[1];
	words->config.options.limits = words->lists[2];
	words->config.options.env = words->lists[3];
	words->config.options.tags = words->lists[4];
	return words->config.options.program != NULL;
}

int main(int argc, char **argv)
{
	static struct words words;
	int status;

	if (!take_words(&words, argc, argv)) {
		fputs("caisson-mcp: it is started by `caisson mcp`\n", stderr);
		return 2;
	}
	status = mcp_serve(&words.config, STDIN_FILENO, STDOUT_FILENO);
	free(words.config.about);
	return status;
}
