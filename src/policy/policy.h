/*
 * policy - from YAML bytes, flags and facts to a decided plan, and why
 *
 * Pure: no I/O, no clock, no Linux. Whoever calls it reads the files, asks the machine
 * and hands over bytes and facts (one is a function that resolves paths); that makes every
 * decision a table test.
 *
 *   policy_parse()   bytes -> struct policy, or FILE:LINE:COLUMN: what, expected what
 *   policy_decide()  policy + request -> struct plan, or a refusal that names the YAML
 *                    lines which would permit it
 *   policy_explain() the same, told rule by rule
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "plan/plan.h"

enum {
	POLICY_MAX_BYTES = 1 << 20, /* a longer file is refused before parsing */
	POLICY_PATH_MAX = 4096,     /* of a host path, with its NUL */
};

/* Where a value stands in its file; 0:0 for a default. */
struct policy_mark {
	unsigned line;
	unsigned column;
};

struct policy; /* parsed file; opaque outside this room */

/*
 * Parses `size` bytes; `name` is used in messages. The result is owned by the caller
 * (policy_free). Refuses unknown and duplicate keys, wrong types, out-of-range values,
 * anchors, aliases, tags, several documents, NUL, invalid UTF-8, nesting deeper than 16.
 */
int policy_parse(const char *name, const void *bytes, size_t size, struct policy **ret_policy,
		 struct csn_error *err);
void policy_free(struct policy *policy);

/* Does the file itself set this key ("limits.idle")? false for NULL or an unknown key. */
bool policy_says(const struct policy *policy, const char *key);

/* What the caller asked for on the command line or through an API; NULL and 0 mean unsaid. */
struct policy_request {
	const char *tier;
	const char *backend;
	const char *backend_from;   /* what named it: a variable; NULL: --backend */
	const char *workspace;      /* host path; NULL: `project` */
	const char *workspace_mode; /* "ro" "rw" "cow" */
	const char *workspace_at;   /* path or "host" */
	const char *const *mounts;  /* "HOST:AT[:ro|rw]", NULL-terminated */
	const char *network;
	const char *const *allow;
	const char *const
		*limits; /* "KEY=VALUE", NULL-terminated; --timeout etc. are turned into these */
	const char *const *env;   /* "NAME" or "NAME=VALUE" */
	const char *const *gates; /* "NAME" or "NAME=SCHEMA": functions of who opens it; or NULL */
	const char *const *forwards; /* "unix:PATH:AT" …, NULL-terminated, or NULL */
	const char *const *tags;
	const char *const *argv; /* for strict_when */
	bool lends_itself; /* the caller sets the workspace after the decision: a job's folder */
	bool brings_wall;  /* the caller is the wall: without a file the built-in tier is auto */
	bool stays; /* a sandbox that outlives a command: built-in idle is 30 min, budget none */
};

enum policy_kind { POLICY_FOLDER, POLICY_FILE, POLICY_SPECIAL /* socket, device, pipe */ };

/* What a path of the host is, every symbolic link in it followed. */
struct policy_real {
	char path[POLICY_PATH_MAX];
	enum policy_kind kind;
};

/*
 * Facts about the machine and the caller that a decision needs; gathered by the CLI. Paths
 * are compared as text, so they must be real: those in the facts are, and every path that a
 * file or a flag would lend goes through `resolve`. Whoever mounts opens it again without
 * following a link.
 */
struct policy_facts {
	const char *cwd;         /* absolute, real path */
	const char *project;     /* absolute: where the workspace defaults to */
	const char *home;        /* absolute, or NULL */
	const char *run_root;    /* absolute */
	const char *policy_dir;  /* what the file's relative host paths are relative to */
	bool policy_is_trusted;  /* given by --policy, or its digest is trusted */
	bool policy_is_explicit; /* given by --policy */
	/* Asks the machine about an absolute path; 0 or -errno. NULL: every path is real. */
	int (*resolve)(const char *path, struct policy_real *ret_real);
	const char *place; /* absolute: of the sockets of sandboxes that stay, or NULL */
};

/*
 * Decides. `policy` may be NULL (no file: built-in defaults, flags grant). On refusal:
 * -EPERM with a sentence that ends with the YAML that would permit it; -EINVAL for a
 * request that makes no sense. The plan does not borrow from `policy` or `request`;
 * `policy_sha256` is left "" for the caller, who has the bytes and a hash.
 */
int policy_decide(const struct policy *policy, const struct policy_request *request,
		  const struct policy_facts *facts, struct plan *ret_plan, struct csn_error *err);

/* Explains a decided plan rule by rule, one line each: value, where it comes from. */
int policy_explain(const struct policy *policy, const struct plan *plan, struct buf *ret_text);

/*
 * What a parsed file says and a run does not do (plan_gap_next()), one line each:
 * "FILE:LINE:COLUMN: limits.idle; no effect on run: …". Nothing where all of it works.
 */
int policy_remarks(const struct policy *policy, struct buf *ret_text);

/* One more command for a running sandbox, or a path that it is to be lent. */
struct policy_call {
	const char *const *argv; /* NULL-terminated; a text for the shell is one word */
	const char *const *tags; /* NULL-terminated, may be NULL */
	const char *cwd;         /* inside, absolute */
};

/* Does no rule of strict_when match it, or is the sandbox strict? 0, or -EPERM with a sentence that
 * begins with StrictModeRequired; -E2BIG. */
int policy_may_call(const struct plan *plan, const struct policy_call *call, struct csn_error *err);

/*
 * May a running sandbox be lent this too? `mount` is as it is on the host, links followed, and
 * normalized inside; of the facts only `home`, `run_root` and `place` are asked. What the plan
 * hides or protects in its workspace is not lent by another way. Where the source lies in the
 * workspace, files that match what it hides are the caller's to look for. 0, or -EPERM, -EINVAL,
 * -EBUSY with a sentence.
 */
int policy_may_lend(const struct plan *plan, const struct policy_facts *facts,
		    const struct plan_mount *mount, struct csn_error *err);

/*
 * "HOST:AT[:ro|rw]" in its parts, which point into `text`; it is changed. HOST may hold colons, AT
 * begins at the last ":/". -EINVAL.
 */
int policy_split_mount(char *text, struct plan_mount *ret_mount);

/* The plan as a policy file that would produce it (`policy show --effective`). */
int policy_render(const struct plan *plan, struct buf *ret_yaml);

/* The commented file of `policy init`. */
const char *policy_template(void);

/* A file as it was read; nothing is owned. */
struct policy_file {
	const char *name; /* for messages */
	const void *bytes;
	size_t size;
};

/*
 * Rewrites the file's bytes with one scalar changed ("limits.command", "10m"), comments and layout
 * kept; the result is parsed before it is returned, so a wrong value changes nothing.
 */
int policy_set(const struct policy_file *file, const char *key, const char *value,
	       struct buf *ret_yaml, struct csn_error *err);
