/* The verbs that a monitor answers itself; see stay_verbs.h. */
#include "monitor/stay_verbs.h"

#include "monitor/stay_eval.h"

#include "base/str.h"

static const char *always(const struct stay *stay)
{
	(void)stay;
	return NULL;
}

const struct stay_verb stay_verbs[] = {
	{ "mount", stay_mount_missing, stay_mount, stay_mount_note },
	{ "stats", always, stay_stats, NULL, true },
	{ "diff", stay_no_copy, stay_diff, NULL, true },
	{ "commit", stay_no_copy, stay_commit, stay_commit_note, false },
	{ "snapshot", stay_no_copy, stay_snapshot, NULL, false },
	{ "fork", stay_no_copy, stay_fork, NULL, false },
	{ "eval", stay_eval_missing, .start = stay_eval_start, .cancel = stay_eval_cancel },
};
const size_t stay_verb_count = ARRAY_SIZE(stay_verbs);

const struct stay_verb *stay_verb_find(const struct term *atom)
{
	for (size_t i = 0; i < stay_verb_count; i++)
		if (term_is_atom(atom, stay_verbs[i].name))
			return &stay_verbs[i];
	return NULL;
}
