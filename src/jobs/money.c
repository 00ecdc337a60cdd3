/* See money.h. Integers all the way: a double would print what nobody reported. */
#include "jobs/money.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { DECIMALS = 9, LEAST = 2 };
#define NANO INT64_C(1000000000)
#define MOST (INT64_C(1) << 60)

static int64_t power(int exponent)
{
	int64_t value = 1;

	while (exponent-- > 0)
		value *= 10;
	return value;
}

/* With so many decimals, without zeros behind the second. */
static void format(int64_t nano, int decimals, char *ret_text)
{
	int64_t unit = power(DECIMALS - decimals);
	int64_t rounded = (nano + unit / 2) / unit * unit;
	int size = snprintf(ret_text, MONEY_TEXT, "$%lld.%09lld", (long long)(rounded / NANO),
			    (long long)(rounded % NANO));

	for (int left = DECIMALS; left > LEAST && ret_text[size - 1] == '0'; left--)
		ret_text[--size] = 0;
}

void money_format(int64_t nano, char *ret_text)
{
	int decimals = LEAST;

	nano = nano < 0 ? 0 : nano > MOST ? MOST : nano;
	if (nano > 0 && nano < NANO / 100)
		for (decimals = 4; decimals < DECIMALS && nano < 10 * power(DECIMALS - decimals);)
			decimals++;
	else if (nano > 0 && nano < NANO)
		decimals = 4;
	format(nano, decimals, ret_text);
}

void money_format_all(int64_t nano, char *ret_text)
{
	format(nano < 0 ? 0 : nano > MOST ? MOST : nano, DECIMALS, ret_text);
}

int64_t money_of(const json_t *dollars)
{
	double amount = json_number_value(dollars);

	if (!isfinite(amount) || amount <= 0)
		return 0;
	return amount >= (double)MOST / (double)NANO ? MOST : llround(amount * (double)NANO);
}
