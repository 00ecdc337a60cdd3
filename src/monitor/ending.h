/*
 * ending - why a command ended: the closed list of CONTRACTS, section 2
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum ending {
	END_NONE,
	END_EXITED,
	END_SIGNALED,
	END_TIMEOUT,
	END_MEMORY,
	END_OUTPUT,
	END_PROCESSES,
	END_SCRATCH,
	END_VIOLATION,
	END_CANCELLED,
	END_LOST,
	END_START_FAILED,
	END_COUNT
};

/* "timeout"; static. */
const char *ending_name(enum ending ending);

/*
 * The CLI's status: `exit_code` for exited, 128 + signal for signaled and cancelled, the table's
 * for the others. For start_failed, `exit_code` is 126, 127 or 125.
 */
int ending_status(enum ending ending, int exit_code, int signal);

/* "SIGKILL" for 9; "SIGRT" for a real-time signal, "SIG?" for no signal. Static memory. */
const char *ending_signal_name(int signal);

/* An end that a limit or a reaction made, not the command. */
struct ending_stop {
	const char *reason, *clock; /* "" for no clock */
	const char *limit;          /* its name in a result's `limits`; "": there is none */
	int unit;
	const char *before, *after; /* of the limit as text */
};

/* NULL: no such end. Static. */
const struct ending_stop *ending_stop_find(const char *reason, const char *clock);

/* "stopped after 45 s (limits.command)"; `limit` in ms or bytes. */
void ending_stop_say(const struct ending_stop *stop, uint64_t limit, char *ret_text, size_t size);
