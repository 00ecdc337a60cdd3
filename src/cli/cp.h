/*
 * cp - files between the host and a sandbox that stays, and how neither is taken in
 *
 * What comes out is hostile: names, links, types and modes are whatever the code inside wants, and
 * where the workspace may be written, so is what stands on the host beneath it. So on the host
 * nothing is reached but through descriptors: no symbolic link is followed, neither in the path
 * that was typed nor beneath it, a name is one component, a file is complete before it has its
 * name, and no mode has more than permissions. What other programs would run (monitor/copy.h) comes
 * only when it is named itself. tests/cli/test_cp.py
 *
 * Contents stream: memory is bounded by one piece of 64 KiB and one list of names for each folder
 * above, at most CP_DEPTH of them. Permissions that come out are cut by the umask.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "caisson.h"

enum { CP_PATH = 4096, CP_DEPTH = 100 };

/* One copy: where it is, on both sides, and whether something was left out. */
struct cp {
	csn_sandbox *sandbox; /* borrowed */
	const char *name;     /* of the sandbox, for what is said */
	char inside[CP_PATH]; /* the path there */
	char host[CP_PATH];   /* here; only said, never opened */
	size_t named;         /* length of the path inside that was typed */
	unsigned depth;
	struct buf left;               /* what would run here and was left out, as it is printed */
	size_t left_count, left_named; /* how many, and how many of them stand there */
	bool has_failed;               /* something is not as it should be; it was said */
	bool is_lost;                  /* the sandbox is gone: nothing more is tried */
};

/* Both paths with one name more; false: they get too long, which was said. cp_leave() goes back to
 * the lengths before. */
struct cp_level {
	size_t inside, host;
};
bool cp_enter(struct cp *cp, const char *name, struct cp_level *ret_level);
void cp_leave(struct cp *cp, const struct cp_level *level);

/* Says what is wrong with the path inside, or with the one here; the copy goes on. */
__attribute__((format(printf, 2, 3))) void cp_say_inside(struct cp *cp, const char *format, ...);
__attribute__((format(printf, 2, 3))) void cp_say_host(struct cp *cp, const char *format, ...);

/* Notes that the path inside was left out; it is said at the end, with the others. */
void cp_leave_out(struct cp *cp);

/* Says what a call answered about the path inside. */
void cp_say_error(struct cp *cp, const csn_error *err);

/*
 * The folder that a path of the host's ends in, as a descriptor (O_PATH, the caller closes it), and
 * its last name, "." for a folder that has none (`/`, `..`). -1: a link is in the way, or nothing
 * is there; it was said.
 */
int cp_host_folder(struct cp *cp, const char *path, char *ret_name, size_t size);

/* The last name of a path inside; "." where it has none. */
void cp_last_name(const char *path, char *ret_name, size_t size);

/* What stands at the path inside. NULL: nothing, with `err`. For csn_free(). */
csn_stat_result *cp_stat(struct cp *cp, csn_error *err);

/* From the sandbox to `host`, and the other way; the rest is in `cp`. */
void cp_out(struct cp *cp, const char *host);
void cp_in(struct cp *cp, const char *host);
