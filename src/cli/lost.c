/*
 * Runs without a result: they live, they are just ending, or they were lost; see lost.h
 */
#include "cli/lost.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "audit/files.h"
#include "audit/list.h"
#include "base/fd.h"
#include "base/place.h"
#include "base/str.h"
#include "cli/cow.h"

enum { STATE_MAX = 1 << 20 };

json_t *lost_state(const struct run *run)
{
	_cleanup_fd_ int fd = layer_open(run->root_fd, run->id, O_DIRECTORY);
	json_t *state = NULL;

	if (fd < 0 || files_read_json(fd, "state.json", STATE_MAX, &state) < 0)
		return NULL;
	return state;
}

static int explain_living(const struct run *run, int fd, struct csn_error *err)
{
	json_t *state = lost_state(run);
	const char *name = run_text(state, "sandbox");

	if (list_is_ending(fd))
		csn_fail(err, -ENOENT, "record", LIST_ENDING, run->id);
	else if (place_is_name(name))
		csn_fail(err, -ENOENT, "record",
			 "run %s has no result: it still runs, as the sandbox %s; `caisson diff "
			 "%s` shows what it changed so far",
			 run->id, name, name);
	else
		csn_fail(err, -ENOENT, "record", "run %s has no result: it is still running",
			 run->id);
	json_decref(state);
	return -ENOENT;
}

int lost_explain(const struct run *run, struct csn_error *err)
{
	_cleanup_fd_ int fd = layer_open(run->root_fd, run->id, O_DIRECTORY);

	if (fd >= 0 && list_status(fd) == RUN_RUNNING)
		return explain_living(run, fd, err);
	if (cow_is_kept(run->root_fd, run->id))
		return csn_fail(
			err, -ENOENT, "record",
			"run %s has no result: it was lost, its monitor was killed; `caisson "
			"diff %s` shows what it changed",
			run->id, run->id);
	return csn_fail(err, -ENOENT, "record",
			"run %s has no result: it was lost, its monitor was killed", run->id);
}

/* In the keys of a result. `cow` is borrowed. */
static json_t *result_of(const json_t *cow)
{
	return json_pack("{s:{s:s}, s:[{s:O, s:s}], s:O, s:O, s:{s:O}}", "termination", "reason",
			 "lost", "mounts", "host", json_object_get(cow, "workspace"), "mode", "cow",
			 "protect", json_object_get(cow, "protect"), "hide",
			 json_object_get(cow, "hide"), "policy", "path",
			 json_object_get(cow, "policy"));
}

int lost_read(struct run *run, struct csn_error *err)
{
	_cleanup_fd_ int fd = layer_open(run->root_fd, run->id, O_DIRECTORY);
	const json_t *cow;
	json_t *state;

	if (fd < 0 || list_status(fd) != RUN_LOST || !cow_is_kept(run->root_fd, run->id))
		return lost_explain(run, err);
	state = lost_state(run);
	cow = json_object_get(state, "cow");
	/* Without both lists nobody knows what may not be written. */
	if (json_is_array(json_object_get(cow, "protect")) &&
	    json_is_array(json_object_get(cow, "hide")))
		run->result = result_of(cow);
	json_decref(state);
	if (run->result)
		return 0;
	return csn_fail(err, -ENOENT, "record",
			"run %s was lost before it wrote down what its policy protects; what it "
			"changed is in %.200s/%s/cow/upper",
			run->id, run->root, run->id);
}
