/*
 * evaluator - one Lua state behind the frames of a code medium
 *
 *   parent ── {init} {eval} {gate_result} ──▶ main.c ── evaluate.c ── Lua, built by ward.c
 *          ◀── {ready} {gate_call} {eval_result} ──┘      gate.c ◀─┘ a gate is a function there
 *
 * The code is hostile, the parent is not. Descriptor 1 belongs to frames: nothing of Lua reaches
 * it. One thread, one eval at a time; a gate's call blocks until it is answered.
 */
#pragma once

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "wire/emit.h"
#include "wire/term.h"

/* Why nothing more of the code may run, whatever it catches. */
enum over {
	OVER_NOT,
	OVER_STEPS,
	OVER_DONE, /* the gate `done` took its value */
	OVER_LOST, /* the parent is gone, or talks nonsense */
};

struct evaluator {
	lua_State *lua;
	size_t mem_bytes, mem_max;
	uint64_t steps;
	enum over over;
	struct buf output; /* what was printed */
	size_t cut_bytes;  /* of it, that had no room */
	struct buf in, out;
	struct arena frame;       /* of the frame that is handled */
	struct arena reply;       /* of a gate's answer meanwhile */
	struct term ref;          /* of the eval, in `frame` */
	const struct term *gates; /* names of this eval's gates: a list, in `frame`, or NULL */
};

/* The one that a state, or a coroutine of it, belongs to. */
static inline struct evaluator *evaluator_of(lua_State *lua)
{
	return *(struct evaluator **)lua_getextraspace(lua);
}

/* ---- ward.c ---- */

/* A state with the restricted world in it. 0 or -ENOMEM. */
int ward_open(struct evaluator *evaluator);
void ward_close(struct evaluator *evaluator);
/* The code's error: what it caught does not matter where nothing more may run. Does not return. */
int ward_stop(lua_State *lua, enum over over);
/* Is this global as ward_open() left it? The value is on the top of the stack. */
bool ward_is_own(lua_State *lua, const char *name);

/* ---- gate.c ---- */

/* The gates of this eval as global functions; those of the last one are taken away. */
void gate_install(lua_State *lua);
/* Is it the name of one? */
bool gate_is_name(const struct evaluator *evaluator, const char *name);

/* ---- evaluate.c ---- */

/* {init, Binding}: its pairs become globals. */
int evaluate_bind(struct evaluator *evaluator, const struct term *binding);
/* {eval, Ref, Code, Env}: answered by {eval_result, …} or {eval_error, …} in `out`. 0 or
 * -errno: there is nothing that could be said any more. */
int evaluate_code(struct evaluator *evaluator, const struct term *items);

/* ---- main.c ---- */

/* Sends what `out` holds, then waits for one frame: its items in `arena`. 0; -errno: the end. */
int frames_talk(struct evaluator *evaluator, struct arena *arena, struct term *ret_term);
