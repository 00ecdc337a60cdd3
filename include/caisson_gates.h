/*
 * caisson_gates - functions of your own that code inside a sandbox may ask for by name
 *
 * Included by caisson.h. Behind the wall there is neither a secret nor a network; what code there
 * may do beyond it, it asks for: `caisson-gate NAME '{"id": 7}'`. docs/gates.md is about gates of
 * all kinds, docs/api.md has an example.
 *
 * Threads. The library calls your functions in one thread of its own, which blocks all signals and
 * is there from the end of csn_open() until within csn_close(). It runs one function at a time and
 * holds up no other call of the handle; calls of gates that come meanwhile wait, 64 at most. A
 * function may use its sandbox, but not close it; a command that it runs and waits for must not ask
 * for a gate that is a function, since that one would wait for this.
 *
 * Time. The monitor holds each call to the gate's time, 30 s where no policy says another, from
 * when it was made. An answer that comes later goes nowhere; nobody stops the function. csn_close()
 * waits for one that runs, ends calls that it made with CSN_LOST, and forgets those that wait.
 *
 * A fork's child has neither the thread nor the gates. Functions must not throw or longjmp out.
 */
#pragma once

#include <stddef.h>

#include "caisson.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One call, until its function returns; only for the thread that runs it. */
typedef struct csn_gate_call csn_gate_call;

/*
 * Answers a call. `args` is the text of one JSON object, `size` bytes (at most 64 KiB) and a NUL;
 * it is borrowed, fits the schema, and is otherwise what a stranger wrote. 0: the answer is what
 * csn_gate_answer() was given, else empty. Negative: it failed; the code is told what
 * csn_gate_refuse() was given, else the name of that csn_code.
 */
typedef int (*csn_gate_fn)(void *data, const char *args, size_t size, csn_gate_call *call);

/* All is copied but what `data` points to, which must live until csn_close(). */
struct csn_gate {
	const char *name;   /* letters, digits, '-', '_': a command inside has it as well */
	const char *schema; /* of the arguments: JSON, as docs/gates.md says; NULL: any object */
	csn_gate_fn call;
	void *data; /* given to `call`; may be NULL */
	const void *reserved[4];
};

/*
 * Sets the answer, which the code gets byte for byte: any bytes, copied, at most 256 KiB. 0;
 * -CSN_INVALID: there is an answer already; -CSN_E2BIG, -CSN_ENOMEM: the call has failed, and the
 * code is told so.
 */
CSN_API int csn_gate_answer(csn_gate_call *call, const void *bytes, size_t size);

/*
 * The call has failed: the code is told this sentence, of which 4 KiB are kept, in the place of any
 * answer. It tells a stranger what it says. Returns -CSN_CANCELLED: a function may end with it.
 */
CSN_API int csn_gate_refuse(csn_gate_call *call, const char *sentence);

#ifdef __cplusplus
}
#endif
