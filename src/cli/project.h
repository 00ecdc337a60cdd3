/*
 * project - where the caller stands: project folder, home, run root, policy file
 *
 * The only code that asks the environment and the file system on behalf of the policy room,
 * which is pure. What is found by search belongs to the caller or to root, or it is refused:
 * a stranger's /tmp/caisson.yaml or /tmp/.git must not decide anything.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/policy_git.h"
#include "plan/plan.h"
#include "policy/policy.h"

#define POLICY_FILE_NAME PLAN_POLICY_NAME

/* Absolute, real paths; of the run root and the place of sockets, as much as exists. */
struct project {
	char cwd[PATH_MAX];
	char folder[PATH_MAX]; /* nearest parent with .git or caisson.yaml below home, else cwd */
	char home[PATH_MAX];   /* "" if there is none */
	char run_root[PATH_MAX];
	char place[PATH_MAX]; /* of the sockets of sandboxes that stay: base/place.h */
};

/* Fills all of them; `run_dir` is --run-dir or NULL. */
int project_find(const char *run_dir, struct project *ret_project, struct csn_error *err);

/* --run-dir, or $XDG_STATE_HOME/caisson/runs, or ~/.local/state/caisson/runs. */
int project_run_root(const char *run_dir, char *ret_path, size_t size, struct csn_error *err);

/* $NAME/caisson, or ~/`fallback`/caisson when NAME is unset or relative (XDG's rule). */
int project_xdg(const char *name, const char *fallback, char *ret_path, size_t size,
		struct csn_error *err);

/*
 * The policy file here or above: its absolute path, "" when there is none. Neither home nor /
 * is looked at unless the caller stands there.
 */
int policy_file_find(const struct project *project, char *ret_path, size_t size);

/*
 * Reads a policy file into `ret_bytes` (initialised by the caller with room for
 * POLICY_MAX_BYTES) and writes its SHA-256 in hex to `ret_sha256`. Never blocks. Refuses what is
 * no regular file, unreadable or too long, and, if it was `found` by search, a symbolic link
 * and a file that another user owns or may write.
 */
int policy_file_read(const char *path, bool found, struct buf *ret_bytes, char ret_sha256[65],
		     struct csn_error *err);

/*
 * Writes a policy file in one step (temporary and rename), keeping an existing file's mode, else
 * 0644 under the umask. With `is_new`, -EEXIST if there is one.
 */
int policy_file_write(const char *path, bool is_new, const void *data, size_t size,
		      struct csn_error *err);

/* ---- the policy in force ----------------------------------------------------------- */

struct cli_policy {
	struct policy *policy; /* owned; NULL: no file, built-in defaults */
	char path[PATH_MAX];   /* "" without a file */
	char sha256[65];       /* "" without a file */
	struct policy_git git; /* what its repository says of it */
	bool is_explicit;      /* --policy */
	bool is_trusted;       /* --policy, or its path and digest are trusted */
	struct project project;
	char folder[PATH_MAX];     /* what the file's relative paths are relative to */
	struct policy_facts facts; /* points into this struct: do not copy it */
};

/*
 * Finds, reads and parses the policy that holds for `options` here. On success the caller
 * ends it with cli_policy_done(); on failure there is nothing to end.
 */
int cli_load_policy(const struct cli_options *options, struct cli_policy *ret_policy,
		    struct csn_error *err);
void cli_policy_done(struct cli_policy *policy);

/*
 * Keeps `plan` no wider than the policy file of --within, which nobody asks to trust, under the
 * facts of `policy`: limits that no flag named are lowered, anything else that is wider is refused.
 * 0, or -EPERM with what is wider.
 */
int cli_keep_within(const struct cli_options *options, const struct cli_policy *policy,
		    struct plan *plan, struct csn_error *err);

/*
 * Decides: options and argv (NULL-terminated, for strict_when; may be NULL) under `policy`.
 * Fills what the plan says of the policy file too. The plan is the
 * caller's (plan_done) only on success, and borrows nothing.
 */
int cli_decide(const struct cli_options *options, const struct cli_policy *policy,
	       char *const *argv, struct plan *ret_plan, struct csn_error *err);
