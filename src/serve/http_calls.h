/*
 * http_calls - a call of libcaisson on behalf of a request
 *
 * Between calls_begin() and calls_end() the sandbox is held, and a client that leaves cancels it.
 */
#pragma once

#include "serve/http.h"
#include "serve/http_fields.h"

struct running {
	struct request *request;
	struct box *box;
	struct box_call call; /* its number is for csn_call.id */
};

/* A verb: `request` begins with a csn_call. 0 and an answer (NULL: no memory), or -code. */
struct call {
	int (*run)(csn_sandbox *sandbox, const void *request, json_t **ret_answer, csn_error *err);
};

/* Finds the sandbox that the path names. False: there is none, and that was answered. */
bool calls_begin(struct request *request, struct running *running);
/* `r`: what the call returned; one that was lost is not found again. */
void calls_end(struct running *running, int r);

/* The same without anybody who watches for the client: for streams, which do. calls_cancel() may
 * come from any thread, also after the end. */
bool calls_start(struct request *request, struct running *running);
void calls_finish(struct running *running, int r);
void calls_cancel(struct running *running);

/* Decodes the body into a zeroed struct. False: it was no good, and that was answered. */
bool calls_take(struct request *request, const struct field *fields, void *into);
