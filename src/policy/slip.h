/*
 * slip - what a person may have meant by a value that is none
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/keys.h"

enum { SLIP_TEXT = 32 };

/*
 * A time or size in a foreign spelling ("512MB", "1.5 GiB", "1h30m", "5 min", a time without a
 * unit), as this key would accept it, to `ret_text`. False when there is nothing near.
 */
bool slip_value(const struct key *key, const char *text, char ret_text[SLIP_TEXT]);

/* The limit that a name stands for elsewhere ("mem", "timeout"); NULL: none. */
const char *slip_limit(const char *name);
