/*
 * http_box - the sandboxes that a server knows, by their names
 *
 * Those that were made here are ours: they end with their box. Those of `caisson up` are joined
 * when somebody names them, and left as they are. A box is held (box_find) by each call that uses
 * it; one that ended, or was ended, leaves the list at once and is freed by its last holder.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/place.h"
#include "caisson.h"
#include "serve/http_token.h"

enum { BOX_LIST_MAX = 64 };

/* What each sandbox is made from: the server's own flags. Borrowed texts. */
struct box_base {
	const char *program; /* the command `caisson` */
	const char *within;  /* the policy that nobody may exceed, a path */
	const char *policy, *tier, *backend, *workspace, *mode, *at, *network, *run_dir;
	const char *const *allow, *const *mounts, *const *limits, *const *env, *const *tags;
	bool no_record;
};

/* What somebody asks for, beside or instead of that; NULL: nothing. */
struct box_wish {
	const char *name;
	const char *tier, *backend, *workspace, *mode, *network;
	const char *const *mounts; /* beside the server's */
	const char *const *limits; /* "KEY=VALUE", each instead of the server's */
	const char *const *tags;   /* beside the server's */
};

/* A call that runs in one; on its caller's stack. */
struct box_call {
	struct box_call *next;
	uint64_t id;
	bool is_over;
	void (*on_end)(
		void *data); /* the sandbox is ended: let go of it; under the lock. Or NULL */
	void *data;
};

struct box {
	struct box *next;
	char name[PLACE_NAME_MAX + 1];
	csn_sandbox *sandbox;
	bool is_ours;
	bool is_listed;
	unsigned holders;
	unsigned enders; /* of them, those that wait for the others */
	struct box_call *calls;
	struct token *owner; /* of one of ours */
	int64_t made_ms;     /* since 1970, UTC */
};

/* A sandbox that a fork made: nobody's, and counted for who asked for it while it lives. */
struct forked {
	struct forked *next;
	struct token *owner;
	char name[PLACE_NAME_MAX + 1];
};

struct boxes {
	pthread_mutex_t lock;
	pthread_cond_t freed;
	struct box *first;
	struct forked *forked;
	unsigned opening; /* that are being made */
	struct tokens *tokens;
	const struct box_base *base;
	uint64_t most; /* of a token */
};

/* Without any; all is borrowed. `most`: of a token. */
void boxes_init(struct boxes *boxes, struct tokens *tokens, const struct box_base *base,
		uint64_t most);
/* Ends all that are ours; no call may be left. */
void boxes_done(struct boxes *boxes);

/* Makes one and holds it. 0 or -code: CSN_EEXIST, CSN_EAGAIN at the token's limit, or what
 * csn_open() says. */
int box_open(struct boxes *boxes, const struct box_wish *wish, struct token *owner,
	     struct box **ret_box, csn_error *err);

/* Room for a fork among the sandboxes of a token: 0, or -CSN_EAGAIN at its limit. */
int boxes_take_fork(struct boxes *boxes, struct token *owner, csn_error *err);
/* … which is one now, or (NULL) came to nothing. */
void boxes_keep_fork(struct boxes *boxes, struct token *owner, const char *name);

/* Holds the one of a name. 0, or -CSN_ENOENT, -CSN_INVALID, -code. */
int box_find(struct boxes *boxes, const char *name, struct box **ret_box, csn_error *err);
void box_release(struct boxes *boxes, struct box *box);

/* A call begins, with a number of the sandbox's, or is over. After `lost` nobody finds the box. */
void box_begin(struct boxes *boxes, struct box *box, struct box_call *call);
void box_finish(struct boxes *boxes, struct box *box, struct box_call *call);
/* Tells it of the end, at once if that came already; before the call is made. */
void box_tell_end(struct boxes *boxes, const struct box *box, struct box_call *call,
		  void (*on_end)(void *data), void *data);
/* Cancels it, unless it is over; from any thread while the memory of both is there. */
void box_cancel(struct boxes *boxes, const struct box *box, const struct box_call *call);
void box_lost(struct boxes *boxes, struct box *box);

/* Ends one of ours: its calls are cancelled, and nothing is left of it when this returns. The
 * caller holds it, and holds it no more. */
void box_end(struct boxes *boxes, struct box *box);

/* Holds all of ours: an array of `*ret_count`, to be freed, each to be released. NULL: no memory.
 */
struct box **boxes_hold(struct boxes *boxes, size_t *ret_count);
