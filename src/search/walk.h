/*
 * walk - the paths of a tree that a pattern means, in order, one at a time
 *
 * The order is that of the whole paths as bytes, as `LC_ALL=C sort` has it, so the first N of a
 * walk are the smallest N and a caller may stop whenever it has enough. (A folder is reached twice:
 * as "a", and with what is in it as "a/"; "a-b" lies between the two.) Only names that can lead
 * to a match are kept, those of one folder a level; WALK_NAMES bounds them altogether.
 *
 * Nothing is followed: a link is a name like others, so there are no loops, and a folder that is
 * replaced by a link meanwhile is not entered. Folders of the kernel's own file systems (/proc,
 * /sys) are not entered either: they are endless, and reading there can have effects. What
 * cannot be read, or has a path longer than WALK_PATH, is counted in `skipped`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "search/glob.h"
#include "search/refuse.h"

enum {
	WALK_PATH = 4095,       /* bytes of a path: what a frame carries */
	WALK_LEVELS = 2048,     /* a path of WALK_PATH bytes has no more */
	WALK_HELD = 64,         /* levels whose descriptors stay open */
	WALK_NAMES = 128 << 20, /* bytes of names and what is known of them, of all levels */
	WALK_READ = 64 << 10,   /* bytes that one system call lists */
};

struct level;

struct walk_plan {
	const struct glob *glob;
	const char *prefix; /* the folder, as the patterns see it: "", "src/" */
	int top_fd;
	bool files_only;
};

struct walk {
	const struct walk_plan *plan; /* borrowed */
	struct level *levels;         /* owned, WALK_LEVELS */
	size_t depth;                 /* of levels in use */
	size_t names_bytes;           /* used of WALK_NAMES */
	uint64_t skipped;
	struct refusal *refusal;
	char path[WALK_PATH + 1]; /* of the entry, relative to the top */
	char *list;               /* owned, WALK_READ */
};

struct walk_entry {
	const char *path; /* good until the next call */
	size_t size;
	const char *name; /* its last part */
	int folder_fd;    /* of the folder it is in */
};

/* Begins at a folder; borrows what the plan points to. 0, or -1 and a reason. */
int walk_init(struct walk *walk, const struct walk_plan *plan, struct refusal *refusal);
void walk_done(struct walk *walk);

/* 1 and the next entry; 0: there is none; -1 and a reason: too many names in one folder. */
int walk_next(struct walk *walk, struct walk_entry *ret_entry);
