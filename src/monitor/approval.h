/*
 * approval - what a person says yes to, and the gate before a start that needs one
 *
 * The terms of a start are all that decides what runs: command, folder, what is lent and how, the
 * wall, limits, network, variables (values only as digests under the folder's key), the policy, and
 * the contents of files that the command names. audit/approvals.h keeps them; here they are made
 * from a setup, and compared again when the start that was approved begins.
 *
 * What is not in them: the rest of the workspace, what the command reads or loads later, programs
 * of the system, and standard input where it is no file. docs/decisions/approvals.md says why.
 */
#pragma once

#include "audit/approvals.h"
#include "backend/backend.h"
#include "monitor/run.h"

/*
 * The terms of this start behind this wall, a new object; NULL with a sentence. `key` is the
 * folder's. Reads the files that the command names, at most 64 MiB each.
 */
json_t *approval_terms(const struct run_setup *setup, const struct backend *backend,
		       const uint8_t key[APPROVAL_KEY], struct csn_error *err);

struct approval_wish {
	const char *root;  /* the run root */
	const char *id;    /* this one and no other; NULL: any that fits */
	uint64_t wait_ms;  /* how long for a person; 0: not at all */
	bool is_elsewhere; /* the root is not where `caisson approve` looks by itself */
	/* Called once, when waiting begins. */
	void (*waits)(const struct approval *approval, const char *how, void *data);
	void *data;
};

/*
 * Uses up the approval of this start, and lets setup->approval point to it: 0. Else it is asked
 * for, and the sentence begins with ApprovalRequired or ApprovalDenied. Where the plan's wall
 * cannot be had, nobody is asked: 0, and the start, which has no approval, is refused.
 * `setup->stdin_fd`, where it is a file, becomes a sealed copy of what was approved, which is the
 * caller's.
 */
int approval_gate(struct run_setup *setup, const struct approval_wish *wish,
		  struct approval *ret_approval, struct csn_error *err);

/*
 * When the wall stands, before the command is let go: are the terms still those of the approval
 * that was used up, has it not expired, did nobody say no since? 0, also where none was needed;
 * -EPERM with a sentence, which names what differs.
 */
int approval_look_again(const struct run_setup *setup, const struct backend *backend,
			struct csn_error *err);

/* For the record, a new object: who asked, who said yes, when, to which digest. */
json_t *approval_json(const struct approval *approval);
