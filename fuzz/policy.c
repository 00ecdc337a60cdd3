/*
 * Any bytes as a policy file: refused with a place, or decided, told and rendered; and what
 * was rendered must be readable. Built with -DREPLAY it runs files instead of a fuzzer.
 */
#include "policy/policy.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct policy_facts facts = { "/p", "/p", "/h", "/r", "/p", true, true };
	const struct policy_request request = { 0 };
	struct policy *policy = NULL, *again = NULL;
	struct plan plan = { 0 };
	_cleanup_buf_ struct buf text = { .max = 1 << 24 }, yaml = { .max = 1 << 24 };

	if (policy_parse("f", data, size, &policy, NULL) == 0 &&
	    policy_decide(policy, &request, &facts, &plan, NULL) == 0 &&
	    (policy_explain(policy, &plan, &text) < 0 || policy_render(&plan, &yaml) < 0 ||
	     policy_parse("r", buf_at(&yaml), buf_size(&yaml), &again, NULL) < 0))
		abort();
	plan_done(&plan);
	policy_free(policy);
	policy_free(again);
	return 0;
}
#ifdef REPLAY
int main(int argc, char **argv)
{
	static uint8_t data[1 << 21];
	for (int i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "rb");
		LLVMFuzzerTestOneInput(data, file ? fread(data, 1, sizeof data, file) : 0);
		if (!file || fclose(file) != 0)
			return 1;
	}
}
#endif
