/*
 * http_records - the records of runs, read through the audit room
 *
 * Nothing here writes one. A record's texts are hostile: they leave as JSON.
 */
#pragma once

#include "serve/http.h"

enum { RECORDS_LIST_MAX = 500 }; /* of one answer of /v1/runs */

/* Answers with the events of a run, from Last-Event-ID on, until it is over. */
void records_follow(struct request *request, const char *run_id);
