/*
 * resolve - paths from callers, beneath a descriptor
 *
 * A relative path begins in the workspace and never leaves it, neither by ".." nor by a link: that
 * is EINVAL, with a sentence. An absolute path may name whatever lies inside the wall; its links
 * are followed from the root. Links of /proc that are none (exe, fd/3, root) lead nowhere: ELOOP.
 *
 * Commands may change every folder at every instant, so nothing is checked and then opened: the
 * kernel resolves beneath a descriptor (openat2), and where it cannot (gVisor's older versions,
 * Linux before 5.6) resolve_steps() does, one component at a time, none followed unseen. What is
 * done afterwards is done relative to the descriptor that came out.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

/* Opened once, before any command ran. */
struct roots {
	int top_fd;       /* "/" of the wall */
	int workspace_fd; /* or the negative errno of opening it */
	bool has_openat2;
};

/* The descriptors stay open for good. Never fails: a root that is not there fails who needs it. */
void roots_open(struct roots *roots, const char *workspace);

/* Is it the workspace or "/"? */
bool roots_has(const struct roots *roots, const struct stat *st);

/* open() with flags (no O_CREAT; O_CLOEXEC is added). 0, or -errno with a sentence. */
int resolve_open(const struct roots *roots, const char *path, int flags, int *ret_fd,
		 struct csn_error *err);

/* A name in a folder: what can be made, replaced, renamed and removed. */
struct entry {
	int dir_fd; /* owned; O_PATH */
	char name[NAME_MAX +
		  2]; /* with the "/" that the path ended with, for the kernel to judge */
};

/*
 * The last component of a path is not followed. -EBUSY if it is not the name of an entry ("/",
 * ".", "a/.."), else as resolve_open().
 */
int resolve_entry(const struct roots *roots, const char *path, struct entry *ret_entry,
		  struct csn_error *err);

/*
 * The entry of a file that will be replaced: links in the last place are followed, so that a link
 * stays a link, to a file that need not exist; missing folders are made (0755). -EISDIR for a path
 * that ends with "/".
 */
int resolve_target(const struct roots *roots, const char *path, struct entry *ret_entry,
		   struct csn_error *err);

/* Without openat2: descriptor or -errno; -EXDEV for a path that leaves the root where `is_beneath`.
 * Folders may be nested 128 deep: each holds a descriptor while we are beneath it. */
int resolve_steps(int root_fd, bool is_beneath, const char *path, int flags);

/* "cannot VERB PATH: REASON"; returns `code`, a negative errno. */
int resolve_fail(struct csn_error *err, int code, const char *verb, const char *path);
