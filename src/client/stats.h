/*
 * stats - a reply to `stats`, as the public header has it
 */
#pragma once

#include "client/call.h"

/* From a call's reply, which was checked, and whose arena it takes; NULL: no memory. */
csn_stats_result *stats_result(struct call *call);
