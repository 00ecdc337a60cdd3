/*
 * caisson-serve: what `caisson serve` executes
 *
 * The command parsed the flags, decided the policy and says what came of it, one word after the
 * other; nobody else calls this program. The policy that no sandbox may exceed is a file in memory,
 * which the monitors open through /proc: nothing is left of it when this process is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "serve/http.h"

enum { WITHIN_PATH = 64 };

#define TO(member) offsetof(struct http_config, member)

enum word { WORD_TEXT, WORD_LIST, WORD_NUMBER };

/* The value of each follows it, but for --no-record. */
static const struct {
	const char *name;
	enum word kind;
	size_t offset;
} words[] = {
	{ "--listen", WORD_TEXT, TO(listen) },
	{ "--token-file", WORD_TEXT, TO(token_file) },
	{ "--run-root", WORD_TEXT, TO(run_root) },
	{ "--program", WORD_TEXT, TO(base.program) },
	{ "--within", WORD_TEXT, TO(base.within) },
	{ "--policy", WORD_TEXT, TO(base.policy) },
	{ "--tier", WORD_TEXT, TO(base.tier) },
	{ "--backend", WORD_TEXT, TO(base.backend) },
	{ "--workspace", WORD_TEXT, TO(base.workspace) },
	{ "--mode", WORD_TEXT, TO(base.mode) },
	{ "--at", WORD_TEXT, TO(base.at) },
	{ "--network", WORD_TEXT, TO(base.network) },
	{ "--run-dir", WORD_TEXT, TO(base.run_dir) },
	{ "--max-sandboxes", WORD_NUMBER, TO(max_sandboxes) },
	{ "--max-calls", WORD_NUMBER, TO(max_calls) },
	{ "--max-body", WORD_NUMBER, TO(max_body_bytes) },
	{ "--max-rate", WORD_NUMBER, TO(max_rate) },
	{ "--host-name", WORD_LIST, TO(hosts) },
	{ "--allow", WORD_LIST, TO(base.allow) },
	{ "--mount", WORD_LIST, TO(base.mounts) },
	{ "--limit", WORD_LIST, TO(base.limits) },
	{ "--env", WORD_LIST, TO(base.env) },
	{ "--tag", WORD_LIST, TO(base.tags) },
};

/* Appends to a list that ends with NULL; its room is that of all words there are. */
static int add(const char ***list, const char *value, int most)
{
	size_t count = 0;

	if (!*list)
		*list = calloc((size_t)most + 1, sizeof **list);
	if (!*list)
		return -ENOMEM;
	while ((*list)[count])
		count++;
	(*list)[count] = value;
	return 0;
}

static int take(struct http_config *config, const char *name, const char *value, int most)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		void *to = (uint8_t *)config + words[i].offset;

		if (!str_is(words[i].name, name))
			continue;
		if (words[i].kind == WORD_NUMBER)
			return str_parse_u64(value, INT64_MAX, to);
		if (words[i].kind == WORD_LIST)
			return add(to, value, most);
		*(const char **)to = value;
		return 0;
	}
	return -EINVAL;
}

static int take_all(struct http_config *config, int argc, char **argv)
{
	int r = 0;

	for (int i = 1; r == 0 && i < argc; i++) {
		if (str_is(argv[i], "--no-record")) {
			config->base.no_record = true;
			continue;
		}
		r = i + 1 < argc ? take(config, argv[i], argv[i + 1], argc) : -EINVAL;
		i++;
	}
	return r == 0 && config->listen && config->run_root && config->base.program &&
			       config->base.within
		       ? 0
		       : -EINVAL;
}

/* --within is a descriptor's number: only monitors, by their owner's right to look into /proc, read
 * it from here. */
static int keep_within(struct http_config *config, char *ret_path)
{
	uint64_t fd = 0;

	if (str_parse_u64(config->base.within, INT32_MAX, &fd) < 0 ||
	    fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return -EINVAL;
	snprintf(ret_path, WITHIN_PATH, "/proc/%d/fd/%d", (int)getpid(), (int)fd);
	config->base.within = ret_path;
	return 0;
}

static void drop_lists(struct http_config *config)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].kind == WORD_LIST)
			free(*(void **)((uint8_t *)config + words[i].offset));
}

int main(int argc, char **argv)
{
	struct http_config config = { 0 };
	struct server server = { .config = &config };
	struct csn_error err = { 0 };
	char within[WITHIN_PATH];
	int r;

	if (take_all(&config, argc, argv) < 0 || keep_within(&config, within) < 0) {
		fputs("caisson-serve: start it with `caisson serve`\n", stderr);
		return 2;
	}
	tokens_init(&server.tokens);
	r = http_serve(&server, &err);
	if (r < 0)
		fprintf(stderr, "caisson: %s\n", err.text);
	tokens_done(&server.tokens);
	drop_lists(&config);
	return r < 0 ? 125 : 0;
}
