/*
 * session_frames - bounds of the frames between a session and its evaluator, for both sides
 */
#pragma once

enum {
	SESSION_BINDING_BYTES = 8 << 20, /* all variables of a session together */
	SESSION_VALUE_BYTES = 4 << 20,   /* one eval's value */
	SESSION_GATE_BYTES = 1 << 20,    /* one gate's arguments */
	SESSION_TERMS = 200000,          /* of the values in one frame */
	SESSION_REASON_BYTES = 8 << 10,  /* why an eval failed */
};
