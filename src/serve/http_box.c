/*
 * Sandboxes by name; see http_box.h. The lock is never held while a monitor is asked for anything,
 * but for a cancel, which only queues a frame.
 */
#include "serve/http_box.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "client/code.h"

enum { WORDS = 4 * BOX_LIST_MAX, WORKSPACE_MAX = 4200, START_MS = 60000 };

void boxes_init(struct boxes *boxes, struct tokens *tokens, const struct box_base *base,
		uint64_t most)
{
	*boxes = (struct boxes){ .tokens = tokens, .base = base, .most = most };
	pthread_mutex_init(&boxes->lock, NULL);
	pthread_cond_init(&boxes->freed, NULL);
}

static struct box *find_listed(const struct boxes *boxes, const char *name)
{
	for (struct box *box = boxes->first; box; box = box->next)
		if (str_is(box->name, name))
			return box;
	return NULL;
}

static void unlist(struct boxes *boxes, struct box *box)
{
	for (struct box **at = &boxes->first; *at; at = &(*at)->next)
		if (*at == box) {
			*at = box->next;
			box->is_listed = false;
			return;
		}
}

/* Its last holder left. */
static void free_box(struct boxes *boxes, struct box *box)
{
	csn_close(box->sandbox);
	if (box->owner)
		token_give(boxes->tokens, &box->owner->sandboxes);
	free(box);
}

void box_release(struct boxes *boxes, struct box *box)
{
	bool is_last;

	pthread_mutex_lock(&boxes->lock);
	is_last = --box->holders == 0 && !box->is_listed;
	if (!box->is_listed)
		pthread_cond_broadcast(&boxes->freed);
	pthread_mutex_unlock(&boxes->lock);
	if (is_last)
		free_box(boxes, box);
}

void box_lost(struct boxes *boxes, struct box *box)
{
	pthread_mutex_lock(&boxes->lock);
	unlist(boxes, box);
	pthread_mutex_unlock(&boxes->lock);
}

struct box **boxes_hold(struct boxes *boxes, size_t *ret_count)
{
	struct box **list;
	size_t count = 0;

	pthread_mutex_lock(&boxes->lock);
	for (struct box *box = boxes->first; box; box = box->next)
		count++;
	list = calloc(count + 1, sizeof *list);
	count = 0;
	for (struct box *box = list ? boxes->first : NULL; box; box = box->next)
		if (box->sandbox) {
			box->holders++;
			list[count++] = box;
		}
	pthread_mutex_unlock(&boxes->lock);
	*ret_count = count;
	return list;
}

void boxes_done(struct boxes *boxes)
{
	struct box *box;

	while ((box = boxes->first)) {
		unlist(boxes, box);
		csn_close(box->sandbox);
		free(box);
	}
	for (struct forked *next, *at = boxes->forked; at; at = next) {
		next = at->next;
		free(at);
	}
	boxes->forked = NULL;
	pthread_cond_destroy(&boxes->freed);
	pthread_mutex_destroy(&boxes->lock);
}

/* ---- calls ----------------------------------------------------------------------------------- */

void box_begin(struct boxes *boxes, struct box *box, struct box_call *call)
{
	call->id = csn_call_id(box->sandbox);
	call->is_over = false;
	call->on_end = NULL;
	pthread_mutex_lock(&boxes->lock);
	call->next = box->calls;
	box->calls = call;
	if (box->is_ours && !box->is_listed) /* it was ended since it was found */
		csn_cancel(box->sandbox, call->id, NULL);
	pthread_mutex_unlock(&boxes->lock);
}

void box_tell_end(struct boxes *boxes, const struct box *box, struct box_call *call,
		  void (*on_end)(void *data), void *data)
{
	pthread_mutex_lock(&boxes->lock);
	call->data = data;
	call->on_end = on_end;
	if (box->is_ours && !box->is_listed)
		on_end(data);
	pthread_mutex_unlock(&boxes->lock);
}

void box_cancel(struct boxes *boxes, const struct box *box, const struct box_call *call)
{
	pthread_mutex_lock(&boxes->lock);
	if (!call->is_over)
		csn_cancel(box->sandbox, call->id, NULL);
	pthread_mutex_unlock(&boxes->lock);
}

void box_finish(struct boxes *boxes, struct box *box, struct box_call *call)
{
	pthread_mutex_lock(&boxes->lock);
	call->is_over = true;
	for (struct box_call **at = &box->calls; *at; at = &(*at)->next)
		if (*at == call) {
			*at = call->next;
			break;
		}
	pthread_mutex_unlock(&boxes->lock);
}

void box_end(struct boxes *boxes, struct box *box)
{
	pthread_mutex_lock(&boxes->lock);
	unlist(boxes, box);
	for (struct box_call *call = box->calls; call; call = call->next) {
		csn_cancel(box->sandbox, call->id, NULL);
		if (call->on_end)
			call->on_end(call->data);
	}
	box->enders++;
	pthread_cond_broadcast(&boxes->freed); /* another may wait for us */
	while (box->holders > box->enders)
		pthread_cond_wait(&boxes->freed, &boxes->lock);
	box->enders--;
	pthread_mutex_unlock(&boxes->lock);
	box_release(boxes, box);
}

/* ---- making one ------------------------------------------------------------------------------ */

/* Lists of both, those of the wish last. */
struct words {
	const char *at[WORDS + 1];
	size_t count;
};

static void add_all(struct words *words, const char *const *list)
{
	for (; list && *list && words->count < WORDS; list++)
		words->at[words->count++] = *list;
}

/* Of the server's limits those whose key is not wished for: a flag takes each key once. */
static void add_limits(struct words *words, const char *const *base, const char *const *wish)
{
	for (; base && *base && words->count < WORDS; base++) {
		size_t size = strcspn(*base, "=") + 1;
		bool is_replaced = false;

		for (const char *const *at = wish; at && *at; at++)
			is_replaced |= strncmp(*at, *base, size) == 0;
		if (!is_replaced)
			words->at[words->count++] = *base;
	}
	add_all(words, wish);
}

static const char *either(const char *wish, const char *base)
{
	return wish ? wish : base;
}

static csn_sandbox *open_wished(const struct box_base *base, const struct box_wish *wish,
				csn_error *err)
{
	const char *folder = either(wish->workspace, base->workspace);
	const char *mode = either(wish->mode, base->mode);
	struct words mounts = { .count = 0 }, limits = { .count = 0 }, tags = { .count = 0 };
	char workspace[WORKSPACE_MAX];
	csn_options options = {
		.program = base->program,
		.within = base->within,
		.policy = base->policy,
		.tier = either(wish->tier, base->tier),
		.backend = either(wish->backend, base->backend),
		.at = base->at,
		.network = either(wish->network, base->network),
		.allow = base->allow,
		.mounts = mounts.at,
		.limits = limits.at,
		.env = base->env,
		.tags = tags.at,
		.run_dir = base->run_dir,
		.no_record = base->no_record,
		.start_timeout_ms = START_MS,
	};

	add_all(&mounts, base->mounts);
	add_all(&mounts, wish->mounts);
	add_limits(&limits, base->limits, wish->limits);
	add_all(&tags, base->tags);
	add_all(&tags, wish->tags);
	snprintf(workspace, sizeof workspace, "%s%s%s", folder ? folder : ".", mode ? ":" : "",
		 mode ? mode : "");
	options.workspace = folder || mode ? workspace : NULL;
	return csn_open(&options, err);
}

/* A name that no sandbox of `caisson up` has. */
static bool is_up(const char *name)
{
	_cleanup_fd_ int place = place_open(NULL);

	return place >= 0 && place_is_alive(place, name);
}

static int check_name(const char *name, csn_error *err)
{
	if (!place_is_name(name))
		return code_fail(err, CSN_INVALID, "open",
				 "a name is up to %d letters, digits, -, _ and ., the first a "
				 "letter or digit",
				 PLACE_NAME_MAX);
	if (is_up(name))
		return code_fail(err, CSN_EEXIST, "open", "a sandbox of that name lives already");
	return 0;
}

static void make_name(char *ret_name)
{
	uint32_t number[2] = { 0 };

	if (getrandom(number, sizeof number, 0) != (ssize_t)sizeof number)
		number[0] = (uint32_t)clock_now_us();
	snprintf(ret_name, PLACE_NAME_MAX, "web-%08x%02x", number[0], number[1] & 0xff);
}

/* Keeps the name from others while the sandbox is made: listed, but not to be found. */
static int list_new(struct boxes *boxes, struct box *box, csn_error *err)
{
	bool is_taken;

	pthread_mutex_lock(&boxes->lock);
	is_taken = find_listed(boxes, box->name) != NULL;
	if (!is_taken) {
		box->next = boxes->first;
		boxes->first = box;
		box->is_listed = true;
	}
	pthread_mutex_unlock(&boxes->lock);
	return is_taken ? code_fail(err, CSN_EEXIST, "open", "a sandbox of that name lives already")
			: 0;
}

/* Those that ended by themselves count no longer. */
static void drop_lost(struct boxes *boxes)
{
	size_t count = 0;
	struct box **list = boxes_hold(boxes, &count);

	for (size_t i = 0; i < count; i++) {
		csn_stats_result *stats = NULL;

		if (csn_stats(list[i]->sandbox, NULL, &stats, NULL) == -CSN_LOST)
			box_lost(boxes, list[i]);
		csn_free(stats);
		box_release(boxes, list[i]);
	}
	free(list);
}

static void drop_ended_forks(struct boxes *boxes)
{
	_cleanup_fd_ int place = place_open(NULL);

	pthread_mutex_lock(&boxes->lock);
	for (struct forked **at = &boxes->forked; *at;) {
		struct forked *forked = *at;

		if (place < 0 || place_is_alive(place, forked->name)) {
			at = &forked->next;
			continue;
		}
		*at = forked->next;
		token_give(boxes->tokens, &forked->owner->sandboxes);
		free(forked);
	}
	pthread_mutex_unlock(&boxes->lock);
}

static int take_share(struct boxes *boxes, struct token *owner, csn_error *err)
{
	if (token_take(boxes->tokens, &owner->sandboxes, boxes->most))
		return 0;
	drop_lost(boxes);
	drop_ended_forks(boxes);
	if (token_take(boxes->tokens, &owner->sandboxes, boxes->most))
		return 0;
	return code_fail(err, CSN_EAGAIN, "open",
			 "%llu sandboxes live, which is this token's limit; end one (DELETE)",
			 (unsigned long long)boxes->most);
}

int boxes_take_fork(struct boxes *boxes, struct token *owner, csn_error *err)
{
	return take_share(boxes, owner, err);
}

void boxes_keep_fork(struct boxes *boxes, struct token *owner, const char *name)
{
	struct forked *forked = name ? calloc(1, sizeof *forked) : NULL;

	if (!forked) {
		/* Without memory it is not counted, rather than for ever. */
		token_give(boxes->tokens, &owner->sandboxes);
		return;
	}
	forked->owner = owner;
	snprintf(forked->name, sizeof forked->name, "%s", name);
	pthread_mutex_lock(&boxes->lock);
	forked->next = boxes->forked;
	boxes->forked = forked;
	pthread_mutex_unlock(&boxes->lock);
}

/* A monitor that says why it will not start was not lost: what was asked for is refused. */
static int explain_refusal(csn_error *err)
{
	static const char start[] = "the monitor did not start: caisson: ";
	size_t size = sizeof start - 1;

	if (err->code == CSN_LOST && str_starts(err->text, start)) {
		err->code = CSN_EPERM;
		memmove(err->text, err->text + size, strlen(err->text + size) + 1);
	}
	return -err->code;
}

int box_open(struct boxes *boxes, const struct box_wish *wish, struct token *owner,
	     struct box **ret_box, csn_error *err)
{
	struct box *box = calloc(1, sizeof *box);
	csn_sandbox *sandbox;
	int r;

	if (!box)
		return code_fail(err, CSN_ENOMEM, "open", "out of memory");
	if (wish->name)
		snprintf(box->name, sizeof box->name, "%s", wish->name);
	else
		make_name(box->name);
	box->is_ours = true;
	box->made_ms = clock_wall_ms();
	r = check_name(wish->name ? wish->name : box->name, err);
	if (r == 0)
		r = take_share(boxes, owner, err);
	if (r < 0) {
		free(box);
		return r;
	}
	box->owner = owner;
	box->holders = 1;
	r = list_new(boxes, box, err);
	sandbox = r == 0 ? open_wished(boxes->base, wish, err) : NULL;
	pthread_mutex_lock(&boxes->lock);
	box->sandbox = sandbox;
	if (!sandbox)
		unlist(boxes, box);
	pthread_mutex_unlock(&boxes->lock);
	if (sandbox) {
		*ret_box = box;
		return 0;
	}
	if (r == 0)
		r = explain_refusal(err);
	box_release(boxes, box);
	return r;
}

/* ---- finding one ----------------------------------------------------------------------------- */

static struct box *hold(struct boxes *boxes, const char *name, bool *ret_is_starting)
{
	struct box *box;

	pthread_mutex_lock(&boxes->lock);
	box = find_listed(boxes, name);
	*ret_is_starting = box && !box->sandbox;
	if (*ret_is_starting)
		box = NULL;
	if (box)
		box->holders++;
	pthread_mutex_unlock(&boxes->lock);
	return box;
}

/* Of `caisson up`: a handle of its own for each request, since who made it may end it and another
 * of the same name may stand there at the next one. */
static int join(const char *name, struct box **ret_box, csn_error *err)
{
	struct box *box;

	if (!place_is_name(name))
		return code_fail(err, CSN_ENOENT, "name", "there is no sandbox of that name");
	box = calloc(1, sizeof *box);
	if (!box)
		return code_fail(err, CSN_ENOMEM, "name", "out of memory");
	snprintf(box->name, sizeof box->name, "%s", name);
	box->holders = 1;
	box->sandbox = csn_attach(name, err);
	if (!box->sandbox) {
		free(box);
		return -err->code;
	}
	*ret_box = box;
	return 0;
}

int box_find(struct boxes *boxes, const char *name, struct box **ret_box, csn_error *err)
{
	bool is_starting;

	*ret_box = hold(boxes, name, &is_starting);
	if (is_starting)
		return code_fail(err, CSN_EBUSY, "name", "that sandbox is just being made");
	return *ret_box ? 0 : join(name, ret_box, err);
}
