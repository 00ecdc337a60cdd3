/*
 * stay_ask - what is said to a sandbox that stays by who makes no call: end
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Asks the monitor at the other end of a connected stream to end, and waits until it has, at most
 * so long. 0; -ETIMEDOUT with a sentence. */
int stay_ask_end(int fd, uint64_t timeout_ms, struct csn_error *err);
