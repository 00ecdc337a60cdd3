/*
 * money - an amount as people read it
 *
 * Amounts are whole billionths of a dollar (book.h). Two decimals, and more where the cents would
 * hide it: half a cent is $0.005, not $0.01, and never $0.00.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

enum { MONEY_TEXT = 32 };

/* "$12.30", "$0.3042", "$0.0042", "$0.000031": cents from a dollar on, four decimals from a cent
 * on, else two digits that count. Into MONEY_TEXT bytes. */
void money_format(int64_t nano, char *ret_text);

/* All digits that there are, two decimals at least: "$1.50", "$0.300000001". */
void money_format_all(int64_t nano, char *ret_text);

/* Billionths of a number of dollars from JSON; 0 for what is none, and for less than nothing. */
int64_t money_of(const json_t *dollars);
