/*
 * result - what a caller gets: one struct, and all it points to, freed together by csn_free()
 *
 * The reply's own memory is kept, so its texts are not copied: a decoded binary or atom ends in a
 * NUL. Everything more comes from the same arena.
 */
#pragma once

#include "client/call.h"

/* A zeroed struct of `size` bytes that takes over the reply's arena, or NULL. */
void *result_new(struct call *call, size_t size);

/* The arena of a result. */
struct arena *result_arena(void *result);

/* Values of a map that was checked: NULL, 0, false where a key is absent; `otherwise` for null. */
const char *result_text(const struct term *map, const char *key);
uint64_t result_u64(const struct term *map, const char *key);
int result_int(const struct term *map, const char *key, int otherwise);
bool result_flag(const struct term *map, const char *key);
csn_bytes result_bytes(const struct term *map, const char *key);

/* A list of texts, with a NULL after the last; 0 or -CSN_ENOMEM. */
int result_texts(void *result, const struct term *list, const char *const **ret_texts);

/* An array of `size` each for as many maps as the list has; NULL without memory. */
void *result_array(void *result, const struct term *list, size_t size);

/* A violation from its map; borrowed. */
void result_violation(const struct term *map, csn_violation *ret_violation);
