/*
 * make-record ROOT RESULT [EVENT JSON]… - a record as a run would leave it, for the tests
 *
 * The audit room writes it, so the tests of `runs` and `why` need no sandbox. Prints the id.
 * "lost": stops before the end, as a killed monitor would.
 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "audit/audit.h"
#include "base/str.h"

static enum audit_event event_of(const char *name)
{
	for (int i = 0; i < EVENT_COUNT; i++)
		if (str_is(audit_event_name((enum audit_event)i), name))
			return (enum audit_event)i;
	return EVENT_WORKER_EVENT;
}

int main(int argc, char **argv)
{
	struct record record;
	struct csn_error err = { 0 };
	json_t *result, *state = json_pack("{s:s}", "status", "running");

	if (argc < 3 || record_open(&record, argv[1], &err) < 0) {
		fprintf(stderr, "make-record: %s\n", err.text);
		return 1;
	}
	record_write_state(&record, state, &err);
	for (int i = 3; i + 1 < argc; i += 2)
		chain_add(&record.chain, event_of(argv[i]), json_loads(argv[i + 1], 0, NULL));
	result = json_load_file(argv[2], 0, NULL);
	if (result) {
		json_object_set_new(result, "run_id", json_string(record.run_id));
		json_object_set_new(state, "status", json_string("finished"));
		record_write_state(&record, state, &err);
		if (record_close(&record, result, &err) < 0)
			fprintf(stderr, "make-record: %s\n", err.text);
	}
	puts(record.run_id);
	record_done(&record);
	json_decref(result);
	json_decref(state);
	return err.code != 0;
}
