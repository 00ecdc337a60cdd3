/*
 * plan - what was decided, in a form that walls can carry out
 *
 * The contract between policy and walls. Policy code fills a plan from YAML, flags and
 * defaults without touching the operating system; a backend reads it and builds the
 * wall; the monitor starts nothing whose backend does not enforce every bit of
 * `required`. A plan owns its strings through its arena and does not change once decided.
 *
 * Units: milliseconds, bytes, thousandths of a CPU. PLAN_UNLIMITED means "no limit".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define PLAN_UNLIMITED UINT64_MAX

/* Where what is lent to a running sandbox may appear although nothing was there; in the second
 * folder it may be writable. Only where the plan has mount_roots: plan_lends_late(). */
#define PLAN_LATE "/mnt"
#define PLAN_LATE_RW "/mnt/rw"

/* In order: a later tier is a stronger wall. A tier in a policy is a minimum. */
enum plan_tier {
	TIER_LOCAL,
	TIER_VIRTUAL,
	TIER_AUTO,
	TIER_BALANCED,
	TIER_ASSISTED,
	TIER_STRICT,
	TIER_COUNT
};

#define PLAN_POLICY_NAME "caisson.yaml" /* what a search for a policy file looks for */

enum plan_access { ACCESS_RO, ACCESS_RW, ACCESS_COW };
enum plan_network { NETWORK_NONE, NETWORK_LOOPBACK, NETWORK_ALLOW, NETWORK_ENGINE };
enum plan_mode { LIMITS_BEST, LIMITS_HARD };
enum plan_reaction { REACT_RECORD, REACT_KILL };
enum plan_tty { TTY_AUTO, TTY_ALWAYS, TTY_NEVER };

/* What a backend can enforce. Names for JSON and messages: plan_feature_name(). */
enum plan_feature {
	FEATURE_FS_VIEW = 1 << 0,      /* only what the plan mounts is visible */
	FEATURE_FS_WRITE = 1 << 1,     /* writes only where the plan permits */
	FEATURE_FS_HIDE = 1 << 2,      /* hidden files in the workspace */
	FEATURE_FS_PROTECT = 1 << 3,   /* protected names in a writable workspace */
	FEATURE_FS_COW = 1 << 4,       /* copy-on-write workspace */
	FEATURE_NET_NONE = 1 << 5,     /* no network at all */
	FEATURE_NET_LOOPBACK = 1 << 6, /* a loopback of its own, nothing else */
	FEATURE_PIDS = 1 << 7,         /* other processes invisible and out of reach */
	FEATURE_SYSCALLS = 1 << 8,     /* the syscall allow-list */
	FEATURE_PRIVILEGE = 1 << 9,    /* no capability, no new privileges */
	FEATURE_IDENTITY = 1 << 10,    /* kernel uid is not 0 */
	FEATURE_TIME = 1 << 11,        /* command and budget clocks */
	FEATURE_OUTPUT = 1 << 12,      /* the output cap */
	FEATURE_MEMORY = 1 << 13,      /* memory of the whole tree, by a controller */
	FEATURE_PROCESSES = 1 << 14,   /* number of processes */
	FEATURE_CPU = 1 << 15,         /* CPU bandwidth, by a controller */
	FEATURE_SCRATCH = 1 << 16,     /* size of the scratch space */
	FEATURE_COUNT = 17
};

struct plan_limits {
	uint64_t command_ms;
	uint64_t budget_ms;
	uint64_t startup_ms;
	uint64_t idle_ms; /* 0: off */
	uint64_t cpu_milli;
	uint64_t mem_bytes;
	uint64_t processes;
	uint64_t output_bytes;
	uint64_t open_files;
	uint64_t scratch_bytes;
};

struct plan_mount {
	const char *host; /* absolute on the host */
	const char *at;   /* absolute, normalized, inside */
	enum plan_access access;
};

/* Something that code may ask the host for by its name (docs/gates.md). */
struct plan_gate {
	const char *name;
	const char *schema;  /* of the arguments, the text of a JSON object; NULL: any object */
	const char **argv;   /* the host's program, absolute, NULL-terminated; NULL: a function of
			      * whoever opened the sandbox */
	uint64_t timeout_ms; /* of one call */
	uint64_t rate;       /* calls a minute */
	bool is_ephemeral;   /* arguments are not recorded */
	bool is_answered;    /* without argv: whoever opens the sandbox has that function */
};

enum { PLAN_GATE_RATE = 600, PLAN_GATE_MS = 30000, PLAN_GATES = 64 };

enum {
	PLAN_FORWARDS = 16,
	PLAN_FORWARD_HOST = 4096, /* with its NUL */
	PLAN_FORWARD_AT = 108,    /* a path of a socket, with its NUL: sun_path */
};

/* One endpoint of the host's that code inside may reach, and where it finds it. */
struct plan_forward {
	char host[PLAN_FORWARD_HOST]; /* a socket's path; "" for a port of 127.0.0.1 */
	uint16_t host_port;
	char at[PLAN_FORWARD_AT]; /* absolute, inside; "" for a port of the loopback there */
	uint16_t at_port;
};

struct plan_workspace {
	const char *host; /* absolute; NULL: no workspace */
	const char *at;   /* absolute inside, "/workspace" unless the caller chose */
	enum plan_access access;
	const char **hide;    /* patterns as for str_path_matches(), NULL-terminated */
	const char **protect; /* paths relative to the workspace, NULL-terminated */
};

/* Something that differs from the defaults, and who said so: for the audit log and `explain`. */
struct plan_note {
	const char *what;  /* "limits.command" */
	const char *old;   /* the value before, as text; "" if there was none */
	const char *now;   /* the value after */
	const char *where; /* "caisson.yaml:12:3", "--timeout", "built-in" */
	bool loosens;      /* PolicyOverride, not merely a narrowing or a grant */
};

/* A rule of `strict_when`, for what a running sandbox is asked for. */
struct plan_rule {
	const char *kind; /* "tag", "command" or "path" */
	const char *pattern;
	const char *where; /* "caisson.yaml:12:3" */
};

struct plan {
	struct arena arena;
	enum plan_tier tier; /* the least that will do */
	const char *backend; /* "any" or one name from the table of walls */
	uint64_t required;   /* enum plan_feature bits a backend must enforce */
	bool needs_approval;
	bool strict_by_request; /* strict because a request asked: StrictModeUnavailable */
	bool strict_by_policy;  /* strict because file or strict_when did: StrictModeRequired */
	bool local_is_trusted;  /* a trusted policy file names tier local */
	struct plan_workspace workspace;
	struct plan_mount *mounts;
	size_t mount_count;
	const char **mount_roots; /* NULL-terminated, absolute */
	const char *scratch_at;
	enum plan_network network;
	const char **allow; /* NULL-terminated HOST[:PORT] */
	struct plan_limits limits;
	enum plan_mode limits_mode;
	const char **env_pass; /* names, NULL-terminated */
	const char **env_set;  /* "NAME=VALUE", NULL-terminated */
	bool env_any;          /* a call may set any other: overrides.per_request */
	bool git_identity;
	bool toolchains_auto;
	bool observe_reads;
	enum plan_reaction on_violation;
	const char **command_argv;     /* the `command` wall's program; empty: none */
	const char **command_enforces; /* names of features, as its author declares them; for a wall
					* of the caller's own, as the caller does */
	const char **command_observes; /* names of events, the same */
	const char *image;             /* NULL: none */
	bool rootless_required;        /* `container.rootless: required` */
	struct plan_gate *gates;
	size_t gate_count;
	const char **forwards;         /* NULL-terminated, as plan_forward_read() takes them */
	struct plan_rule *strict_when; /* no call may match one; empty where the tier is strict */
	size_t strict_count;
	const char *policy_path; /* the file in force; NULL: built-in defaults */
	char policy_sha256[65];  /* of that file's bytes; "" without one */
	bool policy_is_trusted;
	const char *policy_commit; /* 40 hex of its repository's HEAD; NULL: none, or unknown */
	int policy_is_modified;    /* 1 or 0 against that repository's index; -1: unknown */
	struct plan_note *notes;
	size_t note_count;
};

/*
 * An empty plan with the built-in defaults of `tier` (CONTRACTS: table in section 3). Lists
 * are empty, never NULL. 0 or -ENOMEM; on failure there is nothing to free.
 */
int plan_init(struct plan *plan, enum plan_tier tier);
void plan_done(struct plan *plan);

/* Built-in limits of a tier. */
struct plan_limits plan_default_limits(enum plan_tier tier);

/* Adds a note; its texts are copied. 0 or -ENOMEM. */
int plan_note(struct plan *plan, const struct plan_note *note);

/* May more be lent while the sandbox runs, and does nothing of the plan lie over PLAN_LATE_RW? */
bool plan_lends_late(const struct plan *plan);

/* Sets `required` from everything else in the plan. */
void plan_require(struct plan *plan);

/*
 * Is every permission of `child` one that `parent` gives too? Limits by minimum, mounts,
 * gates and network by inclusion, demands by OR. 0, or -EPERM with a sentence naming the
 * first field that is wider.
 */
int plan_within(const struct plan *child, const struct plan *parent, struct csn_error *err);

/*
 * Lowers each of the child's limits to the parent's where that is less: those that nobody asked
 * for, since a stronger tier has defaults of its own, and they would make it wider than a weaker
 * one. One in `named` ("KEY=VALUE", NULL-terminated, or NULL) stays: plan_within() refuses it.
 */
void plan_lower(struct plan *child, const struct plan *parent, const char *const *named);

/*
 * What a hide pattern or protected name of a workspace means when only the folder `tail`
 * beneath it (plan_tail form, no leading '/') becomes the workspace: without this,
 * narrowing a workspace to `.git` would unprotect `.git/hooks`. Sets *ret_pattern, either
 * `pattern` itself or a part of it. -EPERM if `tail` lies inside what the pattern names, or
 * if the pattern cannot be narrowed as text (a wildcard before the last slash).
 */
int plan_rebase(const char *pattern, const char *tail, const char **ret_pattern);

/* A setting that `caisson run` does not carry out. */
struct plan_gap {
	const char *key; /* "limits.idle" */
	const char *why; /* a clause for people */
	bool is_refused; /* the run is refused for it; else it goes on as if it were not there */
	bool (*is_set)(const struct plan *plan);
};

/*
 * The settings of this plan that a run of one command does not carry out, one at each call:
 * *at is 0 at first. NULL: no more.
 */
const struct plan_gap *plan_gap_next(const struct plan *plan, size_t *at);

/* The gate of that name, NULL: none. */
const struct plan_gate *plan_gate_find(const struct plan *plan, const char *name);
/* Does one give exactly what the other gives? */
bool plan_gate_is_same(const struct plan_gate *a, const struct plan_gate *b);

/* "unix:PATH:AT" or "tcp:127.0.0.1:PORT:AT" in its parts; AT begins at the last ':' and is an
 * absolute path or a port. -EINVAL. Asks the machine nothing. */
int plan_forward_read(const char *text, struct plan_forward *ret_forward);

/* Does one of the forwards stand on a port of the loopback inside, so that commands have to connect
 * to that? */
bool plan_forwards_ports(const struct plan *plan);

/* Is `text` in the NULL-terminated list? */
bool plan_has(const char *const *list, const char *text);

/* Names as in policy files and JSON. The parsers return -EINVAL for an unknown name. */
const char *plan_tier_name(enum plan_tier tier);
const char *plan_access_name(enum plan_access access);
const char *plan_network_name(enum plan_network network);
const char *plan_mode_name(enum plan_mode mode);
const char *plan_reaction_name(enum plan_reaction reaction);
const char *plan_feature_name(unsigned bit); /* by bit number, 0 .. FEATURE_COUNT - 1 */

/* The bits of a NULL-terminated list of such names; an unknown one has none. */
uint64_t plan_features(const char *const *names);
/*
 * Case-insensitive, with the aliases Auto, Assisted, HumanApprove or human-approve (assisted)
 * and ManualOnly or manual-only (strict); *ret_approval (may be NULL) says whether the name asks
 * for approval: the last four.
 */
int plan_tier_parse(const char *name, enum plan_tier *ret_tier, bool *ret_approval);
int plan_access_parse(const char *name, enum plan_access *ret_access);
int plan_network_parse(const char *name, enum plan_network *ret_network);
