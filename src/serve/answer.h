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

/* ---- answer_state.c: of the verbs that only programs ask as JSON --------------------------- */

/* See above; null for CSN_NONE. */
json_t *answer_stats(const csn_stats_result *stats);
/* See above. */
json_t *answer_ps(const csn_ps_result *result);
/* See above. */
json_t *answer_logs(const csn_logs_result *result);
/* See above. */
json_t *answer_wait(const csn_wait_result *result);
/* See above. */
json_t *answer_stat(const csn_stat_result *result);
/* See above. */
json_t *answer_list(const csn_list_result *result);
/* See above. */
json_t *answer_diff(const csn_diff_result *result);
/* See above. */
json_t *answer_commit(const csn_commit_result *result);
/* See above. */
json_t *answer_copied(const csn_copied *result);
/* One violation, as in answer_exec(). */
json_t *answer_violation(const csn_violation *violation);

/* ---- parts, for answers that are made elsewhere -------------------------------------------- */

/* As answer_bytes(); null for NULL. */
json_t *answer_text(const char *text);
/* Null for CSN_NONE; a number beyond what JSON's readers take is the largest one. */
json_t *answer_number(uint64_t value);
/* See csn_output. */
json_t *answer_output(const csn_output *output);
