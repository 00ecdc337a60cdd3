/*
 * copy - a copy-on-write workspace, opened for diff, commit and snapshot
 *
 *   <run>/cow/upper       what untrusted code left behind, and may be changing now (os/layer.h)
 *   <run>/cow/committed   what a commit wrote to the workspace (copy_book.h)
 *   the workspace         the caller's own
 *
 * All are held as descriptors, and every name in the layer is used beneath one of them only.
 *
 * Some names make other programs run something on the host: a git hook, an editor's task, a
 * shell's .envrc. What a sandbox wrote under such a name is code that would run outside the
 * wall, so it is applied only when a person names it.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "os/layer.h"

/* What is known of the run; all borrowed. Lists end with NULL, or are NULL. */
struct copy_facts {
	const char *run_id;
	const char *workspace;      /* absolute, on the host */
	const char *at;             /* where it is inside, for paths that are named so; NULL */
	const char *const *protect; /* of its policy: names below the workspace */
	const char *const *hide;    /* patterns */
	const char *policy_path;    /* of the file in force; NULL or "": none */
	int64_t started_ms;         /* wall clock; 0: unknown */
};

struct copy {
	struct copy_facts facts;
	const char *const *paths; /* named ones, relative to the workspace; borrowed, NULL: all */
	int cow_fd;               /* owned: <run>/cow */
	int upper_fd;             /* owned */
	int lower_fd;             /* owned: the workspace */
	struct layer layer;
};

#define COPY_NONE ((struct copy){ .cow_fd = -1, .upper_fd = -1, .lower_fd = -1 })
#define _cleanup_copy_ __attribute__((cleanup(copy_done)))

/* Opens the layer in a run's folder and lists it. -ENOENT for a run that kept none; on failure the
 * caller still has to call copy_done(). */
int copy_open(struct copy *copy, int run_fd, const struct copy_facts *facts, struct csn_error *err);
void copy_done(struct copy *copy);

/*
 * Is the entry among the paths that were named? Without any, all are. An added folder above a
 * named path counts: it has to be made first.
 */
bool copy_is_named(const struct copy *copy, const struct layer_entry *entry);

/* Was this very path named, and not one above it? */
bool copy_is_named_itself(const struct copy *copy, const struct layer_entry *entry);

/* Why the entry is left out of a commit; NULL: no reason, or it was named itself. */
const char *copy_objection(const struct copy *copy, const struct layer_entry *entry);

/* The same, whatever was named. */
const char *copy_guard(const struct copy *copy, const struct layer_entry *entry);

/* Why a path beneath a folder that is copied out as a whole is left out: at any depth what commit
 * leaves out by its name, and policy files. Git's own data is let through. NULL: no reason. */
const char *copy_guard_name(const char *path, bool is_folder);

/* Is it a policy file, by its name or because it is the one in force? Those are never written. */
bool copy_is_policy(const struct copy *copy, const char *path);

/* Does a link in the layer point out of the workspace? Also, as far as its text can tell, through
 * another link: "a/.." counts. */
bool copy_link_leaves(const char *path, const char *target);

/* The target of a link in the layer, NUL-terminated. 0 or -errno. */
int copy_read_target(const struct copy *copy, const struct layer_entry *entry,
		     char ret_target[PATH_MAX]);

/* The path as text that is safe to print: escaped, a folder with '/'; owned by the caller, NULL
 * when out of memory. */
char *copy_path_text(const struct layer_entry *entry);

/* Of what is there now, or was when it is deleted. */
mode_t copy_mode(const struct layer_entry *entry);

/* "added" "modified" "deleted"; "file" "folder" "link" "other"; 'A' 'M' 'D'. */
const char *copy_change_name(const struct layer_entry *entry);
const char *copy_kind_name(const struct layer_entry *entry);
char copy_change_letter(const struct layer_entry *entry);
