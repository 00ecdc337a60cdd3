/*
 * The restricted world: what is in it, and what bounds it. The libraries of Lua are opened aside,
 * and what surface_lua names is copied from them: what is forgotten there is not here. Bytecode is
 * never loaded, since it is not checked by anybody.
 *
 * Three bounds hold inside: the allocator's for memory, a count of the machine's steps, and the
 * guards below for functions of C that a few bytes of code keep busy, where no step is counted.
 * An error of the first is the code's to catch; after that of the second nothing more runs,
 * whatever it catches. What gets around them meets the parent's clock and the wall.
 */
#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "evaluator.h"
#include "medium/surface.h"

enum { STEPS_AT_ONCE = 1000 };

static const char own_key; /* of the registry: globals as they were */

/* ---- memory and steps ------------------------------------------------------------------------ */

static void *allocate(void *data, void *old, size_t old_size, size_t size)
{
	struct evaluator *evaluator = data;
	size_t before = old ? old_size : 0; /* of a new one it says of which type */
	void *place;

	if (size == 0) {
		free(old);
		evaluator->mem_bytes -= before;
		return NULL;
	}
	if (size > before && evaluator->mem_bytes + (size - before) > evaluator->mem_max)
		return NULL;
	place = realloc(old, size);
	if (place)
		evaluator->mem_bytes += size - before;
	return place;
}

static int stop(lua_State *lua)
{
	enum over over = evaluator_of(lua)->over;

	if (over == OVER_STEPS)
		return luaL_error(lua, "step limit reached: %d steps in one eval", SURFACE_STEPS);
	return luaL_error(lua, over == OVER_DONE ? "the session is done" : "the parent is gone");
}

int ward_stop(lua_State *lua, enum over over)
{
	evaluator_of(lua)->over = over;
	return stop(lua);
}

static void count(lua_State *lua, lua_Debug *where)
{
	struct evaluator *evaluator = evaluator_of(lua);

	(void)where;
	evaluator->steps += STEPS_AT_ONCE;
	if (evaluator->over == OVER_NOT && evaluator->steps > SURFACE_STEPS)
		evaluator->over = OVER_STEPS;
	if (evaluator->over != OVER_NOT)
		stop(lua);
}

/* ---- guards ---------------------------------------------------------------------------------- */

/* The function of Lua's that a guard stands before is its upvalue. */
static int pass_on(lua_State *lua)
{
	lua_pushvalue(lua, lua_upvalueindex(1));
	lua_insert(lua, 1);
	lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
	return lua_gettop(lua);
}

/* What was caught may be the end of all. */
static int caught(lua_State *lua, int status, lua_KContext context)
{
	(void)status;
	(void)context;
	if (evaluator_of(lua)->over == OVER_NOT)
		return lua_gettop(lua);
	lua_settop(lua, 0); /* results may fill all of the stack */
	return stop(lua);
}

static int guard_catch(lua_State *lua)
{
	lua_pushvalue(lua, lua_upvalueindex(1));
	lua_insert(lua, 1);
	lua_callk(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0, caught);
	return caught(lua, LUA_OK, 0);
}

/* An empty text is repeated as often as anybody likes, without memory and without a step. */
static int guard_rep(lua_State *lua)
{
	size_t size, between;
	lua_Integer times = luaL_checkinteger(lua, 2);

	luaL_checklstring(lua, 1, &size);
	luaL_optlstring(lua, 3, "", &between);
	if (times > 0 && (size_t)times > SURFACE_TEXT / (size + between + 1))
		return luaL_error(lua, "string.rep makes at most %d bytes", SURFACE_TEXT);
	return pass_on(lua);
}

static int guard_pattern(lua_State *lua)
{
	size_t size;

	luaL_checklstring(lua, 2, &size);
	if (size > SURFACE_PATTERN)
		return luaL_error(lua, "a pattern has at most %d bytes", SURFACE_PATTERN);
	return pass_on(lua);
}

/* Their loops go as far as __len says, and count no steps. */
static int guard_length(lua_State *lua)
{
	luaL_checktype(lua, 1, LUA_TTABLE);
	if (luaL_getmetafield(lua, 1, "__len") != LUA_TNIL)
		return luaL_error(lua, "a function of table on one with __len is restricted");
	return pass_on(lua);
}

/* The same for a range that is told: arguments `from` and `from` + 1. */
static int check_range(lua_State *lua, int from)
{
	lua_Integer first = luaL_optinteger(lua, from, 1), last = luaL_optinteger(lua, from + 1, 0);

	if (last > first && (lua_Unsigned)last - (lua_Unsigned)first > SURFACE_RANGE)
		return luaL_error(lua, "a function of table walks at most %d elements",
				  SURFACE_RANGE);
	return guard_length(lua);
}

static int guard_concat(lua_State *lua)
{
	return check_range(lua, 3);
}

static int guard_range(lua_State *lua)
{
	return check_range(lua, 2);
}

/* A finalizer runs where no step is counted. */
static int guard_metatable(lua_State *lua)
{
	if (lua_istable(lua, 2)) {
		lua_pushliteral(lua, "__gc");
		if (lua_rawget(lua, 2) != LUA_TNIL)
			return luaL_error(lua, "a metatable with __gc is restricted");
		lua_pop(lua, 1);
	}
	return pass_on(lua);
}

static int guard_load(lua_State *lua)
{
	size_t size;
	const char *text = luaL_checklstring(lua, 1, &size);

	if (size > SURFACE_SOURCE)
		return luaL_error(lua, "load takes at most %d bytes", SURFACE_SOURCE);
	if (luaL_loadbufferx(lua, text, size, luaL_optstring(lua, 2, "=load"), "t") != LUA_OK) {
		lua_pushnil(lua);
		lua_insert(lua, -2);
		return 2;
	}
	if (lua_gettop(lua) > 4) { /* load(text, name, mode, environment), and the function */
		lua_pushvalue(lua, 4);
		lua_setupvalue(lua, -2, 1);
	}
	return 1;
}

/* What there is no room for is counted. */
static int put(struct evaluator *evaluator, const char *text, size_t size)
{
	size_t room = buf_room(&evaluator->output), kept = size < room ? size : room;

	evaluator->cut_bytes += size - kept;
	return buf_add(&evaluator->output, text, kept);
}

/* It may stand on a stack without room for more: one text at a time is on it. A __tostring may
 * print, too, and use up what room there was. */
static int print(lua_State *lua)
{
	struct evaluator *evaluator = evaluator_of(lua);
	int count = lua_gettop(lua), r = 0;

	for (int i = 1; i <= count && r >= 0; i++) {
		size_t size;
		const char *text = luaL_tolstring(lua, i, &size);

		r = i > 1 ? put(evaluator, "\t", 1) : 0;
		if (r >= 0)
			r = put(evaluator, text, size);
		lua_pop(lua, 1);
	}
	return r < 0 || put(evaluator, "\n", 1) < 0 ? luaL_error(lua, "not enough memory") : 0;
}

static const struct {
	const char *table, *name;
	lua_CFunction guard;
} guards[] = {
	{ NULL, "load", guard_load },
	{ NULL, "pcall", guard_catch },
	{ NULL, "print", print },
	{ NULL, "setmetatable", guard_metatable },
	{ NULL, "xpcall", guard_catch },
	{ "coroutine", "close", guard_catch },
	{ "coroutine", "resume", guard_catch },
	{ "string", "find", guard_pattern },
	{ "string", "gmatch", guard_pattern },
	{ "string", "gsub", guard_pattern },
	{ "string", "match", guard_pattern },
	{ "string", "rep", guard_rep },
	{ "table", "concat", guard_concat },
	{ "table", "insert", guard_length },
	{ "table", "move", guard_range },
	{ "table", "remove", guard_length },
	{ "table", "sort", guard_length },
	{ "table", "unpack", guard_range },
};

/* ---- what is there --------------------------------------------------------------------------- */

static bool is_same(const char *a, const char *b)
{
	return a && b ? str_is(a, b) : a == b;
}

/* The function of a name is on the top: its guard takes its place. */
static void set_guard(lua_State *lua, const char *table, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(guards); i++)
		if (is_same(guards[i].table, table) && str_is(guards[i].name, name))
			lua_pushcclosure(lua, guards[i].guard, 1);
}

/* Copies the names of a part from the library on the top to the table below it. */
static void copy_names(lua_State *lua, const struct surface_part *part)
{
	const char *at = part->names;

	while (*at) {
		size_t n = strcspn(at, " ");

		lua_pushlstring(lua, at, n);
		lua_pushvalue(lua, -1);
		lua_gettable(lua, -3);
		set_guard(lua, part->table, lua_tostring(lua, -2));
		lua_settable(lua, -4);
		at += n + (at[n] == ' ');
	}
}

/* A name that Lua has and this world does not: a sentence instead of "a nil value". */
static int refuse(lua_State *lua)
{
	const char *names = lua_tostring(lua, lua_upvalueindex(2));
	const char *name = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "";
	const char *table = lua_tostring(lua, lua_upvalueindex(1));

	if (!surface_names(names, name))
		return 0;
	return luaL_error(lua, "function %s%s%s is restricted", table ? table : "",
			  table ? "." : "", name);
}

/* The table on the top answers names of `part` with that. */
static void set_refusal(lua_State *lua, const struct surface_part *part)
{
	lua_createtable(lua, 0, 2);
	lua_pushstring(lua, part->table);
	lua_pushstring(lua, part->names);
	lua_pushcclosure(lua, refuse, 2);
	lua_setfield(lua, -2, "__index");
	lua_pushboolean(lua, false);
	lua_setfield(lua, -2, "__metatable");
	lua_setmetatable(lua, -2);
}

static void add_refusals(lua_State *lua, int world)
{
	for (const struct surface_part *part = surface_lua_refused; part->names; part++) {
		lua_pushvalue(lua, world);
		if (part->table && lua_getfield(lua, -1, part->table) != LUA_TTABLE) {
			lua_pop(lua, 1);
			lua_createtable(lua, 0, 0);
			lua_pushvalue(lua, -1);
			lua_setfield(lua, world, part->table);
		}
		set_refusal(lua, part);
		lua_settop(lua, world);
	}
}

static void add_library(lua_State *lua, int world, const struct surface_part *part)
{
	lua_pushvalue(lua, world);
	if (part->table) {
		lua_createtable(lua, 0, 8);
		lua_pushvalue(lua, -1);
		lua_setfield(lua, world, part->table);
		lua_getglobal(lua, part->table);
	} else {
		lua_pushglobaltable(lua);
	}
	copy_names(lua, part);
	lua_settop(lua, world);
}

/* A copy of what is there, to be compared with. */
static void keep_own(lua_State *lua, int world)
{
	lua_createtable(lua, 0, 32);
	for (lua_pushnil(lua); lua_next(lua, world); lua_pop(lua, 1)) {
		lua_pushvalue(lua, -2);
		lua_pushvalue(lua, -2);
		lua_rawset(lua, -5);
	}
	lua_rawsetp(lua, LUA_REGISTRYINDEX, &own_key);
}

static int build(lua_State *lua)
{
	static const luaL_Reg libraries[] = {
		{ LUA_GNAME, luaopen_base },       { LUA_COLIBNAME, luaopen_coroutine },
		{ LUA_MATHLIBNAME, luaopen_math }, { LUA_STRLIBNAME, luaopen_string },
		{ LUA_TABLIBNAME, luaopen_table }, { LUA_UTF8LIBNAME, luaopen_utf8 },
	};
	int world;

	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		luaL_requiref(lua, libraries[i].name, libraries[i].func, 1);
	lua_settop(lua, 0);
	lua_createtable(lua, 0, 64);
	world = lua_gettop(lua);
	for (const struct surface_part *part = surface_lua; part->names; part++)
		add_library(lua, world, part);
	lua_pushvalue(lua, world);
	lua_setfield(lua, world, LUA_GNAME);
	lua_pushliteral(lua, LUA_VERSION);
	lua_setfield(lua, world, "_VERSION");
	add_refusals(lua, world);
	/* ("x"):rep(9) finds the guarded ones, too. */
	lua_pushliteral(lua, "");
	lua_getmetatable(lua, -1);
	lua_getfield(lua, world, LUA_STRLIBNAME);
	lua_setfield(lua, -2, "__index");
	lua_settop(lua, world);
	keep_own(lua, world);
	lua_rawseti(lua, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
	/* What was loaded besides is nobody's. */
	lua_pushnil(lua);
	lua_setfield(lua, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	return 0;
}

bool ward_is_own(lua_State *lua, const char *name)
{
	bool is_own;

	lua_rawgetp(lua, LUA_REGISTRYINDEX, &own_key);
	lua_pushstring(lua, name);
	lua_rawget(lua, -2);
	is_own = lua_rawequal(lua, -1, -3);
	lua_pop(lua, 2);
	return is_own;
}

int ward_open(struct evaluator *evaluator)
{
	evaluator->mem_max = SURFACE_MEMORY;
	evaluator->lua = lua_newstate(allocate, evaluator);
	if (!evaluator->lua)
		return -ENOMEM;
	*(struct evaluator **)lua_getextraspace(evaluator->lua) = evaluator;
	lua_pushcfunction(evaluator->lua, build);
	if (lua_pcall(evaluator->lua, 0, 0, 0) != LUA_OK)
		return -ENOMEM;
	/* Coroutines inherit it. */
	lua_sethook(evaluator->lua, count, LUA_MASKCOUNT, STEPS_AT_ONCE);
	return 0;
}

void ward_close(struct evaluator *evaluator)
{
	if (evaluator->lua)
		lua_close(evaluator->lua);
	evaluator->lua = NULL;
}
