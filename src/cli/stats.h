/*
 * stats - what a sandbox that stays is and uses, as people and programs read it
 */
#pragma once

#include <stdint.h>

#include <jansson.h>

#include "caisson.h"

enum { STATS_TEXT = 48 };

/* The same as the library's, under its names; null for CSN_NONE. A new object. */
json_t *stats_json(const csn_stats_result *stats);

/* "1.5GiB", "3h12m", "1.5GiB/2GiB": rounded, for a person; "-" where it is not known. The limit is
 * left out where there is none. */
void stats_size(uint64_t bytes, char ret_text[STATS_TEXT]);
void stats_time(uint64_t ms, char ret_text[STATS_TEXT]);
void stats_used(uint64_t bytes, uint64_t limit, char ret_text[STATS_TEXT]);
void stats_count(uint64_t count, uint64_t limit, char ret_text[STATS_TEXT]);
