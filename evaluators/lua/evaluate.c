/*
 * One eval: cut into statements, compiled as a whole before any of it runs, run one by one. What
 * a statement that finished has set stays, whatever a later one does.
 */
#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cross.h"
#include "evaluator.h"
#include "medium/session_frames.h"
#include "medium/surface.h"
#include "split.h"

enum {
	NEWLINES_MAX = 16 << 20, /* that stand before parts, so that errors name the line */
	SPARE_BYTES = 1 << 20,   /* of memory, to say what there is when it ended */
	NAME_MAX_BYTES = 255,
};

/* ---- compiling ------------------------------------------------------------------------------- */

struct source {
	const char *head, *text, *tail;
	size_t newlines, size;
	bool is_told[4];
};

/* Newlines, head, text, tail: each once. */
static const char *read_source(lua_State *lua, void *data, size_t *ret_size)
{
	static const char newlines[64] = "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
					 "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
					 "\n\n\n\n\n\n\n";
	struct source *source = data;

	(void)lua;
	if (source->newlines > 0) {
		*ret_size = source->newlines < 63 ? source->newlines : 63;
		source->newlines -= *ret_size;
		return newlines;
	}
	for (int i = 0; i < 3; i++) {
		const char *part = i == 0 ? source->head : i == 1 ? source->text : source->tail;

		*ret_size = i == 1 ? source->size : strlen(part);
		if (!source->is_told[i] && *ret_size > 0) {
			source->is_told[i] = true;
			return part;
		}
	}
	*ret_size = 0;
	return NULL;
}

struct job {
	struct evaluator *evaluator;
	char *code;
	struct split split;
	bool has_lines;
	int base; /* stack index of the first part's function */
};

static int compile(lua_State *lua, const struct job *job, const struct split_part *part,
		   const char *head, const char *tail)
{
	struct source source = { .head = head,
				 .text = job->code + part->at,
				 .tail = tail,
				 .newlines = job->has_lines ? part->line - 1 : 0,
				 .size = part->size };

	return lua_load(lua, read_source, &source, "=code", "t");
}

/* The last one may be an expression, as anywhere a person types code. */
static int compile_last(lua_State *lua, const struct job *job, const struct split_part *part)
{
	int r = compile(lua, job, part, "return ", "");

	/* `1 +` is an expression that goes on, and is to be told as one. */
	if (r != LUA_ERRSYNTAX || strstr(lua_tostring(lua, -1), "near <eof>"))
		return r;
	lua_pop(lua, 1);
	return compile(lua, job, part, "", part->has_value ? "" : " = nil");
}

/* `return ...` after a part tells one that came to its end from one that returned. */
static void compile_all(lua_State *lua, const struct job *job)
{
	luaL_checkstack(lua, (int)job->split.count + 8, "too many statements");
	for (size_t i = 0; i < job->split.count; i++) {
		const struct split_part *part = &job->split.parts[i];
		bool is_last = i + 1 == job->split.count;
		int r = is_last ? compile_last(lua, job, part)
				: compile(lua, job, part, "",
					  part->has_value ? "\nreturn ..." : " = nil\nreturn ...");

		if (r != LUA_OK)
			lua_error(lua);
	}
}

/* ---- running --------------------------------------------------------------------------------- */

/* Did it return by itself? Its value is on the top then. */
static bool run_part(lua_State *lua, const struct job *job, size_t i)
{
	bool is_last = i + 1 == job->split.count;

	lua_settop(lua, job->base + (int)job->split.count - 1);
	lua_pushvalue(lua, job->base + (int)i);
	if (!is_last)
		lua_pushlightuserdata(lua, job->evaluator);
	lua_call(lua, !is_last, 1);
	return is_last || lua_touserdata(lua, -1) != job->evaluator;
}

static int run(lua_State *lua)
{
	struct job *job = lua_touserdata(lua, 1);
	bool is_over = false;

	job->base = lua_gettop(lua) + 1;
	compile_all(lua, job);
	for (size_t i = 0; i < job->split.count && !is_over; i++)
		is_over = run_part(lua, job, i);
	if (job->split.count == 0)
		lua_pushnil(lua);
	return 1;
}

/* ---- what is said of it ---------------------------------------------------------------------- */

struct saying {
	struct buf pairs; /* of the binding, as terms */
	struct buf value;
	uint32_t count;
	size_t terms_left;
	const struct evaluator *evaluator;
};

/* A name and its value are on the top. What does not fit is left out, as a function is. */
static void say_variable(lua_State *lua, struct saying *saying)
{
	size_t mark = buf_size(&saying->pairs), left = saying->terms_left;
	struct emit emit = { .buf = &saying->pairs };
	struct cross cross = { .emit = &emit, .use = CROSS_BINDING, .terms_left = left };
	const char *name = lua_type(lua, -2) == LUA_TSTRING ? lua_tostring(lua, -2) : NULL;
	int top = lua_gettop(lua);

	if (!name || strlen(name) != lua_rawlen(lua, -2) || strlen(name) > NAME_MAX_BYTES ||
	    !cross_is_plain(lua, -1) || gate_is_name(saying->evaluator, name) ||
	    ward_is_own(lua, name))
		return;
	emit_text(&emit, name);
	cross_emit(&cross, lua, top);
	if (emit.error) {
		buf_truncate(&saying->pairs, mark);
		return;
	}
	saying->terms_left = cross.terms_left;
	saying->count++;
}

static int say_binding(lua_State *lua)
{
	struct saying *saying = lua_touserdata(lua, 1);

	lua_pushglobaltable(lua);
	for (lua_pushnil(lua); lua_next(lua, 2); lua_pop(lua, 1))
		say_variable(lua, saying);
	return 0;
}

static int say_value(lua_State *lua)
{
	struct saying *saying = lua_touserdata(lua, 1);
	struct emit emit = { .buf = &saying->value };
	struct cross cross = { .emit = &emit, .terms_left = SESSION_TERMS };

	cross_emit(&cross, lua, 2);
	if (!emit.error)
		return 0;
	buf_clear(&saying->value);
	emit.error = 0;
	emit_text(&emit, "value (too large to cross)");
	return 0;
}

/* The error's text, as what raised it said it. */
static void say_reason(lua_State *lua, const struct evaluator *evaluator, struct emit *emit)
{
	size_t size = 0;
	const char *text = lua_type(lua, -1) == LUA_TSTRING ? lua_tolstring(lua, -1, &size) : NULL;
	char own[96];

	if (evaluator->over == OVER_STEPS)
		snprintf(own, sizeof own, "step limit reached: %d steps in one eval",
			 SURFACE_STEPS);
	else if (text && str_is(text, "not enough memory"))
		snprintf(own, sizeof own, "memory limit reached: %d bytes", SURFACE_MEMORY);
	else
		snprintf(own, sizeof own, "the error is no text but a %s", luaL_typename(lua, -1));
	if (evaluator->over == OVER_STEPS || !text || str_is(text, "not enough memory"))
		emit_text(emit, own);
	else
		emit_binary(emit, text, size < SESSION_REASON_BYTES ? size : SESSION_REASON_BYTES);
}

static void say_output(struct evaluator *evaluator, struct emit *emit)
{
	if (evaluator->cut_bytes > 0) {
		evaluator->output.max += 64;
		buf_printf(&evaluator->output, "\n[%zu more bytes were printed]\n",
			   evaluator->cut_bytes);
		evaluator->output.max -= 64;
	}
	emit_binary(emit, buf_at(&evaluator->output), buf_size(&evaluator->output));
}

/* What went wrong, or the value, is on the top of the stack. */
static int say(struct evaluator *evaluator, bool is_good)
{
	lua_State *lua = evaluator->lua;
	struct saying saying = { .terms_left = SESSION_TERMS, .evaluator = evaluator };
	struct emit emit;
	int r;

	buf_init(&saying.pairs, SESSION_BINDING_BYTES);
	buf_init(&saying.value, SESSION_VALUE_BYTES);
	evaluator->mem_max += SPARE_BYTES;
	lua_pushcfunction(lua, say_value);
	lua_pushlightuserdata(lua, &saying);
	lua_pushvalue(lua, -3);
	if (is_good && lua_pcall(lua, 2, 0, 0) != LUA_OK) {
		is_good = false;
		lua_replace(lua, 1);
	}
	lua_pushcfunction(lua, say_binding);
	lua_pushlightuserdata(lua, &saying);
	if (lua_pcall(lua, 1, 0, 0) != LUA_OK) { /* memory */
		buf_clear(&saying.pairs);
		saying.count = 0;
	}
	if (!is_good)
		lua_settop(lua, 1); /* the reason */
	emit = emit_begin(&evaluator->out);
	emit_tuple(&emit, is_good ? 6 : 5);
	emit_atom(&emit, is_good ? "eval_result" : "eval_error");
	emit_term(&emit, &evaluator->ref);
	emit_map(&emit, saying.count);
	emit_raw(&emit, buf_at(&saying.pairs), buf_size(&saying.pairs));
	if (is_good) {
		emit_raw(&emit, buf_at(&saying.value), buf_size(&saying.value));
		emit_bool(&emit, evaluator->over == OVER_DONE);
	} else {
		say_reason(lua, evaluator, &emit);
	}
	say_output(evaluator, &emit);
	r = emit_end(&emit);
	buf_done(&saying.pairs);
	buf_done(&saying.value);
	evaluator->mem_max -= SPARE_BYTES;
	return r;
}

/* ---- the eval -------------------------------------------------------------------------------- */

static int begin(lua_State *lua)
{
	gate_install(lua);
	return 0;
}

/* Runs it; the value, or why there is none, is on the stack alone. */
static bool execute(struct evaluator *evaluator, struct job *job)
{
	lua_State *lua = evaluator->lua;
	int r;

	lua_settop(lua, 0);
	lua_pushcfunction(lua, begin);
	r = lua_pcall(lua, 0, 0, 0);
	if (r == LUA_OK) {
		lua_pushcfunction(lua, run);
		lua_pushlightuserdata(lua, job);
		r = lua_pcall(lua, 1, 1, 0);
	}
	if (evaluator->over != OVER_DONE)
		return r == LUA_OK && evaluator->over == OVER_NOT;
	lua_settop(lua, 0);
	lua_rawgetp(lua, LUA_REGISTRYINDEX, &evaluator->over);
	return true;
}

/* No eval of it: a sentence of ours is the reason. */
static int refuse(struct evaluator *evaluator, const char *why)
{
	lua_settop(evaluator->lua, 0);
	lua_pushstring(evaluator->lua, why);
	return say(evaluator, false);
}

static int run_code(struct evaluator *evaluator, const struct term *code)
{
	struct job job = { .evaluator = evaluator };
	char why[128];
	int r;

	job.code = malloc(code->bytes.size + 1);
	if (!job.code)
		return -ENOMEM;
	memcpy(job.code, code->bytes.data, code->bytes.size);
	r = split_source(job.code, code->bytes.size, &job.split);
	if (r == 0) {
		size_t last = job.split.count ? job.split.parts[job.split.count - 1].line : 0;

		job.has_lines = last * job.split.count < NEWLINES_MAX;
		r = say(evaluator, execute(evaluator, &job));
	} else if (job.split.error) {
		snprintf(why, sizeof why, "code:%zu: %s", job.split.error_line, job.split.error);
		r = refuse(evaluator, why);
	}
	split_done(&job.split);
	free(job.code);
	return r;
}

int evaluate_code(struct evaluator *evaluator, const struct term *items)
{
	char why[96];

	if (items[2].type != TERM_BINARY)
		return -EBADMSG;
	evaluator->ref = items[1];
	evaluator->gates = term_get(&items[3], "gates");
	evaluator->steps = 0;
	evaluator->over = OVER_NOT;
	evaluator->cut_bytes = 0;
	buf_clear(&evaluator->output);
	if (items[2].bytes.size <= SURFACE_SOURCE)
		return run_code(evaluator, &items[2]);
	snprintf(why, sizeof why, "the code is too long: %zu bytes, at most %d",
		 items[2].bytes.size, SURFACE_SOURCE);
	return refuse(evaluator, why);
}

/* ---- variables ------------------------------------------------------------------------------- */

static int bind(lua_State *lua)
{
	const struct term *binding = lua_touserdata(lua, 1);

	for (size_t i = 0; i + 1 < binding->count; i += 2) {
		const struct term *name = &binding->items[i];

		if (name->type != TERM_BINARY && name->type != TERM_ATOM)
			continue;
		lua_pushglobaltable(lua);
		lua_pushlstring(lua, (const char *)name->bytes.data, name->bytes.size);
		cross_push(lua, name + 1);
		lua_rawset(lua, -3);
		lua_pop(lua, 1);
	}
	return 0;
}

int evaluate_bind(struct evaluator *evaluator, const struct term *binding)
{
	lua_State *lua = evaluator->lua;
	int r;

	if (binding->type != TERM_MAP)
		return binding->type == TERM_LIST && binding->count == 0 ? 0 : -EBADMSG;
	lua_settop(lua, 0);
	lua_pushcfunction(lua, bind);
	lua_pushlightuserdata(lua, (void *)(uintptr_t)binding);
	r = lua_pcall(lua, 1, 0, 0);
	lua_settop(lua, 0);
	return r == LUA_OK ? 0 : -ENOMEM;
}
