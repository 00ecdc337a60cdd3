/*
 * forwards_end - an endpoint of the host's: is it there, and a connection to it
 */
#pragma once

#include "base/error.h"
#include "plan/plan.h"

/* Is somebody there to be reached? Connects to nobody. 0, or a negative errno with a sentence. */
int forwards_end_check(const struct plan_forward *forward, struct csn_error *err);

/* Begins to connect: 0 and a descriptor; it may still be under way where `ret_waits`. -EAGAIN: his
 * queue is full, so later; else a negative errno. */
int forwards_end_connect(const struct plan_forward *forward, int *ret_fd, bool *ret_waits);
