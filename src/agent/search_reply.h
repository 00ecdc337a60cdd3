/*
 * search_reply - the answer of caisson-search, checked and translated
 *
 * The program reads names and files that untrusted code wrote, so what it says is checked like
 * everything from outside: sizes, kinds, bounds of the protocol.
 */
#pragma once

#include "agent/agent.h"

/* Sends the reply, or what the program refused: {failed, Ref, Reason, Sentence}. -EBADMSG: the
 * answer is cut or broken, and nothing was sent. */
int search_reply(struct agent *agent, int64_t ref, bool is_grep, const struct buf *answer);
