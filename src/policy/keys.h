/*
 * keys - the table of everything a policy file may say
 *
 * One row per key: its path, the kind of its value, its range, where it goes in a plan and
 * in which direction it gives more. Parsing, deciding, explaining, rendering, editing and
 * the reference in docs/policy.md all walk this table, so a key exists in all or in none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "plan/plan.h"

enum key_id {
	KEY_VERSION,
	KEY_TIER,
	KEY_APPROVAL,
	KEY_BACKEND,
	KEY_WORKSPACE_PATH,
	KEY_WORKSPACE_AT,
	KEY_WORKSPACE_MODE,
	KEY_WORKSPACE_HIDE,
	KEY_WORKSPACE_PROTECT,
	KEY_MOUNTS,
	KEY_MOUNT_ROOTS,
	KEY_SCRATCH_AT,
	KEY_SCRATCH_SIZE,
	KEY_NETWORK_MODE,
	KEY_NETWORK_ALLOW,
	KEY_LIMITS_COMMAND,
	KEY_LIMITS_BUDGET,
	KEY_LIMITS_STARTUP,
	KEY_LIMITS_IDLE,
	KEY_LIMITS_CPUS,
	KEY_LIMITS_MEMORY,
	KEY_LIMITS_PROCESSES,
	KEY_LIMITS_OUTPUT,
	KEY_LIMITS_OPEN_FILES,
	KEY_LIMITS_MODE,
	KEY_ENV_PASS,
	KEY_ENV_SET,
	KEY_ENV_GIT_IDENTITY,
	KEY_TOOLCHAINS,
	KEY_OBSERVE,
	KEY_ON_VIOLATION,
	KEY_STRICT_WHEN,
	KEY_CONTAINER_IMAGE,
	KEY_CONTAINER_ROOTLESS,
	KEY_COMMAND_ARGV,
	KEY_COMMAND_ENFORCES,
	KEY_COMMAND_OBSERVES,
	KEY_OVERRIDES_PER_REQUEST,
	KEY_GATES,
	KEY_FORWARDS,
	KEY_COUNT
};

enum key_kind {
	KIND_VERSION,
	KIND_TIER,
	KIND_CHOICE, /* one of `choices`; a number or a bool in the plan */
	KIND_BOOL,
	KIND_TIME, /* milliseconds or none */
	KIND_SIZE, /* bytes or none */
	KIND_COUNT,
	KIND_CPUS, /* thousandths */
	KIND_TEXT,
	KIND_LIST, /* of texts, or of `choices` */
	KIND_ENV,
	KIND_MOUNTS,
	KIND_RULES,
	KIND_GATES,
	KIND_COUNT_
};

/* Which change of a key's value gives the code inside more than before? */
enum key_wider {
	WIDER_NEVER,
	WIDER_MORE,    /* a greater number, a later choice, true */
	WIDER_LESS,    /* an earlier choice, false: demands */
	WIDER_CHANGED, /* any other value */
	WIDER_ADDED,   /* a list with something that was not there */
	WIDER_REMOVED, /* a list without something that was there */
	WIDER_ACCESS,  /* rw where it was ro or cow */
	WIDER_IDLE,    /* a later time, where 0 is off, that is never */
	WIDER_OUTSIDE, /* a path not beneath the one before */
	WIDER_BACKEND, /* a wall that `any` would never take */
	WIDER_MOUNTS,
	WIDER_GATES,
	WIDER_COUNT
};

struct key {
	const char *path;
	const char *expected; /* for messages: "a time like 45s or none" */
	const char *meaning;  /* for the reference */
	enum key_kind kind;
	enum key_wider wider;
	bool may_repeat; /* a list in which the same text may stand twice */
	bool is_grant;   /* a caller's to lend; else a bound, which only a file loosens */
	size_t offset;   /* in struct plan */
	size_t width;    /* of that member; 0: not in the plan */
	uint64_t min, max;
	const char *const *choices;         /* NULL-terminated */
	bool (*is_valid)(const char *text); /* for texts and items of lists */
};

extern const struct key policy_keys[KEY_COUNT];

/* The row of a path such as "limits.command", or KEY_COUNT. */
enum key_id key_find(const char *path);

/* Length of the section in the path ("limits" of "limits.command"), 0 without one. */
size_t key_section(const struct key *key);

/* A member of a plan by its row: numbers, choices and bools widened to 64 bits. */
uint64_t key_number(const struct key *key, const struct plan *plan);
void key_store(const struct key *key, struct plan *plan, uint64_t number);
const char **key_list(const struct key *key, const struct plan *plan);
const char *key_text(const struct key *key, const struct plan *plan);

/* Does `now` give more than `base` does in this key? */
bool key_is_wider(const struct key *key, const struct plan *now, const struct plan *base);

enum key_how {
	SHOW_VALUES, /* everything, as the file would say it */
	SHOW_NAMES,  /* values of environment variables left out: for logs and messages */
};

/*
 * Appends a plan's value of a key as one YAML flow value. 0, -EILSEQ for a text that YAML
 * cannot hold (not UTF-8), -E2BIG or -ENOMEM from the buf.
 */
int key_show(const struct key *key, const struct plan *plan, enum key_how how, struct buf *buf);

/* Appends a text as a YAML scalar, quoted where it must be. As key_show(). */
int key_show_text(const char *text, struct buf *buf);

/* What texts may be; each says true for a text that is fine. */
bool text_is_path(const char *text);
bool text_is_inside(const char *text); /* absolute inside, nothing that the wall needs; or "host" */
bool text_is_pattern(const char *text);
bool text_is_relative(const char *text);
bool text_is_name(const char *text);    /* of an environment variable or a gate */
bool text_is_host(const char *text);    /* HOST[:PORT] */
bool text_is_forward(const char *text); /* FROM:AT, as plan_forward_read() takes it */
bool text_is_image(const char *text);
bool text_is_feature(const char *text);     /* that a wall of one's own may declare to enforce */
bool text_is_observation(const char *text); /* an event that it may declare to observe */
bool text_is_word(const char *text);        /* not empty, no control characters, bounded */
