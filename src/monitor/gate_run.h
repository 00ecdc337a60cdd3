/*
 * gate_run - one call of a gate that is a program of the host's
 *
 * In a worker of its own (worker.h): the program gets the arguments as JSON on standard input, `/`
 * as its folder, the monitor's environment, a session of its own and no other descriptor. Its
 * standard output is the answer, at most FRAME_GATE_RESULT_BYTES; a status other than 0 makes what
 * it wrote on standard error the reason. It ends with its leader, its time, the bound of its output
 * or the worker, and whatever it started ends with it.
 */
#pragma once

#include "monitor/worker.h"
#include "plan/plan.h"

struct gate_order {
	const struct plan_gate *gate;
	const char *args; /* JSON, `size` bytes */
	size_t size;
	struct gates *gates; /* for who forks */
};

/* A worker_fn: worker->data is a struct gate_order. Answers {reply, Ref, #{result, is_error}}. */
int gate_run(struct worker *worker, const struct term *map, struct csn_error *err);
