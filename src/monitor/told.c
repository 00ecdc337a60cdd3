/*
 * Facts that somebody else's wall tells; see told.h. They are the word of its program, which the
 * policy's author chose to believe, and are recorded as that: source `agent`, not certain.
 */
#include "monitor/told.h"

#include <string.h>

#include "base/str.h"

static bool is_text(const struct term *term, const char *text)
{
	size_t n = strlen(text);

	return term->bytes.size == n && memcmp(term->bytes.data, text, n) == 0;
}

/* The event of that name, FACT_EVENT_COUNT for none that the policy declares. */
static enum fact_event event_of(const struct run *run, const struct term *name)
{
	unsigned event = 0;

	if (!run_is_declared(run) || !name || name->type != TERM_BINARY)
		return FACT_EVENT_COUNT;
	for (; event < FACT_EVENT_COUNT; event++) {
		const char *known = fact_event_name((enum fact_event)event);

		if (is_text(name, known) &&
		    plan_has((const char *const *)run->plan->command_observes, known))
			break;
	}
	return (enum fact_event)event;
}

void told_fact(const struct run *run, const struct term *map, struct violations *violations)
{
	enum fact_event event = event_of(run, term_get(map, "event"));
	struct fact fact;
	const struct {
		const char *key;
		char *to;
		size_t size;
	} texts[] = {
		{ "path", fact.detail.path, sizeof fact.detail.path },
		{ "address", fact.detail.address, sizeof fact.detail.address },
		{ "host", fact.detail.host, sizeof fact.detail.host },
		{ "text", fact.detail.text, sizeof fact.detail.text },
	};

	if (event == FACT_EVENT_COUNT)
		return;
	fact_init(&fact, event, SOURCE_AGENT);
	fact.is_certain = false;
	fact_print(fact.rule, sizeof fact.rule, "%s.observes", run->backend->declared_in);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const struct term *text = term_get(map, texts[i].key);

		if (text && text->type == TERM_BINARY)
			fact_text(texts[i].to, texts[i].size, text->bytes.data, text->bytes.size);
	}
	violations_add(violations, &fact);
}
