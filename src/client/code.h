/*
 * code - errors as the public header numbers them
 *
 * Inside the library a sentence is a csn_error of caisson.h, with a code of its own; what the
 * rooms below say (struct csn_error, an errno) is turned into one where it is received. Text that
 * came from the other side is made fit to print first.
 */
#pragma once

#include "base/error.h"
#include "caisson.h"

/* Fills `err` (may be NULL) and returns -code, so that it can end a function. */
__attribute__((format(printf, 4, 5), cold)) int
code_fail(csn_error *err, enum csn_code code, const char *stage, const char *format, ...);

/* The code of an errno, and of a name as it crosses the wall; CSN_EIO for an unknown one. */
enum csn_code code_of_errno(int error);
enum csn_code code_of_name(const char *name);

/* Says again what a room below said. */
int code_pass(csn_error *err, enum csn_code code, const struct csn_error *below);

/* Copies untrusted bytes: what is no UTF-8 or moves a cursor becomes '?'; cut at `size`. */
void code_text(char *ret_text, size_t size, const void *data, size_t length);
