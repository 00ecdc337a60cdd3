/*
 * told - facts from the program that is the wall, where a policy declares that it observes them
 */
#pragma once

#include "monitor/run_private.h"
#include "wire/term.h"

/*
 * {fact, Map} of a declared wall: `event` is a name that command.observes has; `path`, `address`,
 * `host` and `text` are texts. Adds it to a list, as told and not certain. Whatever is not of that
 * form, or comes from a wall that declares nothing, is passed over: our own agent sends none.
 */
void told_fact(const struct run *run, const struct term *map, struct violations *violations);
