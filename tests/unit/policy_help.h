/* One machine, one file, one request: what the tests of decisions share. */
#pragma once

#include "policy/file.h"
#include "tap.h"

#include <errno.h>

#include "base/str.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static inline struct policy_facts facts(bool is_trusted)
{
	return (struct policy_facts){
		.cwd = "/home/u/proj",
		.project = "/home/u/proj",
		.home = "/home/u",
		.run_root = "/home/u/.local/state/caisson/runs",
		.policy_dir = "/home/u/proj",
		.policy_is_trusted = is_trusted,
	};
}

static inline int decide_at(const char *yaml, const struct policy_request *request,
			    const struct policy_facts *where, struct plan *ret_plan,
			    struct csn_error *err)
{
	struct policy *policy = NULL;
	char text[4096];
	int code = 0;

	if (yaml) {
		snprintf(text, sizeof text, "%s%s", strstr(yaml, "version:") ? "" : "version: 1\n",
			 yaml);
		code = policy_parse("p.yaml", text, strlen(text), &policy, err);
	}
	if (code == 0)
		code = policy_decide(policy, request, where, ret_plan, err);
	policy_free(policy);
	return code;
}

static inline int decide(const char *yaml, const struct policy_request *request, bool is_trusted,
			 struct plan *ret_plan, struct csn_error *err)
{
	struct policy_facts where = facts(is_trusted);

	return decide_at(yaml, request, &where, ret_plan, err);
}

static inline const char *shown(const struct plan *plan, const char *key)
{
	static struct buf buf;

	buf_done(&buf);
	buf_init(&buf, 1 << 16);
	CHECK(key_find(key) != KEY_COUNT);
	CHECK(key_show(&policy_keys[key_find(key)], plan, SHOW_VALUES, &buf) == 0);
	return buf_text(&buf);
}

static inline const struct plan_note *note_of(const struct plan *plan, const char *key)
{
	for (size_t i = plan->note_count; i-- > 0;)
		if (str_is(plan->notes[i].what, key))
			return &plan->notes[i];
	return NULL;
}
