/*
 * approve - asking a person before a start, and the command with which he answers
 */
#pragma once

#include "cli/cli.h"
#include "cli/project.h"
#include "monitor/approval.h"

/* The flags of `caisson approve`, and its text for help: the table of commands takes them. */
extern const struct cli_flag approve_flags[];
extern const char approve_text[];

/*
 * Where the plan needs a yes: uses up the one there is, which setup->approval then points to, or
 * asks for it, and waits if the flags say so. 0, or -EPERM with a sentence that begins with
 * ApprovalRequired or ApprovalDenied. `approval`, zeroed by the caller, is the caller's.
 */
int approve_start(const struct cli_options *options, const struct cli_policy *policy,
		  struct run_setup *setup, struct approval *approval, struct csn_error *err);

/* What is asked for, as a person reads it, on stdout: nothing in it moves a cursor. */
void approve_print(const struct approval *approval);

/* On one line: id, state, when it expires, when it was asked for, and how the command begins. */
void approve_print_line(const struct approval *approval);

/* The same for programs, a new object: of variables the names. */
json_t *approve_json(const struct approval *approval);
