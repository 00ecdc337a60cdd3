/*
 * Spellings of times, sizes and limits that other tools take. Only for the sentence of a
 * refusal: nothing here is ever accepted, so that one spelling is all a policy can have.
 */
#include "policy/slip.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

enum { WHOLE_MAX = 1000000, WORD_MAX = 16 };

struct unit {
	const char *word;
	uint64_t factor;
};

#define MINUTE_MS 60000
#define HOUR_MS 3600000

static const struct unit time_units[] = {
	{ "ms", 1 },
	{ "msec", 1 },
	{ "s", 1000 },
	{ "", 1000 },
	{ "sec", 1000 },
	{ "secs", 1000 },
	{ "second", 1000 },
	{ "seconds", 1000 },
	{ "m", MINUTE_MS },
	{ "min", MINUTE_MS },
	{ "mins", MINUTE_MS },
	{ "minute", MINUTE_MS },
	{ "minutes", MINUTE_MS },
	{ "h", HOUR_MS },
	{ "hr", HOUR_MS },
	{ "hour", HOUR_MS },
	{ "hours", HOUR_MS },
	{ "d", 24 * HOUR_MS },
	{ "day", 24 * HOUR_MS },
	{ "days", 24 * HOUR_MS },
};

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

static const struct unit size_units[] = {
	{ "b", 1 },     { "byte", 1 },  { "bytes", 1 }, { "k", KIB },   { "kb", KIB },
	{ "kib", KIB }, { "m", MIB },   { "mb", MIB },  { "mib", MIB }, { "g", GIB },
	{ "gb", GIB },  { "gib", GIB }, { "t", TIB },   { "tb", TIB },  { "tib", TIB },
};

static const struct {
	const char *name;
	const char *limit;
} limit_names[] = {
	{ "timeout", "command" },  { "time", "command" },      { "wall", "command" },
	{ "mem", "memory" },       { "ram", "memory" },        { "cpu", "cpus" },
	{ "procs", "processes" },  { "pids", "processes" },    { "nproc", "processes" },
	{ "files", "open_files" }, { "nofile", "open_files" }, { "disk", "scratch" },
	{ "tmp", "scratch" },      { "stdout", "output" },
};

static const struct unit *find_unit(const struct key *key, const char *word, size_t n)
{
	bool is_time = key->kind == KIND_TIME;
	const struct unit *units = is_time ? time_units : size_units;
	size_t count = is_time ? ARRAY_SIZE(time_units) : ARRAY_SIZE(size_units);

	for (size_t i = 0; i < count; i++)
		if (strlen(units[i].word) == n && strncasecmp(units[i].word, word, n) == 0)
			return &units[i];
	return NULL;
}

/* Digits at *at, at most `max`; *at goes behind them. */
static bool take_digits(const char **at, uint64_t max, uint64_t *ret_value)
{
	size_t n = strspn(*at, "0123456789");
	char digits[WORD_MAX];

	if (n == 0 || n >= sizeof digits)
		return false;
	memcpy(digits, *at, n);
	digits[n] = 0;
	*at += n;
	return str_parse_u64(digits, max, ret_value) == 0;
}

/* One "1.5 GiB" at *at, in the smallest unit. */
static bool take_part(const struct key *key, const char **at, uint64_t *ret_value)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	uint64_t whole, part = 0, scale = 1;
	const struct unit *unit;
	const char *digits;
	size_t n;

	if (!take_digits(at, WHOLE_MAX, &whole))
		return false;
	if (**at == '.') {
		digits = ++*at;
		if (!take_digits(at, 999, &part))
			return false;
		for (; digits < *at; digits++)
			scale *= 10;
	}
	*at += strspn(*at, " ");
	n = strspn(*at, letters);
	unit = find_unit(key, *at, n);
	*at += n;
	if (!unit)
		return false;
	*ret_value = whole * unit->factor + part * unit->factor / scale;
	return true;
}

bool slip_value(const struct key *key, const char *text, char ret_text[SLIP_TEXT])
{
	uint64_t value = 0, part;

	if (key->kind != KIND_TIME && key->kind != KIND_SIZE)
		return false;
	text += strspn(text, " ");
	do {
		if (!take_part(key, &text, &part))
			return false;
		value += part;
		text += strspn(text, " ");
	} while (*text && value <= key->max);
	if (value < key->min || value > key->max)
		return false;
	if (key->kind == KIND_TIME)
		str_format_duration(value, ret_text, SLIP_TEXT);
	else
		str_format_size(value, ret_text, SLIP_TEXT);
	return true;
}

const char *slip_limit(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(limit_names); i++)
		if (strcasecmp(name, limit_names[i].name) == 0)
			return limit_names[i].limit;
	return NULL;
}
