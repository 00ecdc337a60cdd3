/*
 * What killed monitors left with an engine; see engine_sweep(). Only what carries the label of the
 * caller's own folder is looked at: on a machine of many users an engine has containers of others.
 */
#include "backend/engine/engine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/engine/argv.h"
#include "backend/engine/ask.h"
#include "backend/engine/image.h"
#include "backend/engine/keep.h"
#include "base/path.h"
#include "base/place.h"
#include "base/str.h"

enum { ARENA_QUOTA = 1 << 20, WORDS_MAX = 12, ASK_MS = 20000 };

static int engine_do(const struct engine *engine, const char *const *words, struct buf *answer)
{
	_cleanup_arena_ struct arena arena;
	struct piped_program client;
	struct ask ask = { .timeout_ms = ASK_MS };
	size_t count;

	arena_init(&arena, ARENA_QUOTA);
	if (engine_client(engine, &arena, WORDS_MAX, &client, &count) < 0)
		return -1;
	for (; *words; words++)
		((char **)(uintptr_t)client.argv)[count++] = (char *)(uintptr_t)*words;
	ask.path = client.path;
	ask.argv = client.argv;
	ask.env = client.env;
	return ask_run(&ask, answer, NULL);
}

/* One line of the list: the engine's id, a blank, the sandbox's. */
static void sweep_line(const struct engine *engine, char *line, const struct removed *removed)
{
	char *id = strchr(line, ' ');
	const char *words[] = { "rm", "--force", "--volumes", line, NULL };

	if (!id)
		return;
	*id++ = 0;
	if (!place_is_name(id) || keep_is_alive(id))
		return;
	if (engine_do(engine, words, NULL) == 0)
		removed_tell(removed, "container", id);
}

static void sweep_containers(const struct engine *engine, const char *keep,
			     const struct removed *removed)
{
	char label[PATH_MAX + 64], *line, *rest, *text;
	const char *format = engine->is_podman ? "{{.ID}} {{index .Labels \"" ENGINE_LABEL "\"}}"
					       : "{{.ID}} {{.Label \"" ENGINE_LABEL "\"}}";
	const char *const words[] = { "ps",  "--all",    "--no-trunc", "--filter",
				      label, "--format", format,       NULL };
	_cleanup_buf_ struct buf answer;

	snprintf(label, sizeof label, "label=" ENGINE_LABEL_KEEP "=%s", keep);
	buf_init(&answer, ASK_OUTPUT_MAX);
	if (engine_do(engine, words, &answer) != 0 || !buf_text(&answer))
		return;
	text = (char *)buf_at(&answer);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		sweep_line(engine, line, removed);
}

void engine_sweep(const struct removed *removed)
{
	static const struct engine *const engines[] = { &engine_podman, &engine_docker };
	char keep[PATH_MAX], cause[256], fix[256];
	struct engine_facts facts;

	if (keep_find(keep, sizeof keep) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(engines); i++)
		if (engine_facts(engines[i], false, &facts, cause, fix) >= 0)
			sweep_containers(engines[i], keep, removed);
}
