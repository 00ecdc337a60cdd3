/* Two walks over the same shapes; see cross.h. Depth is bounded by what a frame may be nested. */
#include "cross.h"

#include <errno.h>
#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEEPEST = sizeof((struct cross *)0)->above / sizeof(void *) };

bool cross_is_plain(lua_State *lua, int index)
{
	switch (lua_type(lua, index)) {
	case LUA_TNIL:
	case LUA_TBOOLEAN:
	case LUA_TSTRING:
	case LUA_TTABLE:
		return true;
	case LUA_TNUMBER:
		return lua_isinteger(lua, index) || isfinite(lua_tonumber(lua, index));
	default:
		return false;
	}
}

static bool is_kept(const struct cross *cross, lua_State *lua)
{
	int key = lua_type(lua, -2);

	if (key == LUA_TTABLE || !cross_is_plain(lua, -2))
		return false;
	return cross->use == CROSS_VALUE || cross_is_plain(lua, -1);
}

/* The number of elements of a list; -1: its keys are others. Its pairs are counted. */
static lua_Integer measure(const struct cross *cross, lua_State *lua, int index,
			   uint32_t *ret_pairs)
{
	lua_Integer largest = 0, count = 0;
	bool is_list = true;

	*ret_pairs = 0;
	for (lua_pushnil(lua); lua_next(lua, index); lua_pop(lua, 1)) {
		lua_Integer key = lua_isinteger(lua, -2) ? lua_tointeger(lua, -2) : 0;

		*ret_pairs += is_kept(cross, lua);
		is_list &= key > 0;
		largest = key > largest ? key : largest;
		count++;
	}
	return is_list && largest == count ? count : -1;
}

static void emit_number(struct cross *cross, lua_State *lua, int index)
{
	double real = lua_tonumber(lua, index);

	if (lua_isinteger(lua, index))
		emit_int(cross->emit, lua_tointeger(lua, index));
	else if (isfinite(real))
		emit_float(cross->emit, real);
	else
		emit_text(cross->emit, isnan(real) ? "nan" : real > 0 ? "inf" : "-inf");
}

static void emit_pairs(struct cross *cross, lua_State *lua, int index, uint32_t pairs)
{
	emit_map(cross->emit, pairs);
	for (lua_pushnil(lua); lua_next(lua, index); lua_pop(lua, 1)) {
		int top = lua_gettop(lua);

		if (!is_kept(cross, lua))
			continue;
		cross_emit(cross, lua, top - 1);
		cross_emit(cross, lua, top);
	}
}

static void emit_items(struct cross *cross, lua_State *lua, int index, lua_Integer count)
{
	if (count > 0)
		emit_list(cross->emit, (uint32_t)count);
	for (lua_Integer i = 1; i <= count && !cross->emit->error; i++) {
		lua_rawgeti(lua, index, i);
		cross_emit(cross, lua, lua_gettop(lua));
		lua_pop(lua, 1);
	}
	emit_nil(cross->emit);
}

static const char *why_not(const struct cross *cross, const void *table)
{
	for (unsigned i = 0; i < cross->depth; i++)
		if (cross->above[i] == table)
			return "table (contains itself)";
	return cross->depth == DEEPEST ? "table (nested too deep)" : NULL;
}

static void emit_table(struct cross *cross, lua_State *lua, int index)
{
	const char *why = why_not(cross, lua_topointer(lua, index));
	lua_Integer count;
	uint32_t pairs;

	if (why && cross->use == CROSS_BINDING)
		cross->emit->error = cross->emit->error ? cross->emit->error : -ELOOP;
	if (why) {
		emit_text(cross->emit, why);
		return;
	}
	luaL_checkstack(lua, 4, "a value is nested too deep");
	cross->above[cross->depth++] = lua_topointer(lua, index);
	count = measure(cross, lua, index, &pairs);
	if (count >= 0)
		emit_items(cross, lua, index, count);
	else
		emit_pairs(cross, lua, index, pairs);
	cross->depth--;
}

void cross_emit(struct cross *cross, lua_State *lua, int index)
{
	struct emit *emit = cross->emit;
	const char *text;
	size_t size;

	if (emit->error)
		return;
	if (cross->terms_left-- == 0) {
		cross->terms_left = 0;
		emit->error = -E2BIG;
		return;
	}
	switch (lua_type(lua, index)) {
	case LUA_TNIL:
		emit_atom(emit, "nil");
		break;
	case LUA_TBOOLEAN:
		emit_bool(emit, lua_toboolean(lua, index));
		break;
	case LUA_TNUMBER:
		emit_number(cross, lua, index);
		break;
	case LUA_TSTRING:
		text = lua_tolstring(lua, index, &size);
		emit_binary(emit, text, size);
		break;
	case LUA_TTABLE:
		emit_table(cross, lua, index);
		break;
	default: /* without its address */
		if (cross->use == CROSS_BINDING)
			emit_atom(emit, "nil");
		else
			emit_text(emit, lua_typename(lua, lua_type(lua, index)));
	}
}

/* ---- back ------------------------------------------------------------------------------------ */

static void push_atom(lua_State *lua, const struct term *term)
{
	if (term_is_atom(term, "nil"))
		lua_pushnil(lua);
	else if (term_is_atom(term, "true") || term_is_atom(term, "false"))
		lua_pushboolean(lua, term_is_atom(term, "true"));
	else
		lua_pushlstring(lua, (const char *)term->bytes.data, term->bytes.size);
}

static void push_items(lua_State *lua, const struct term *term)
{
	lua_createtable(lua, (int)term->count, 0);
	for (size_t i = 0; i < term->count; i++) {
		cross_push(lua, &term->items[i]);
		lua_rawseti(lua, -2, (lua_Integer)i + 1);
	}
}

static void push_pairs(lua_State *lua, const struct term *term)
{
	lua_createtable(lua, 0, (int)(term->count / 2));
	for (size_t i = 0; i + 1 < term->count; i += 2) {
		cross_push(lua, &term->items[i]);
		if (lua_isnil(lua, -1)) { /* no key in Lua */
			lua_pop(lua, 1);
			continue;
		}
		cross_push(lua, &term->items[i + 1]);
		lua_rawset(lua, -3);
	}
}

static void push_printed(lua_State *lua, const struct term *term)
{
	char text[256];

	term_print(term, text, sizeof text);
	lua_pushstring(lua, text);
}

void cross_push(lua_State *lua, const struct term *term)
{
	luaL_checkstack(lua, 4, "a value is nested too deep");
	switch (term->type) {
	case TERM_INT:
		lua_pushinteger(lua, term->integer);
		break;
	case TERM_FLOAT:
		lua_pushnumber(lua, term->real);
		break;
	case TERM_ATOM:
		push_atom(lua, term);
		break;
	case TERM_BINARY:
		lua_pushlstring(lua, (const char *)term->bytes.data, term->bytes.size);
		break;
	case TERM_LIST:
	case TERM_TUPLE:
		push_items(lua, term);
		break;
	case TERM_MAP:
		push_pairs(lua, term);
		break;
	default:
		push_printed(lua, term);
	}
}
