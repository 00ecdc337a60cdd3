/*
 * eval - code sessions of a sandbox, for our own commands; not exported
 */
#pragma once

#include "client/call.h"

struct eval_request {
	const char *medium;
	const char *session; /* NULL: `main` */
	const void *code;
	size_t size;
	uint32_t timeout_ms; /* 0: 30 s */
};

/* For csn_free(). Each text is followed by a NUL that its size does not count. */
struct eval_result {
	csn_bytes value;  /* JSON; data NULL: the code failed, */
	csn_bytes reason; /* for this reason */
	csn_bytes output;
	bool is_done; /* the session is over */
};

/* One eval. 0, also where the code failed; or a negative csn_code with a sentence. */
int eval_call(csn_sandbox *sandbox, const struct eval_request *request,
	      struct eval_result **ret_result, csn_error *err);
