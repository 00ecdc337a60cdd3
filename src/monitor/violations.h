/*
 * violations - the facts of one command or sandbox, folded and bounded
 *
 * Equal facts become one with a count, a first and a last time. At most VIOLATIONS_MAX
 * different ones are kept; later different ones are only counted, one number per event, so
 * that no program can fill the result or the audit log.
 */
#pragma once

#include "monitor/fact.h"

enum { VIOLATIONS_MAX = 256 };

/* Told each fact that is kept for the first time, with its sentence. For the audit log. */
typedef void (*violations_new_fn)(const struct fact *fact, void *data);

struct violations {
	const struct plan *plan; /* borrowed */
	struct fact *facts;      /* owned, VIOLATIONS_MAX, made at the first fact */
	size_t count;
	size_t last;                       /* the fact that matched last */
	uint64_t others[FACT_EVENT_COUNT]; /* different facts beyond the bound */
	bool wants_end;                    /* on_violation: kill, and there was one */
	violations_new_fn on_new;          /* may be NULL */
	void *data;
};

/* Allocates nothing. `plan` is borrowed and must live as long; `on_new` may be NULL. */
void violations_init(struct violations *list, const struct plan *plan, violations_new_fn on_new,
		     void *data);
void violations_done(struct violations *list);

/*
 * Adds a copy: sets its time, marks expected noise, writes its sentence, folds it. Never fails:
 * out of memory, the fact is counted among the others. Returns true when `on_violation: kill`
 * asks for the end of the run because of this fact (`wants_end` stays true).
 */
bool violations_add(struct violations *list, const struct fact *fact);

/* How many facts of an event, folded ones and others included; expected noise is not counted. */
uint64_t violations_count(const struct violations *list, enum fact_event event);

/*
 * The array for result.json: in order of first appearance, then one entry with
 * detail {"others": true} for each event that went beyond the bound. A redactor masks secrets,
 * NULL: none are known. A new array, or NULL when out of memory.
 */
json_t *violations_json(const struct violations *list, const struct redactor *redactor);
