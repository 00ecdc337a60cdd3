/*
 * csn_error - what went wrong, where, and what to do about it
 *
 * A fallible function returns 0 or a negative errno and, on failure, leaves one
 * sentence for a person here. The caller owns the struct; it never allocates, so
 * it can be used between fork and exec and inside a process that is out of memory.
 *
 * Say the sentence where the failure happens, once; callers pass it on. A NULL
 * error is allowed everywhere: the sentence is then dropped.
 */
#pragma once

struct csn_error {
	int code;       /* a positive errno */
	char stage[32]; /* which part of the work failed: "policy", "rootfs", "agent" */
	char text[464]; /* one sentence: a cause and, where there is one, a way out */
};

/*
 * Fills `err` and returns `code` (a negative errno), so that it can end a function. The sentence is
 * one line and fit to print: what could move a cursor, change a colour or reorder text is escaped
 * (base/escape.h), newlines too.
 */
__attribute__((format(printf, 4, 5), cold)) int
csn_fail(struct csn_error *err, int code, const char *stage, const char *format, ...);

/*
 * The same for a sentence that ends with lines to paste into a policy file: newlines stay, so
 * names go through str_escape() first.
 */
__attribute__((format(printf, 4, 5), cold)) int
csn_fail_lines(struct csn_error *err, int code, const char *stage, const char *format, ...);
