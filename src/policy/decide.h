/*
 * decide - the state of one decision, shared by the files that make it
 *
 * A decision builds one plan: built-in defaults, then the file, then the flags, then the
 * checks that need all of it. Every step either changes the plan and notes who did it, or
 * refuses with a sentence.
 */
#pragma once

#include "policy/file.h"

struct decision {
	const struct policy *policy; /* NULL: no file */
	const struct policy_request *request;
	const struct policy_facts *facts;
	struct csn_error *err;
	struct plan *plan;
	struct plan built_in;           /* before the file; borrows the plan's texts */
	struct plan granted;            /* before the flags; the same */
	bool is_trusted;                /* may the file loosen? */
	bool flags_may_loosen;          /* a trusted file says overrides.per_request */
	const char *by_flag[KEY_COUNT]; /* the flag that changed a key, or NULL */
};

/* "FILE:LINE:COLUMN" in the plan's arena, NULL when out of memory. */
const char *decide_place(struct decision *d, struct policy_mark mark);

/* Says that memory ran out; -ENOMEM. */
int decide_no_memory(struct decision *d);

/*
 * Puts a value into the plan; paths are relative to `folder`. The plan's texts are copies.
 * `where` says who asked, for messages. -EPERM for a host path that is never lent.
 */
int decide_store(struct decision *d, enum key_id id, const struct policy_value *value,
		 const char *folder, const char *where);

/* Notes a key that differs between `before` and the plan; nothing if it does not. */
int decide_note(struct decision *d, enum key_id id, const struct plan *before, const char *where,
		bool loosens);

/* Notes another tier; it loosens if it is lower. -ENOMEM, also for a NULL `where`. */
int decide_note_tier(struct decision *d, enum plan_tier old, enum plan_tier now, const char *where);

/* Is the command's clock longer than the budget, and no budget in the file that says so? */
bool decide_budget_follows(const struct decision *d);

/* A key's value for a message, in the plan's arena; never NULL. */
const char *decide_shown(struct decision *d, enum key_id id, const struct plan *plan);

/* Applies every flag and checks it against `granted` (flags.c). */
int decide_flags(struct decision *d);

/* The tier of file and flag, before strict_when (flags.c). */
int decide_tier(struct decision *d, enum plan_tier *ret_tier);

/* The rule of strict_when that matches the request, or NULL; -E2BIG, -ENOMEM (when.c). */
int decide_strict_rule(struct decision *d, const struct policy_item **ret_rule);

/* Puts the rules into a plan that is not strict, for what the sandbox is asked for later (when.c).
 */
int decide_keep_rules(struct decision *d);

enum { COMMAND_TEXT = 160, WAY_TEXT = 352, WAY_NAME = 121 };

/*
 * Which command permits the wanted keys as the plan has them, and which file their lines go into:
 * one that was found is trusted as it was, and a changed one has to be trusted again (advise.c).
 * Without the command where it is longer than COMMAND_TEXT or the value is none for `policy set`.
 */
const char *decide_way(const struct decision *d, const bool wanted[KEY_COUNT],
		       char ret_text[WAY_TEXT]);

enum decide_want { WANT_FOLDER, WANT_MOUNTABLE, WANT_ROOT, WANT_SOCKET };

/*
 * Puts in `path` what it is on the host, links followed, if it is what we want: a folder, a folder
 * or file, or a root of mounts, which may be missing. -EPERM for what is never lent, -EINVAL or the
 * resolver's error for what is not there (paths.c).
 */
int decide_real(struct decision *d, enum decide_want want, const char *where,
		char path[POLICY_PATH_MAX]);

/* Puts the gates into the plan (gates.c). */
int decide_gates(struct decision *d, const struct policy_value *value, const char *folder,
		 const char *where);

/*
 * Puts in `ret_text` what `text`, a forward, names: its path real, its place normalized. -EPERM for
 * what is never forwarded to, or what is not there (forwards.c).
 */
int decide_forward(struct decision *d, const char *text, const char *folder, const char *where,
		   const char **ret_text);

/* Adds those of the flags; check_flags() judges (forwards.c). */
int decide_take_forwards(struct decision *d);

/* Does each have a place of its own, and are they not too many? (forwards.c) */
int decide_forwards_fit(struct decision *d);

/* Why nobody inside is lent the socket at this real path; NULL if he may be (paths.c). */
const char *decide_socket_flaw(const struct policy_facts *facts, const char *path);

/* Adds the functions of who opens the sandbox: a file in force has to name them (gates.c). */
int decide_functions(struct decision *d);

/* Could code inside replace what one of its gates executes? -EPERM with a sentence (gates.c). */
int decide_gates_safe(struct decision *d);

/* Adds a mount to the plan after checking its host path (paths.c). */
int decide_add_mount(struct decision *d, const struct plan_mount *mount, const char *where);

/* Why the real path `mount->host` is never lent as a mount; NULL if it may be (paths.c). */
const char *decide_mount_flaw(const struct policy_facts *facts, const struct plan_mount *mount);

/* Appends a text to a list of the plan (paths.c). */
int decide_add_text(struct decision *d, const char ***list, const char *text);

/* Checks that need the whole plan: the workspace, and places that collide (paths.c). */
int decide_places(struct decision *d);
