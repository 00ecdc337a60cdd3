/*
 * The folding list. Linear search: at most 256 facts, and who floods it is slowed down by the
 * notifier's token bucket; the last fact that matched is looked at first, because floods repeat.
 */
#include "monitor/violations.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

void violations_init(struct violations *list, const struct plan *plan, violations_new_fn on_new,
		     void *data)
{
	memset(list, 0, sizeof *list);
	list->plan = plan;
	list->on_new = on_new;
	list->data = data;
}

void violations_done(struct violations *list)
{
	free(list->facts);
	list->facts = NULL;
	list->count = 0;
}

static struct fact *find(struct violations *list, const struct fact *fact)
{
	if (list->last < list->count && fact_is_same(&list->facts[list->last], fact))
		return &list->facts[list->last];
	for (size_t i = 0; i < list->count; i++) {
		if (fact_is_same(&list->facts[i], fact)) {
			list->last = i;
			return &list->facts[i];
		}
	}
	return NULL;
}

/* A copy at the end of the list, complete with time and sentence; NULL: no room. */
static struct fact *append(struct violations *list, const struct fact *fact)
{
	struct fact *kept;

	if (!list->facts)
		list->facts = calloc(VIOLATIONS_MAX, sizeof *list->facts);
	if (!list->facts || list->count == VIOLATIONS_MAX)
		return NULL;
	list->last = list->count;
	kept = &list->facts[list->count++];
	*kept = *fact;
	kept->time_ms = clock_wall_ms();
	kept->last_ms = kept->time_ms;
	fact_mark_expected(kept);
	fact_judge(kept, list->plan);
	fact_say(kept, list->plan);
	return kept;
}

static void fold(struct fact *kept, const struct fact *fact)
{
	kept->count += fact->count;
	kept->last_ms = clock_wall_ms();
	kept->is_certain = kept->is_certain && fact->is_certain;
}

bool violations_add(struct violations *list, const struct fact *fact)
{
	struct fact *kept = find(list, fact);
	bool is_expected = fact->is_expected, is_new = !kept;

	if (kept)
		fold(kept, fact);
	else
		kept = append(list, fact);
	if (kept)
		is_expected = kept->is_expected;
	else
		list->others[fact->event] += fact->count;
	if (is_new && kept && list->on_new)
		list->on_new(kept, list->data);
	if (is_expected || list->plan->on_violation != REACT_KILL ||
	    !fact_event_may_kill(fact->event))
		return false;
	list->wants_end = true;
	return true;
}

uint64_t violations_count(const struct violations *list, enum fact_event event)
{
	uint64_t sum = list->others[event];

	for (size_t i = 0; i < list->count; i++) {
		if (list->facts[i].event == event && !list->facts[i].is_expected)
			sum += list->facts[i].count;
	}
	return sum;
}

static int add_others(json_t *array, enum fact_event event, uint64_t count)
{
	json_t *entry =
		json_pack("{s:s, s:{s:b}, s:I, s:b, s:s}", "event", fact_event_name(event),
			  "detail", "others", 1, "count", (json_int_t)count, "certain", 0, "say",
			  "More different ones than the record keeps: counted only.");

	return json_array_append_new(array, entry);
}

static int fill(json_t *array, const struct violations *list, const struct redactor *redactor)
{
	for (size_t i = 0; i < list->count; i++) {
		if (json_array_append_new(array, fact_json(&list->facts[i], redactor)) < 0)
			return -1;
	}
	for (unsigned event = 0; event < FACT_EVENT_COUNT; event++) {
		if (list->others[event] && add_others(array, event, list->others[event]) < 0)
			return -1;
	}
	return 0;
}

json_t *violations_json(const struct violations *list, const struct redactor *redactor)
{
	json_t *array = json_array();

	if (array && fill(array, list, redactor) < 0) {
		json_decref(array);
		return NULL;
	}
	return array;
}
