/*
 * Gates: functions of the parent's, called by a frame. The code's arguments go as a list; what
 * comes back is the gate's result, or a Lua error with the gate's sentence, which the code may
 * catch. A successful `done` is caught by nobody.
 */
#include <errno.h>
#include <lauxlib.h>
#include <string.h>

#include "cross.h"
#include "evaluator.h"
#include "medium/session_frames.h"

enum { NAME_MAX_BYTES = 64 };

static const char installed_key; /* of the registry: names that are gates now */

static const struct term *name_at(const struct evaluator *evaluator, size_t i)
{
	const struct term *gates = evaluator->gates;
	const struct term *name;

	if (!gates || gates->type != TERM_LIST || i >= gates->count)
		return NULL;
	name = &gates->items[i];
	return name->type == TERM_BINARY || name->type == TERM_ATOM ? name : NULL;
}

bool gate_is_name(const struct evaluator *evaluator, const char *name)
{
	const struct term *gate;

	for (size_t i = 0; (gate = name_at(evaluator, i)); i++)
		if (gate->bytes.size == strlen(name) &&
		    memcmp(gate->bytes.data, name, gate->bytes.size) == 0)
			return true;
	return false;
}

/* {gate_call, Ref, Name, Args} */
static int ask(lua_State *lua, const char *name, int first)
{
	struct evaluator *evaluator = evaluator_of(lua);
	int top = lua_gettop(lua);
	struct cross cross = { .terms_left = SESSION_TERMS };
	struct emit emit;

	luaL_checkstack(lua, CROSS_SLOTS, "no stack for a gate's arguments");
	emit = emit_begin(&evaluator->out);
	cross.emit = &emit;
	emit_tuple(&emit, 4);
	emit_atom(&emit, "gate_call");
	emit_term(&emit, &evaluator->ref);
	emit_text(&emit, name);
	if (top >= first)
		emit_list(&emit, (uint32_t)(top - first + 1));
	for (int i = first; i <= top; i++)
		cross_emit(&cross, lua, i);
	emit_nil(&emit);
	if (!emit.error && buf_size(&evaluator->out) - emit.frame > SESSION_GATE_BYTES)
		emit.error = -E2BIG;
	if (emit_end(&emit) < 0)
		return luaL_error(lua, "the arguments of %s are too large: at most %d bytes", name,
				  SESSION_GATE_BYTES);
	return 0;
}

/* {gate_result, Ref, Observation}: `result` on the stack. Is it an error? */
static bool take_answer(lua_State *lua, const struct term *term)
{
	struct evaluator *evaluator = evaluator_of(lua);
	const struct term *result, *is_error;

	if (term->type != TERM_TUPLE || term->count != 3 ||
	    !term_is_atom(&term->items[0], "gate_result") ||
	    !term_equal(&term->items[1], &evaluator->ref))
		ward_stop(lua, OVER_LOST);
	result = term_get(&term->items[2], "result");
	is_error = term_get(&term->items[2], "is_error");
	if (!result)
		ward_stop(lua, OVER_LOST);
	cross_push(lua, result);
	return is_error && term_is_atom(is_error, "true");
}

static int call(lua_State *lua, const char *name, int first)
{
	struct evaluator *evaluator = evaluator_of(lua);
	struct term answer;

	ask(lua, name, first);
	arena_done(&evaluator->reply);
	if (frames_talk(evaluator, &evaluator->reply, &answer) < 0)
		return ward_stop(lua, OVER_LOST);
	if (take_answer(lua, &answer)) {
		const char *text = lua_tostring(lua, -1);

		return luaL_error(lua, "%s", text ? text : "the gate failed");
	}
	if (strcmp(name, "done") != 0)
		return 1;
	lua_rawsetp(lua, LUA_REGISTRYINDEX, &evaluator->over); /* its value, for evaluate.c */
	return ward_stop(lua, OVER_DONE);
}

static int call_own(lua_State *lua)
{
	return call(lua, lua_tostring(lua, lua_upvalueindex(1)), 1);
}

static void take_away(lua_State *lua)
{
	if (lua_rawgetp(lua, LUA_REGISTRYINDEX, &installed_key) == LUA_TTABLE)
		for (lua_pushnil(lua); lua_next(lua, -2); lua_pop(lua, 1)) {
			lua_pushglobaltable(lua);
			lua_pushvalue(lua, -3);
			lua_pushnil(lua);
			lua_rawset(lua, -3);
			lua_pop(lua, 1);
		}
	lua_pop(lua, 1);
}

void gate_install(lua_State *lua)
{
	const struct evaluator *evaluator = evaluator_of(lua);
	const struct term *name;

	take_away(lua);
	lua_createtable(lua, 0, 8);
	for (size_t i = 0; (name = name_at(evaluator, i)); i++) {
		if (name->bytes.size > NAME_MAX_BYTES)
			continue;
		lua_pushlstring(lua, (const char *)name->bytes.data, name->bytes.size);
		lua_pushglobaltable(lua);
		lua_pushvalue(lua, -2);
		lua_pushvalue(lua, -1);
		lua_pushcclosure(lua, call_own, 1);
		lua_rawset(lua, -3);
		lua_pop(lua, 1);
		lua_pushboolean(lua, true);
		lua_rawset(lua, -3);
	}
	lua_rawsetp(lua, LUA_REGISTRYINDEX, &installed_key);
}
