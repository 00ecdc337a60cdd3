/*
 * answer - results of libcaisson as JSON, under the names that include/caisson.h gives them
 *
 * What is absent is null or left out. Bytes are a string where they are UTF-8, else an object with
 * their `base64`: nothing that came is changed.
 */
#pragma once

#include <jansson.h>

#include "caisson.h"

/* Each returns a value for out_json(), NULL when out of memory. */
json_t *answer_bytes(const void *data, size_t size);
/* See above. */
json_t *answer_exec(const csn_exec_result *result);
/* See above. */
json_t *answer_edit(const csn_edit_result *result);
/* See above. */
json_t *answer_glob(const csn_glob_result *result);
/* See above. */
json_t *answer_grep(const csn_grep_result *result);
