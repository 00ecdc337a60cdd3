/*
 * list: a directory, sorted by the bytes of the names
 *
 * However many entries there are, no more than the reply may carry are kept: the first ones by
 * name, in a heap whose root is the last of them. A name that is gone when it is looked at was
 * not there.
 */
#include "agent/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "agent/folder.h"

enum {
	NAMES_MAX = 10000, /* RESULTS_MAX in wire/messages.c */
	LOOKED_AT = 256,   /* entries in one step */
};

struct listing {
	struct job job;
	struct folder folder;
	char **names; /* NAMES_MAX; a heap, later sorted */
	struct stat *stats;
	size_t count, looked_at;
	size_t found; /* of those looked at: they move to the front */
	bool is_read, is_truncated;
	char path[PATH_MAX];
};

static void swap(char **a, char **b)
{
	char *c = *a;

	*a = *b;
	*b = c;
}

static void sift_up(char **names, size_t at)
{
	while (at > 0 && strcmp(names[at], names[(at - 1) / 2]) > 0) {
		swap(&names[at], &names[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
}

static void sift_down(char **names, size_t count)
{
	size_t at = 0, child;

	while ((child = 2 * at + 1) < count) {
		if (child + 1 < count && strcmp(names[child + 1], names[child]) > 0)
			child++;
		if (strcmp(names[child], names[at]) <= 0)
			return;
		swap(&names[at], &names[child]);
		at = child;
	}
}

static int keep(struct listing *listing, const char *name)
{
	bool is_full = listing->count == NAMES_MAX;
	char *copy;

	listing->is_truncated |= is_full;
	if (is_full && strcmp(name, listing->names[0]) >= 0)
		return 0;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	if (is_full) {
		free(listing->names[0]);
		listing->names[0] = copy;
		sift_down(listing->names, NAMES_MAX);
	} else {
		listing->names[listing->count] = copy;
		sift_up(listing->names, listing->count++);
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One buffer of entries. */
static int read_slice(struct listing *listing)
{
	bool is_folder;
	int r = 0;

	do {
		const char *name = folder_next(&listing->folder, &is_folder, &r);

		if (name) {
			r = keep(listing, name);
		} else if (r == 0) {
			qsort(listing->names, listing->count, sizeof *listing->names, compare);
			listing->is_read = true;
			return 0;
		}
	} while (r == 0 && !folder_is_empty(&listing->folder));
	return r;
}

static int look_slice(struct listing *listing)
{
	size_t end = listing->looked_at + LOOKED_AT;

	if (!listing->stats)
		listing->stats = calloc(listing->count + 1, sizeof *listing->stats);
	if (!listing->stats)
		return -ENOMEM;
	for (; listing->looked_at < end && listing->looked_at < listing->count;
	     listing->looked_at++) {
		size_t found = listing->found;

		if (fstatat(listing->folder.fd, listing->names[listing->looked_at],
			    &listing->stats[found], AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno != ENOENT)
				return -errno;
			continue;
		}
		swap(&listing->names[found], &listing->names[listing->looked_at]);
		listing->found++;
	}
	return 0;
}

static void reply(struct agent *agent, const struct listing *listing)
{
	struct emit emit = files_reply(agent, listing->job.ref, 2);

	emit_atom(&emit, "entries");
	emit_list(&emit, (uint32_t)listing->found);
	for (size_t i = 0; i < listing->found; i++) {
		emit_map(&emit, 3);
		emit_atom(&emit, "name");
		emit_text(&emit, listing->names[i]);
		emit_atom(&emit, "type");
		emit_atom(&emit, files_type(listing->stats[i].st_mode));
		emit_atom(&emit, "size");
		emit_int(&emit, listing->stats[i].st_size);
	}
	emit_nil(&emit);
	emit_atom(&emit, "truncated");
	emit_bool(&emit, listing->is_truncated);
	agent_send(agent, &emit);
}

static enum job_state step(struct agent *agent, struct job *job)
{
	struct listing *listing = (struct listing *)job;
	struct csn_error err = { 0 };
	int r = 0;

	if (!listing->names)
		listing->names = calloc(NAMES_MAX, sizeof *listing->names);
	if (!listing->names)
		r = -ENOMEM;
	else
		r = listing->is_read ? look_slice(listing) : read_slice(listing);
	if (r < 0) {
		resolve_fail(&err, r, "list", listing->path);
		return files_over(agent, job, &err);
	}
	if (!listing->is_read || listing->looked_at < listing->count)
		return JOB_AGAIN;
	reply(agent, listing);
	return JOB_OVER;
}

static void done(struct job *job)
{
	struct listing *listing = (struct listing *)job;

	for (size_t i = 0; i < listing->count; i++)
		free(listing->names[i]);
	free(listing->names);
	free(listing->stats);
	folder_done(&listing->folder);
}

static const struct job_type type = { step, NULL, done };

void list_start(struct agent *agent, const struct call *call)
{
	const char *path = call_text(call, "path");
	struct csn_error err = { 0 };
	struct listing *listing = job_new(agent, call, &type, sizeof *listing);

	if (!listing)
		return;
	listing->folder.fd = -1;
	memcpy(listing->path, path, strlen(path) + 1);
	if (resolve_open(&agent->roots, path, O_RDONLY | O_DIRECTORY, &listing->folder.fd, &err) <
	    0)
		job_fail(agent, &listing->job, &err);
}
