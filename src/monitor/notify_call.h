/*
 * notify_call - which syscalls are looked at, and where their arguments are
 *
 * A table by number, not code: for each call its class and the registers that hold folders,
 * paths and flags. A call that is not in the table is either continued (`watch`) or denied.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum call_class {
	CALL_NONE,
	CALL_OPEN,     /* flags say what for */
	CALL_OPEN_HOW, /* openat2: flags are in memory */
	CALL_CREATE,   /* fails harmlessly if the name exists */
	CALL_REMOVE,   /* fails harmlessly if it does not */
	CALL_RENAME,   /* removes one name and makes or replaces another */
	CALL_CHANGE,   /* changes what exists: its size */
	CALL_META,     /* changes its mode, owner, times or attributes */
	CALL_CONNECT,
	CALL_BIND,
	CALL_SENDTO,
	CALL_SENDMSG,
	CALL_SENDMMSG,
	CALL_CLASS_COUNT
};

enum { ARG_NONE = -1 };

/* Registers by number, ARG_NONE where the call has none. */
struct call_shape {
	enum call_class class;
	int8_t dir;       /* folder descriptor; ARG_NONE: the current folder */
	int8_t path;      /* ARG_NONE: the object is descriptor `dir` itself */
	int8_t dir2;      /* of the second path */
	int8_t path2;     /* ARG_NONE: there is one path only */
	int8_t flags;     /* O_* for CALL_OPEN, AT_* else */
	bool is_nofollow; /* a symbolic link at the end is meant itself */
	int open_flags;   /* CALL_OPEN without a flags register: creat */
};

/* The register that holds the mode of a file this call may create, ARG_NONE without one. */
int call_mode_of(int nr);

/* NULL for a call that is not in the table. Static memory. */
const struct call_shape *call_shape_of(int nr);
