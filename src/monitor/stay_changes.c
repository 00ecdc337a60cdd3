/*
 * diff and commit of a sandbox that lives, in a worker: its commands may be changing what is
 * listed. The engine is copy.h's; here are the call's map, the reply and the record.
 *
 * A commit tells of its entries in notes while it works, so that one that is killed has told of
 * all but its last ones.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/buf.h"
#include "monitor/copy_commit.h"
#include "monitor/copy_diff.h"
#include "monitor/copy_foreign.h"
#include "monitor/stay_verbs.h"
#include "os/reach.h"

enum {
	LISTED_MAX = 10000,     /* entries in a reply, as its table has it */
	LISTED_BYTES = 2 << 20, /* of their paths */
	NOTE_BYTES = 24 << 10,  /* of the paths in a note, which is a frame of 64 KiB */
	NOTE_PATHS = 200,
};

/* What a reply says of an entry. */
struct told {
	const struct layer_entry *entry, *other;
	const char *reason;
};

struct list {
	struct told *items; /* owned */
	size_t count, room;
};

struct changes {
	struct worker *worker;
	struct copy copy;
	const char **paths;  /* owned; NULL: all */
	struct list applied; /* of a diff: all of them */
	struct list left;
	size_t bytes;
	bool is_truncated;
	bool is_dry_run;
	/* For the next note. */
	struct buf noted; /* paths that are safe to print, each with its NUL */
	unsigned noted_count, noted_left;
};

const char *stay_no_copy(const struct stay *stay)
{
	if (stay->run.plan->workspace.host && stay->run.plan->workspace.access == ACCESS_COW)
		return NULL;
	return "this sandbox works on no copy of the workspace: start it with --cow";
}

static bool is_true(const struct term *map, const char *key)
{
	const struct term *value = term_get(map, key);

	return value && term_is_atom(value, "true");
}

/* ---- opened and closed ------------------------------------------------------------------- */

static int take_paths(struct changes *changes, const struct term *list)
{
	if (!list)
		return 0;
	changes->paths = calloc((size_t)list->count + 1, sizeof *changes->paths);
	for (size_t i = 0; changes->paths && i < list->count; i++)
		changes->paths[i] = (const char *)list->items[i].bytes.data;
	changes->copy.paths = changes->paths;
	return changes->paths ? 0 : -ENOMEM;
}

static int open_changes(struct changes *changes, struct worker *worker, const struct term *map,
			struct csn_error *err)
{
	const struct run *run = worker->run;
	const struct plan_workspace *workspace = &run->plan->workspace;
	const struct copy_facts facts = {
		.run_id = run->record.run_id,
		.workspace = workspace->host,
		.at = workspace->at,
		.protect = workspace->protect,
		.hide = workspace->hide,
		.policy_path = run->plan->policy_path,
		.started_ms = run->started_wall_ms,
	};

	*changes = (struct changes){ .worker = worker, .copy = COPY_NONE };
	buf_init(&changes->noted, 2 * NOTE_BYTES);
	if (take_paths(changes, term_get(map, "paths")) < 0)
		return csn_fail(err, -ENOMEM, "changes", "out of memory");
	reach_own_files(); /* where it cannot, what is closed is named */
	return copy_open(&changes->copy, run->record.dir_fd, &facts, err);
}

static void close_changes(struct changes *changes)
{
	copy_done(&changes->copy);
	free(changes->paths);
	free(changes->applied.items);
	free(changes->left.items);
	buf_done(&changes->noted);
}

/* ---- the reply --------------------------------------------------------------------------- */

static int list_add(struct changes *changes, struct list *list, const struct told *told)
{
	size_t bytes = strlen(told->entry->path) + (told->other ? strlen(told->other->path) : 0);
	struct told *items;

	if (list->count == LISTED_MAX || changes->bytes + bytes > LISTED_BYTES) {
		changes->is_truncated = true;
		return 0;
	}
	if (list->count == list->room) {
		list->room = list->room ? list->room * 2 : 64;
		items = reallocarray(list->items, list->room, sizeof *items);
		if (!items)
			return -ENOMEM;
		list->items = items;
	}
	list->items[list->count++] = *told;
	changes->bytes += bytes;
	return 0;
}

static void put_path(struct emit *emit, const char *key, const char *path)
{
	emit_atom(emit, key);
	emit_text(emit, path);
}

static void put_atom(struct emit *emit, const char *key, const char *name)
{
	emit_atom(emit, key);
	emit_atom(emit, name);
}

static void put_int(struct emit *emit, const char *key, int64_t value)
{
	emit_atom(emit, key);
	emit_int(emit, value);
}

static void put_change(struct emit *emit, const struct copy *copy, const struct told *told)
{
	const struct layer_entry *entry = told->entry;
	const struct stat *st = entry->change == LAYER_DELETED ? &entry->old : &entry->now;

	emit_map(emit, 6u + !!told->other + !!told->reason);
	put_path(emit, "path", entry->path);
	put_atom(emit, "change", copy_change_name(entry));
	put_atom(emit, "kind", copy_kind_name(entry));
	put_int(emit, "size", st->st_size);
	put_int(emit, "mode", (int64_t)(st->st_mode & 07777));
	put_atom(emit, "guarded", copy_guard(copy, entry) ? "true" : "false");
	if (told->other)
		put_path(emit, "other", told->other->path);
	if (told->reason)
		put_path(emit, "reason", told->reason);
}

static void put_list(struct emit *emit, const char *key, const struct copy *copy,
		     const struct list *list)
{
	emit_atom(emit, key);
	emit_list(emit, (uint32_t)list->count);
	for (size_t i = 0; i < list->count; i++)
		put_change(emit, copy, &list->items[i]);
	emit_nil(emit);
}

/* ---- diff -------------------------------------------------------------------------------- */

static int add_change(void *data, const struct layer_entry *entry, const struct layer_entry *other)
{
	struct changes *changes = data;

	return list_add(changes, &changes->applied,
			&(struct told){ .entry = entry, .other = other });
}

static int write_text(void *data, const void *bytes, size_t size)
{
	struct changes *changes = data;

	return worker_data(changes->worker, bytes, size);
}

static int make_diff(struct changes *changes, const struct term *map, struct csn_error *err)
{
	const struct copy_diff diff = { .copy = &changes->copy,
					.names_only = is_true(map, "names_only"),
					.write = write_text,
					.entry = add_change,
					.data = changes };
	struct copy_foreign foreign;
	struct emit emit;
	int r = copy_diff_all(&diff);

	if (r < 0)
		return csn_fail(err, r, "diff", "cannot show the changes: %s", strerror(-r));
	copy_find_foreign(changes->copy.lower_fd, &foreign);
	emit = worker_reply(changes->worker, 4);
	put_list(&emit, "changes", &changes->copy, &changes->applied);
	put_atom(&emit, "truncated", changes->is_truncated ? "true" : "false");
	put_int(&emit, "foreign", foreign.count);
	emit_atom(&emit, "foreign_names");
	emit_list(&emit, foreign.named);
	for (unsigned i = 0; i < foreign.named; i++)
		emit_text(&emit, foreign.names[i]);
	emit_nil(&emit);
	copy_foreign_done(&foreign);
	return worker_send(changes->worker, &emit);
}

int stay_diff(struct worker *worker, const struct term *map, struct csn_error *err)
{
	struct changes changes;
	int r = open_changes(&changes, worker, map, err);

	if (r == 0)
		r = make_diff(&changes, map, err);
	close_changes(&changes);
	return r;
}

/* ---- commit ------------------------------------------------------------------------------ */

static const struct frame_key note_keys[] = {
	{ "applied", 'i', true, INT32_MAX, "entries written" },
	{ "left", 'i', true, INT32_MAX, "entries left out" },
	{ "paths", 'L', true, 2 * NOTE_BYTES, "of those that were written" },
	{ NULL },
};

int stay_commit_note(struct stay *stay, const struct term *map, struct csn_error *err)
{
	struct run *run = &stay->run;
	const struct term *paths;
	json_t *list;

	if (frame_check_map(note_keys, map, err) < 0)
		return -EBADMSG;
	list = json_array();
	paths = term_get(map, "paths");
	for (size_t i = 0; i < paths->count; i++)
		json_array_append_new(list, json_stringn((const char *)paths->items[i].bytes.data,
							 paths->items[i].bytes.size));
	chain_add(&run->record.chain, EVENT_COMMITTED,
		  json_pack("{s:s, s:I, s:I, s:o}", "workspace", run->plan->workspace.host,
			    "applied", (json_int_t)term_get(map, "applied")->integer, "left_out",
			    (json_int_t)term_get(map, "left")->integer, "paths", list));
	return 0;
}

static void send_note(struct changes *changes)
{
	const char *at = (const char *)buf_at(&changes->noted);
	struct emit emit;

	if (changes->noted_count + changes->noted_left == 0)
		return;
	emit = worker_note(changes->worker, 3);
	put_int(&emit, "applied", changes->noted_count);
	put_int(&emit, "left", changes->noted_left);
	emit_atom(&emit, "paths");
	emit_list(&emit, changes->noted_count);
	for (unsigned i = 0; i < changes->noted_count; i++, at += strlen(at) + 1)
		emit_text(&emit, at);
	emit_nil(&emit);
	worker_send(changes->worker, &emit);
	buf_clear(&changes->noted);
	changes->noted_count = changes->noted_left = 0;
}

static void note(struct changes *changes, const struct layer_entry *entry, const char *reason)
{
	char *name = copy_path_text(entry);

	if (reason)
		changes->noted_left++;
	else if (name && buf_add(&changes->noted, name, strlen(name) + 1) == 0)
		changes->noted_count++;
	free(name);
	if (changes->noted_count == NOTE_PATHS || buf_size(&changes->noted) > NOTE_BYTES)
		send_note(changes);
}

static void committed(void *data, const struct layer_entry *entry, const char *reason)
{
	struct changes *changes = data;

	if (list_add(changes, reason ? &changes->left : &changes->applied,
		     &(struct told){ .entry = entry, .reason = reason }) < 0)
		changes->is_truncated = true;
	if (!changes->is_dry_run)
		note(changes, entry, reason);
}

static int make_commit(struct changes *changes, const struct term *map, struct csn_error *err)
{
	struct copy_book book = COPY_BOOK_NONE;
	const struct copy_commit commit = { .copy = &changes->copy,
					    .book = &book,
					    .is_forced = is_true(map, "force"),
					    .is_dry_run = is_true(map, "dry_run"),
					    .tell = committed,
					    .data = changes };
	struct emit emit;
	int r;

	changes->is_dry_run = commit.is_dry_run;
	r = copy_book_open(&book, changes->copy.cow_fd, !commit.is_dry_run, err);
	if (r == 0) {
		/* Not in the middle of a file: copy_commit.c holds this signal there. */
		prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
		copy_commit_all(&commit);
	}
	copy_book_done(&book); /* before the reply: the next commit may come at once */
	if (r == 0) {
		send_note(changes);
		emit = worker_reply(changes->worker, 3);
		put_list(&emit, "applied", &changes->copy, &changes->applied);
		put_list(&emit, "left", &changes->copy, &changes->left);
		put_atom(&emit, "truncated", changes->is_truncated ? "true" : "false");
		r = worker_send(changes->worker, &emit);
	}
	return r;
}

int stay_commit(struct worker *worker, const struct term *map, struct csn_error *err)
{
	struct changes changes;
	int r = open_changes(&changes, worker, map, err);

	if (r == 0)
		r = make_commit(&changes, map, err);
	close_changes(&changes);
	return r;
}
