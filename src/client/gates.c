/*
 * Gates as functions of the host's; see gates.h. Their thread is started when the wall stands, so
 * that a sandbox that was refused never had one.
 */
#include "client/gates.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "wire/frame.h"

enum { QUEUE_CALLS = 64, REASON_MAX = 4096 };

struct gate {
	char *name;
	char *word; /* NAME or NAME=SCHEMA */
	csn_gate_fn call;
	void *data;
};

/* One that waits for its turn. */
struct task {
	struct task *next;
	const struct gate *gate;
	int64_t ref;
	size_t size;
	char args[]; /* and a NUL */
};

struct csn_gate_call {
	char *result;
	size_t size;
	bool is_given;
	bool is_error;
};

struct gates {
	struct link_gates link; /* first: what the link knows of it */
	struct gate *gates;
	size_t count;
	const char **words;
	struct task *first, **last;
	unsigned waiting;
	pthread_t thread;
	bool is_started;
	bool is_ending;
};

static struct gates *gates_of(const struct csn_sandbox *link)
{
	return (struct gates *)link->gates;
}

/* ---- made and freed ------------------------------------------------------------------------- */

void client_gates_free(struct gates *gates)
{
	struct task *task, *next;

	if (!gates)
		return;
	for (task = gates->first; task; task = next) {
		next = task->next;
		free(task);
	}
	for (size_t i = 0; i < gates->count; i++) {
		free(gates->gates[i].name);
		free(gates->gates[i].word);
	}
	pthread_cond_destroy(&gates->link.wake);
	free(gates->gates);
	free(gates->words);
	free(gates);
}

/* NAME or NAME=SCHEMA; NULL without memory. */
static char *make_word(const csn_gate *given)
{
	const char *schema = given->schema ? given->schema : "";
	size_t size = strlen(given->name) + strlen(schema) + 2;
	char *word = malloc(size);

	if (word)
		snprintf(word, size, "%s%s%s", given->name, given->schema ? "=" : "", schema);
	return word;
}

static int copy(struct gates *gates, const csn_gate *given, csn_error *err)
{
	struct gate *gate = &gates->gates[gates->count];

	/* A '=' would begin its schema, and the gate would have another name. */
	if (!given->name || !*given->name || strchr(given->name, '='))
		return code_fail(err, CSN_INVALID, "open", "gates[%zu].name is no name",
				 gates->count);
	if (!given->call)
		return code_fail(err, CSN_INVALID, "open", "gate %s has no function", given->name);
	*gate = (struct gate){ strdup(given->name), make_word(given), given->call, given->data };
	gates->words[gates->count] = gate->word;
	gates->count++;
	if (!gate->name || !gate->word)
		return code_fail(err, CSN_ENOMEM, "open", "there is no memory for gates");
	return 0;
}

static int take(struct csn_sandbox *link, const struct term *items);
static void end(struct csn_sandbox *link);

int client_gates_new(const csn_options *options, struct gates **ret_gates, csn_error *err)
{
	struct gates *gates;
	int r = 0;

	*ret_gates = NULL;
	if (options->gate_count == 0)
		return 0;
	if (!options->gates)
		return code_fail(err, CSN_INVALID, "open", "gate_count without gates");
	gates = calloc(1, sizeof *gates);
	if (!gates)
		return code_fail(err, CSN_ENOMEM, "open", "there is no memory for gates");
	gates->link = (struct link_gates){ .take = take, .end = end };
	pthread_cond_init(&gates->link.wake, NULL);
	gates->last = &gates->first;
	gates->gates = calloc(options->gate_count, sizeof *gates->gates);
	gates->words = calloc(options->gate_count + 1, sizeof *gates->words);
	if (!gates->gates || !gates->words)
		r = code_fail(err, CSN_ENOMEM, "open", "there is no memory for gates");
	for (size_t i = 0; r == 0 && i < options->gate_count; i++)
		r = copy(gates, &options->gates[i], err);
	if (r < 0)
		client_gates_free(gates);
	else
		*ret_gates = gates;
	return r;
}

const char *const *client_gates_words(const struct gates *gates)
{
	return gates ? gates->words : NULL;
}

void client_gates_lend(struct gates *gates, struct csn_sandbox *link)
{
	link->gates = gates ? &gates->link : NULL;
}

/* ---- answers -------------------------------------------------------------------------------- */

CSN_API int csn_gate_answer(csn_gate_call *call, const void *bytes, size_t size)
{
	char text[64];

	if (call->is_given)
		return -CSN_INVALID;
	if (size > FRAME_GATE_RESULT_BYTES) {
		snprintf(text, sizeof text, "the answer is longer than %d bytes",
			 FRAME_GATE_RESULT_BYTES);
		csn_gate_refuse(call, text);
		return -CSN_E2BIG;
	}
	call->result = malloc(size + 1);
	if (!call->result) {
		call->is_given = call->is_error = true;
		return -CSN_ENOMEM;
	}
	if (size > 0)
		memcpy(call->result, bytes, size);
	call->size = size;
	call->is_given = true;
	return 0;
}

CSN_API int csn_gate_refuse(csn_gate_call *call, const char *sentence)
{
	sentence = sentence ? sentence : "";
	free(call->result);
	call->size = strnlen(sentence, REASON_MAX);
	call->result = malloc(call->size + 1);
	if (call->result)
		memcpy(call->result, sentence, call->size);
	else
		call->size = 0;
	call->is_given = call->is_error = true;
	return -CSN_CANCELLED;
}

/* Lock held. */
static void answer(struct csn_sandbox *link, int64_t ref, const struct csn_gate_call *call)
{
	struct emit emit;

	if (link->is_lost)
		return;
	emit = link_frame(link, "gate_result", 3, ref);
	emit_map(&emit, 2);
	emit_atom(&emit, "result");
	emit_binary(&emit, call->size ? call->result : "", call->size);
	emit_atom(&emit, "is_error");
	emit_bool(&emit, call->is_error);
	if (link_send(link, &emit) < 0)
		link_lose(link, "there is no memory for what a gate answered");
}

/* ---- the queue ------------------------------------------------------------------------------ */

static const struct gate *find(const struct gates *gates, const struct term *name)
{
	for (size_t i = 0; i < gates->count; i++) {
		const char *own = gates->gates[i].name;

		if (strlen(own) == name->bytes.size &&
		    memcmp(own, name->bytes.data, name->bytes.size) == 0)
			return &gates->gates[i];
	}
	return NULL;
}

/* {gate_call, Ref, Name, Args}, for the thread that reads, lock held. 0, -EBADMSG, -ENOMEM. */
static int take(struct csn_sandbox *link, const struct term *items)
{
	static char full[] = "too many calls wait for the program that opened the sandbox; ask "
			     "again";
	struct gates *gates = gates_of(link);
	const struct gate *gate = find(gates, &items[2]);
	size_t size = items[3].bytes.size;
	struct task *task;

	if (!gate || items[1].integer < 0)
		return -EBADMSG;
	if (gates->waiting >= QUEUE_CALLS) {
		answer(link, items[1].integer,
		       &(struct csn_gate_call){ full, sizeof full - 1, true, true });
		return 0;
	}
	task = malloc(sizeof *task + size + 1);
	if (!task)
		return -ENOMEM;
	*task = (struct task){ .gate = gate, .ref = items[1].integer, .size = size };
	if (size > 0)
		memcpy(task->args, items[3].bytes.data, size);
	task->args[size] = '\0';
	*gates->last = task;
	gates->last = &task->next;
	gates->waiting++;
	pthread_cond_signal(&gates->link.wake);
	return 0;
}

static struct task *pop(struct gates *gates)
{
	struct task *task = gates->first;

	gates->first = task->next;
	if (!gates->first)
		gates->last = &gates->first;
	gates->waiting--;
	return task;
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void run(const struct task *task, struct csn_gate_call *call)
{
	char text[64];
	int r = task->gate->call(task->gate->data, task->args, task->size, call);

	if (r >= 0 || call->is_error)
		return;
	snprintf(text, sizeof text, "the gate could not do it: %s", csn_code_name(r));
	csn_gate_refuse(call, text);
}

/* Lock held, but while the function runs; another reads then. */
static void serve_first(struct csn_sandbox *link)
{
	struct task *task = pop(gates_of(link));
	struct csn_gate_call call = { 0 };

	link_hand_over(link);
	pthread_mutex_unlock(&link->lock);
	run(task, &call);
	pthread_mutex_lock(&link->lock);
	answer(link, task->ref, &call);
	free(call.result);
	free(task);
}

static void *serve(void *data)
{
	struct csn_sandbox *link = data;
	struct gates *gates = gates_of(link);

	pthread_mutex_lock(&link->lock);
	while (!gates->is_ending && !link->is_lost) {
		if (gates->first)
			serve_first(link);
		else if (!link->is_pumping)
			link_pump(link, -1);
		else
			pthread_cond_wait(&gates->link.wake, &link->lock);
	}
	link_hand_over(link);
	pthread_mutex_unlock(&link->lock);
	return NULL;
}

int client_gates_start(struct csn_sandbox *link, csn_error *err)
{
	struct gates *gates = gates_of(link);
	sigset_t all, before;
	int r;

	if (!gates)
		return 0;
	sigfillset(&all); /* no handler of the host's runs in it */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&gates->thread, NULL, serve, link);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	gates->is_started = r == 0;
	if (r != 0)
		return code_fail(err, code_of_errno(r), "open", "cannot start a thread: %s",
				 strerror(r));
	return 0;
}

/* Waits for a function that runs; what waits is forgotten. */
static void end(struct csn_sandbox *link)
{
	struct gates *gates = gates_of(link);

	pthread_mutex_lock(&link->lock);
	gates->is_ending = true;
	pthread_cond_signal(&gates->link.wake);
	link_poke(link);
	pthread_mutex_unlock(&link->lock);
	if (gates->is_started)
		pthread_join(gates->thread, NULL);
	link->gates = NULL;
	client_gates_free(gates);
}
