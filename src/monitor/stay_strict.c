/*
 * strict_when, for the commands of a sandbox that stays
 *
 * Its tier was decided when it was opened, and no command was known then. A command that a rule
 * matches would have been started behind a strict wall; in here it is refused, and the attempt is
 * on record. Nothing goes on behind a weaker wall than the policy says.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/arena.h"
#include "base/path.h"
#include "base/str.h"
#include "monitor/stay_private.h"
#include "policy/policy.h"

enum { ARENA_QUOTA = 4 << 20 };

/* What the decoder made ends in a NUL. */
static const char *text_of(const struct term *term)
{
	return (const char *)term->bytes.data;
}

/* The words as rules see them: -c TEXT is one. */
static const char *const *words_of(const struct term *map, struct arena *arena)
{
	const struct term *argv = term_get(map, "argv"), *text = term_get(map, "command");
	size_t count = argv ? argv->count : 1;
	const char **words = arena_array(arena, count + 1, sizeof *words);

	for (size_t i = 0; words && argv && i < argv->count; i++)
		words[i] = text_of(&argv->items[i]);
	if (words && !argv && text)
		words[0] = text_of(text);
	return words;
}

int stay_check_strict(struct stay *stay, const struct term *map, struct csn_error *err)
{
	const struct plan *plan = stay->run.plan;
	const struct term *cwd = term_get(map, "cwd"), *tag = term_get(map, "tag");
	const char *const tags[] = { tag ? text_of(tag) : NULL, NULL };
	const char *top = plan->workspace.host ? plan->workspace.at : plan->scratch_at;
	_cleanup_arena_ struct arena arena;
	struct policy_call call = { .tags = tags };
	char path[PATH_MAX];
	int r;

	arena_init(&arena, ARENA_QUOTA);
	if (!plan->strict_count)
		return 0;
	call.argv = words_of(map, &arena);
	call.cwd = path_join(top, cwd ? text_of(cwd) : ".", path, sizeof path) < 0 ? top : path;
	r = call.argv ? policy_may_call(plan, &call, err)
		      : csn_fail(err, -ENOMEM, "policy", "out of memory");
	if (r == -EPERM)
		run_note_strict(&stay->run, err);
	return r;
}
