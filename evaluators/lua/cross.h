/*
 * cross - values of Lua as plain terms, and back
 *
 * nil, true, false are atoms; integers and finite floats are numbers; strings are binaries. A table
 * whose keys are 1 to n is a list, an empty one too; any other is a map of its plain keys. What
 * has no plain form is printed (`function`, `inf`, `table (contains itself)`) in a value, and left
 * out where it is to be bound again. Metatables are not asked.
 */
#pragma once

#include <lua.h>
#include <stdbool.h>

#include "wire/emit.h"
#include "wire/term.h"

enum cross_use { CROSS_VALUE, CROSS_BINDING };

/* How many terms still fit into a frame; shared by what goes into one. */
struct cross {
	struct emit *emit;
	enum cross_use use;
	size_t terms_left;
	unsigned depth;
	const void *above[48]; /* tables that hold this one */
};

/* Has a value of its own form? */
bool cross_is_plain(lua_State *lua, int index);
/* Stack slots that cross_emit() may need. It raises a Lua error where it does not get them: who has
 * begun a frame takes them before. */
enum { CROSS_SLOTS = 4 * (sizeof((struct cross *)0)->above / sizeof(void *) + 1) };
/* Emits the value at `index` (absolute). emit->error is -E2BIG where it does not fit. */
void cross_emit(struct cross *cross, lua_State *lua, int index);
/* Pushes a term's value. Raises a Lua error where memory ends. */
void cross_push(lua_State *lua, const struct term *term);
